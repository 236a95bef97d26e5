/* station.c - per-loop state of a serving loop: a connection to Redis, and statistics.
 *
 * A Redis client belongs to its loop.  So a threadlet on that loop opens it, periodically
 * publishes its statistics, and closes it.
 */
#include <time.h>
#include <unistd.h>
#include "service.h"

#define LOOK_NS METER_SLOT_NS

static uint64_t
cpu_clock(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * WEFT_S + (uint64_t)t.tv_nsec;
}

static void
station_check(struct station *station)
{
	struct weft_redis_stats stats = { 0 };

	(void)weft_redis_stats(station->redis, &stats);
	__atomic_store_n(&station->waiting, stats.waiting, __ATOMIC_RELAXED);
	__atomic_store_n(&station->cpu_ns, cpu_clock(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
	if (station == station->demo->stations) {
		gauge_turn(&station->demo->calls);
		gauge_turn(&station->demo->threads_calls);
	}
}

static int
station_run(void *arg)
{
	struct station *station = arg;
	struct demo *demo = station->demo;
	weft_redis_opts opts = { .backoff_max_ns = 500 * WEFT_MS,
		                 .connect_ns = 2 * WEFT_S,
		                 .inflight_max = 65536 };

	station->error = weft_redis_open(demo->redis_url, &opts, &station->redis);
	(void)weft_group_done(&demo->stations_open);
	if (station->error < 0)
		return 0;
	while (weft_event_wait(&demo->stations_end, weft_after(LOOK_NS)) == WEFT_ETIMEDOUT)
		station_check(station);
	weft_redis_close(station->redis);
	(void)weft_group_done(&demo->stations_open);
	return 0;
}

/* Starts the threadlet of one loop.  It is in the group until its client is open. */
static int
station_start(struct demo *demo, uint32_t index)
{
	struct station *station = &demo->stations[index];
	weft_go_opts opts = { .name = "station" };
	weft_threadlet id;

	*station = (struct station){ .demo = demo };
	opts.loop = station->loop = weft_runtime_loop(weft_runtime_current(), index);
	(void)weft_group_add(&demo->stations_open, 1);
	id = weft_go_with(&opts, station_run, station);
	if (id < 0) {
		(void)weft_group_done(&demo->stations_open);
		return (int)id;
	}
	demo->station_count++;
	return 0;
}

int
stations_open(struct demo *demo)
{
	int rc = 0, waited;

	demo->stations_end.flags = demo->stations_open.flags = WEFT_SHARED;
	for (uint32_t i = 0; i < demo->opts.loops && rc == 0; i++)
		rc = station_start(demo, i);
	waited = weft_group_wait(&demo->stations_open, WEFT_NEVER);
	rc = rc < 0 ? rc : waited;
	/* Each open client leaves the group again when it is closed, also if another failed. */
	for (uint32_t i = 0; i < demo->station_count; i++) {
		if (demo->stations[i].error == 0)
			(void)weft_group_add(&demo->stations_open, 1);
		else
			rc = rc < 0 ? rc : demo->stations[i].error;
	}
	return rc;
}

void
stations_close(struct demo *demo)
{
	(void)weft_event_set(&demo->stations_end);
	(void)weft_group_wait(&demo->stations_open, WEFT_NEVER);
}

struct station *
station_here(struct demo *demo)
{
	weft_loop *here = weft_loop_current();

	for (uint32_t i = 1; i < demo->station_count; i++)
		if (demo->stations[i].loop == here)
			return &demo->stations[i];
	return &demo->stations[0];
}

/* Both the busiest loop and all cores together limit the capacity. */
void
capacity_look(struct demo *demo, struct capacity *capacity)
{
	struct capacity now = { .at_ns = weft_now(), .rps = capacity->rps };
	double wall, loop, process, used, rps;

	for (uint32_t i = 0; i < demo->station_count; i++)
		now.cpu_ns += meter_get(&demo->stations[i].cpu_ns);
	now.process_ns = cpu_clock(CLOCK_PROCESS_CPUTIME_ID);
	now.ok = meter_get(&demo->meter.outcomes[OK]);
	wall = (double)(now.at_ns - capacity->at_ns);
	if (capacity->at_ns && now.ok - capacity->ok >= 5 && wall > 0) {
		loop = (double)(now.cpu_ns - capacity->cpu_ns) / (wall * demo->station_count);
		process = (double)(now.process_ns - capacity->process_ns)
		          / (wall * (double)sysconf(_SC_NPROCESSORS_ONLN));
		used = loop > process ? loop : process;
		rps = (double)(now.ok - capacity->ok) * 1e9 / wall;
		rps = used > 0.001 ? rps / used : rps;
		now.rps = now.rps > 0 ? 0.8 * now.rps + 0.2 * rps : rps;
	}
	*capacity = now;
	__atomic_store_n(&demo->capacity_rps, (uint64_t)now.rps, __ATOMIC_RELAXED);
}
