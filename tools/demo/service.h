/* service.h - the parts of the demo.
 *
 * Threads: the serving loops (a runtime), each with its own connection to Redis; the loop
 * "store" with the store and the delaying proxy; the loop "load"; 8 threads that block; the CPU
 * pool.  Shared settings, counters and states are atomic, or protected by a lock that is never
 * held during a wait.
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
#define KEYS        "demo:" /* prefix of all keys of the demo */
#define REPLY_MAX   16384   /* largest feed as JSON, in bytes */

#define RUNS_MAX     64 /* runs in flight per loop; further requests are rejected */
#define RUN_DEADLINE (5 * WEFT_S)

/* --- the address of Redis ------------------------------------------------------ */

/* The parsed address: the proxy connects to `upstream`, clients connect to the proxy and use the
 * rest. */
struct endpoint {
	char upstream[ADDRESS_MAX]; /* for weft_stream_connect(); "" for the embedded store */
	char user[128], password[128], database[16];
	char userinfo[256]; /* as written in the address, including the @ */
};

int endpoint_read(const char *url, struct endpoint *out);

/* --- the store and the proxy ---------------------------------------------------- */

struct demo;
struct far;

/* Start the loop "store".  Thread: loop; waits until the store is ready. */
int  far_start(struct demo *demo, struct far **out);
void far_stop(struct far *far);
int  far_port(const struct far *far); /* port of the proxy, on 127.0.0.1 */
/* The error of the last attempt to connect, or "". */
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

extern const weft_type type_feed; /* struct feed *, allocated by malloc() */

/* Make the template, once for all requests.  Returns 0 or an error. */
int steps_make(struct demo *demo, weft_dag **out);

/* A node's name, where it runs, and its dependencies, for the timeline. */
const char        *steps_name(enum node node);
const char        *steps_place(enum node node);
const char *const *steps_inputs(enum node node);

/* Write a feed as JSON. */
void reply_write(struct text *text, const struct request *request,
                 const struct feed *feed);
void reply_write_nodes(struct text *text, const struct request *request);

/* The same work with blocking calls, on one of 8 threads.  Fills `feed` and the times. */
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
	} slots[SLOW_SECONDS]; /* the slowest run of each second */
	uint64_t count; /* runs recorded */
};

void slow_init(struct slow *slow);
void slow_note(struct slow *slow, const struct request *request, uint64_t end_ns);
/* Write the slowest run of the last ten seconds as JSON.  Returns false if there is none, or if
 * it is still run `*number`. */
bool slow_write(struct slow *slow, uint64_t *number, struct text *text);

/* --- the load, the data, the health of Redis ----------------------------------------- */

/* Marks a request of the built-in load, which measures the latency itself. */
#define LOAD_HEADER "Weft-Demo-Load"

struct load;
int  load_start(struct demo *demo, struct load **out);
void load_stop(struct load *load); /* stops the load, and waits for requests in flight */

/* Write the data set.  Thread: loop; suspends. */
int data_fill(struct demo *demo, weft_redis *redis);
/* Whether the data set exists: 1, 0, or an error. */
int data_there(struct demo *demo, weft_redis *redis);

enum { REDIS_DOWN, REDIS_UP };

/* Monitor Redis until canceled: set the state to up or down, and fill it when it is empty. */
int  health_run(void *demo);
bool health_is_up(struct demo *demo);
void health_detail(struct demo *demo, char *out, size_t max);

/* --- one for each serving loop --------------------------------------------------------- */

struct station {
	struct demo *demo;
	weft_loop   *loop;
	weft_redis  *redis;
	int          error;              /* result of opening it */
	uint64_t     waiting;            /* atomic: calls queued by its Redis client */
	uint64_t     cpu_ns;             /* atomic: CPU time of its thread */
};

/* An estimate of the possible requests per second, from CPU times. capacity_look() takes one
 * sample; one threadlet calls it periodically. */
struct capacity {
	uint64_t at_ns, cpu_ns, process_ns, ok;
	double   rps; /* smoothed */
};
void capacity_look(struct demo *demo, struct capacity *capacity);

/* Open one for each loop; close them.  Thread: loop; suspends. */
int  stations_open(struct demo *demo);
void stations_close(struct demo *demo);
/* The station of the caller's loop. */
struct station *station_here(struct demo *demo);

/* --- the admin endpoint ------------------------------------------------------------------ */

struct window;
int  window_open(struct demo *demo, struct window **out);
void window_close(struct window *window);
/* Whether the client is authorized.  If not, it has been answered. */
bool window_allows(struct window *window, weft_http *http, bool writes);

/* --- the demo ------------------------------------------------------------------------------ */

struct demo {
	struct demo_opts     opts;
	struct demo_settings settings; /* each is atomic */
	struct endpoint      endpoint;
	char                 redis_url[ADDRESS_MAX]; /* through the proxy */
	uint32_t             port;                   /* port that it listens on */
	char                 host[80];               /* and the host name for its URL */

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
	uint64_t     cpu_waiting;  /* atomic: runs that have not started scoring */
	struct gauge calls;         /* Redis calls in flight, by the graphs */
	struct gauge threads_calls; /* the same, by the threads */
	uint64_t     readers;      /* atomic: clients of /demo/events */

	pthread_mutex_t health_lock;
	int             redis_state;        /* atomic */
	char            redis_detail[256];  /* under the lock */
	weft_event      first_look;         /* shared: set after the first check of Redis */
	weft_threadlet  health;

	uint64_t capacity_rps; /* atomic: estimated capacity */
};

static inline uint32_t
setting(const uint32_t *of)
{
	return __atomic_load_n(of, __ATOMIC_RELAXED);
}

#endif
