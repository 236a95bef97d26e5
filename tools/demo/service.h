/* service.h - the demo's parts, as they know each other.
 *
 * Threads: the loops that serve (a runtime), each with a connection to Redis of its own; the
 * loop "store" with the store and the proxy that delays; the loop "load"; 8 threads that
 * block; the CPU pool.  Settings, counts and states that they share are atomic, or stand
 * under a lock that is never held over a wait.
 */
#ifndef WEFT_DEMO_SERVICE_H
#define WEFT_DEMO_SERVICE_H

#include <weft/dag.h>
#include <weft/http.h>
#include <weft/redis.h>
#include <weft/weft.h>
#include "admission.h"
#include "demo.h"
#include "meter.h"
#include "rank.h"
#include "text.h"

#define ADDRESS_MAX 512
#define KEYS        "demo:" /* what all keys of the demo begin with */
#define REPLY_MAX   16384   /* bytes of a feed as JSON */

#define RUNS_MAX     64 /* in flight at most, for each loop; the rest is shed */
#define RUN_DEADLINE (5 * WEFT_S)

/* --- where Redis is ------------------------------------------------------------ */

/* Taken apart: the proxy connects to `upstream`, clients to the proxy by the rest. */
struct endpoint {
	char upstream[ADDRESS_MAX]; /* for weft_stream_connect(); "" for the store of its own */
	char user[128], password[128], database[16];
	char userinfo[256]; /* as it stood in the address, with its @ */
};

int endpoint_read(const char *url, struct endpoint *out);

/* --- the store and the proxy ---------------------------------------------------- */

struct demo;
struct far;

/* Start the loop "store".  Thread: loop; waits until it serves. */
int  far_start(struct demo *demo, struct far **out);
void far_stop(struct far *far);
int  far_port(const struct far *far); /* of the proxy, on 127.0.0.1 */
/* Why it could not connect on the last time, or "". */
void far_trouble(struct far *far, char *out, size_t max);

/* --- a request ------------------------------------------------------------------- */

enum node {
	PROFILE, GET_FOLLOWED, GET_SIMILAR, GET_TRENDING, SEEN, MERGE, FEATURES, SCORE, FILTER,
	RANK, NODES,
};

enum { NODE_WAITS, NODE_RUNS, NODE_DONE, NODE_FAILED };

struct node_time {
	uint64_t begin_ns, end_ns; /* 0: not yet */
	int      state;
};

struct request {
	struct demo     *demo;
	weft_redis      *redis;
	uint32_t         viewer, top, fan_out;
	uint32_t         features_left;
	bool             cpu_waits; /* counted in demo->cpu_waiting */
	uint64_t         begin_ns;
	struct node_time nodes[NODES];
};

extern const weft_type type_feed; /* struct feed *, by malloc() */

/* Make the template, once for all requests.  Returns 0 or an error. */
int steps_make(struct demo *demo, weft_dag **out);

/* A node's name and place, and whom it follows, for the timeline. */
const char        *steps_name(enum node node);
const char        *steps_place(enum node node);
const char *const *steps_inputs(enum node node);

/* Write a feed as JSON. */
void reply_write(struct text *text, const struct request *request,
                 const struct feed *feed);
void reply_write_nodes(struct text *text, const struct request *request);

/* The same work by calls that block, on one of 8 threads.  Fills `feed` and the times. */
struct threads;
int  threads_new(struct demo *demo, struct threads **out);
void threads_free(struct threads *threads);
int  threads_feed(struct threads *threads, struct request *request, struct feed *feed);

int route_feed(weft_http *http, void *demo);
int route_threads(weft_http *http, void *demo);
int route_events(weft_http *http, void *demo);
int route_set(weft_http *http, void *demo);

/* --- the slowest run --------------------------------------------------------------- */

#define SLOW_SECONDS 10

