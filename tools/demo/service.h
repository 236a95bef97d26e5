/* service.h - the parts of the demo.
 *
 * Threads: the serving loops (a runtime), each with a Redis client; 8 threads that block; the loop
 * "outside" with the embedded store, the load, and the Redis client of the 8 threads; the CPU pool.
 * Shared numbers are atomic, or protected by a lock that is never held during a wait.
 */
#ifndef WEFT_DEMO_SERVICE_H
#define WEFT_DEMO_SERVICE_H

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <store/store.h>
#include <string.h>
#include <weft/admin.h>
#include <weft/dag.h>
#include <weft/redis.h>
#include <weft/weft.h>
#include "demo.h"

#define KEYS         "demo:" /* prefix of all keys of the demo */
#define VIEWERS      500
#define TOPICS       8
#define RUN_DEADLINE (5 * WEFT_S)
#define PERIOD_NS    (250 * WEFT_MS)  /* between two events, and between two checks of Redis */
#define LATENCIES    8192             /* of one second, at most */
#define LOAD_HEADER  "Weft-Demo-Load" /* of the built-in load, which measures its latency itself */

/* How requests to /feed ended, and failed Redis calls; the sides of the comparison. */
enum count { OK, NOT_FOUND, BAD, SHED, ERRORS, REDIS_ERRORS, COUNTS };
enum side_name { WEFT, THREADS, SIDES };

struct side {
	uint64_t calls, calls_most; /* atomic: Redis calls in flight; the most since side_calls() */
	pthread_mutex_t lock;       /* of what follows */
	uint64_t recorded;
	struct latency { uint64_t at_ns; uint32_t us; } ring[LATENCIES];
};

struct quantiles { uint32_t count, p50, p99; }; /* microseconds */

void     side_call_begins(struct side *side);
uint64_t side_calls(struct side *side);
void     side_record(struct side *side, uint64_t latency_ns);
struct quantiles side_quantiles(struct side *side); /* of the last second */

struct demo {
	struct demo_opts  opts;               /* the settings are atomic */
	char              url[256];           /* of this service, without the last slash */
	char              store_url[256];     /* of the embedded store */
	int               client_key;         /* of the Redis client of each serving loop */
	weft_pool        *pool;               /* of 8 threads */
	weft_dag         *dag;
	weft_admin       *admin;
	weft_http_server *server;
	weft_listener    *listener;
	bool              failed;

	weft_loop  *outside;
	weft_store *store;          /* NULL: the embedded store is not used */
	weft_redis *threads_redis;

	struct side     sides[SIDES];
	uint64_t        counts[COUNTS]; /* atomic */
	uint64_t        in_flight;      /* atomic: admitted requests to /feed */
	pthread_mutex_t lock;           /* of what follows */
	char            detail[256];    /* why Redis is not up; "" if it is */
	weft_value      slow;           /* trace of the slowest request, its time and its end */
	uint64_t        slow_number, slow_ns, slow_end_ns; /* the number is atomic */
};

/* Start the loop "outside"; run the load until an interrupt; stop it.  They suspend. */
int  outside_open(struct demo *demo);
int  outside_load(void *demo);
void outside_close(struct demo *demo);
/* Open a Redis client; the client of the caller's loop, or NULL. */
int  demo_connect(const struct demo *demo, weft_loop *loop, weft_redis **out);
weft_redis *demo_redis(const struct demo *demo);

/* Check once, or until canceled, whether Redis answers and has the data; write it if it has not. */
int  health_check(struct demo *demo);
int  health_run(void *demo);
/* Returns whether Redis is up, and fills `detail` with the reason if not. */
bool health_get(struct demo *demo, char *detail, size_t max);
int  feed_open(struct demo *demo);
int  page_open(struct demo *demo);

static inline void
add_to(uint64_t *number, int64_t step)
{
	__atomic_fetch_add(number, (uint64_t)step, __ATOMIC_RELAXED);
}

static inline uint64_t
get(const uint64_t *number)
{
	return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static inline uint32_t
setting(const struct demo *demo, enum demo_setting name)
{
	return __atomic_load_n(&demo->opts.settings[name], __ATOMIC_RELAXED);
}

#endif