struct slow {
	pthread_mutex_t lock;
	struct {
		uint64_t       second, total_ns, number;
		struct request request;
	} slots[SLOW_SECONDS]; /* the slowest of each second */
	uint64_t count; /* runs that were noted */
};

void slow_init(struct slow *slow);
void slow_note(struct slow *slow, const struct request *request, uint64_t end_ns);
/* The slowest of the last ten seconds as JSON, if it is another than `*number`. */
bool slow_write(struct slow *slow, uint64_t *number, struct text *text);

/* --- the load, the data, the health of Redis ----------------------------------------- */

/* A request with this header was made by the built-in load, which times it. */
#define LOAD_HEADER "Weft-Demo-Load"

struct load;
int  load_start(struct demo *demo, struct load **out);
void load_stop(struct load *load); /* no more, and wait for those in flight */

/* Write the data set.  Thread: loop; suspends. */
int data_fill(struct demo *demo, weft_redis *redis);
/* Whether it is there: 1, 0, or an error. */
int data_there(struct demo *demo, weft_redis *redis);

enum { REDIS_DOWN, REDIS_UP };

/* Look after Redis until cancelled: tell whether it answers, fill it when it is empty. */
int  health_run(void *demo);
bool health_is_up(struct demo *demo);
void health_detail(struct demo *demo, char *out, size_t max);

/* --- one for each loop that serves ----------------------------------------------------- */

struct station {
	struct demo *demo;
	weft_loop   *loop;
	weft_redis  *redis;
	int          error;              /* of opening it */
	uint64_t     waiting;            /* atomic: calls that its Redis client has queued */
	uint64_t     cpu_ns;             /* atomic: of its thread */
};

/* Estimate from CPU times how many requests per second there could be; looks at once, and
 * is called now and then by one threadlet. */
struct capacity {
	uint64_t at_ns, cpu_ns, process_ns, ok;
	double   rps; /* smoothed */
};
void capacity_look(struct demo *demo, struct capacity *capacity);

/* Open one for each loop; close them.  Thread: loop; suspends. */
int  stations_open(struct demo *demo);
void stations_close(struct demo *demo);
/* The one of the caller's loop. */
struct station *station_here(struct demo *demo);

/* --- the window -------------------------------------------------------------------------- */

struct window;
int  window_open(struct demo *demo, struct window **out);
void window_close(struct window *window);
/* Whether the caller may; if not it was answered. */
bool window_allows(struct window *window, weft_http *http, bool writes);

/* --- all of it ----------------------------------------------------------------------------- */

struct demo {
	struct demo_opts     opts;
	struct demo_settings settings; /* atomic, each by itself */
	struct endpoint      endpoint;
	char                 redis_url[ADDRESS_MAX]; /* through the proxy */
	uint32_t             port;                   /* that it serves at */
	char                 host[80];               /* and is asked by */

	struct far       *far;
	struct station    stations[DEMO_LOOPS];
	uint32_t          station_count;
	weft_event        stations_ready, stations_end; /* shared */
	weft_group        stations_open;                /* shared */
	weft_dag         *dag;
	struct threads   *threads;
	struct load      *load;
	struct window    *window;
	weft_http_server *server;
	weft_listener    *listener;

	struct meter meter;
	struct slow  slow;
	struct admission admission; /* of /feed */
	uint64_t     cpu_waiting;  /* atomic: runs whose scoring has not begun */
	struct gauge calls;         /* of Redis, in flight by the graphs */
	struct gauge threads_calls; /* the same, by the threads */
	uint64_t     readers;      /* atomic: of /demo/events */

	pthread_mutex_t health_lock;
	int             redis_state;        /* atomic */
	char            redis_detail[256];  /* under the lock */
	weft_event      first_look;         /* shared: health has looked once */
	weft_threadlet  health;

	uint64_t capacity_rps; /* atomic: an estimate of what could be asked for */
};

static inline uint32_t
setting(const uint32_t *of)
{
	return __atomic_load_n(of, __ATOMIC_RELAXED);
}

#endif
