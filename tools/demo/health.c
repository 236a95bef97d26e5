/* health.c - checks whether Redis answers and has the data.
 *
 * One threadlet reads the key that is written last.  If Redis does not answer, requests are
 * rejected until it does.  If it has lost the data, or has other data, it is filled.  The client
 * reconnects by itself.
 */
#include <stdio.h>
#include <string.h>
#include "service.h"

#define LOOK_NS (200 * WEFT_MS)

static void
set_state(struct demo *demo, int state, const char *detail)
{
	(void)pthread_mutex_lock(&demo->health_lock);
	(void)snprintf(demo->redis_detail, sizeof(demo->redis_detail), "%s", detail);
	(void)pthread_mutex_unlock(&demo->health_lock);
	__atomic_store_n(&demo->redis_state, state, __ATOMIC_RELEASE);
}

bool
health_is_up(struct demo *demo)
{
	return __atomic_load_n(&demo->redis_state, __ATOMIC_ACQUIRE) == REDIS_UP;
}

void
health_detail(struct demo *demo, char *out, size_t max)
{
	(void)pthread_mutex_lock(&demo->health_lock);
	(void)snprintf(out, max, "%s", demo->redis_detail);
	(void)pthread_mutex_unlock(&demo->health_lock);
}

/* Sets the reason why Redis is down.  If the proxy could not connect, its error says more than
 * our lost connection. */
static void
set_down(struct demo *demo)
{
	char trouble[256];

	far_trouble(demo->far, trouble, sizeof(trouble));
	if (!trouble[0])
		(void)snprintf(trouble, sizeof(trouble), "%.200s", weft_detail());
	set_state(demo, REDIS_DOWN, trouble);
	meter_count(&demo->meter.redis_errors);
}

static int
health_check(struct demo *demo)
{
	weft_redis *redis = demo->stations[0].redis;
	int rc = data_there(demo, redis);

	if (rc == 0) {
		set_state(demo, REDIS_DOWN, "the data set is being written");
		rc = data_fill(demo, redis);
	}
	if (rc < 0 && rc != WEFT_ECANCELED)
		set_down(demo);
	if (rc >= 0 && !health_is_up(demo))
		set_state(demo, REDIS_UP, "");
	return rc == WEFT_ECANCELED ? rc : 0;
}

int
health_run(void *arg)
{
	struct demo *demo = arg;
	struct capacity capacity = { 0 };
	int rc = 0;

	while (rc == 0) {
		rc = health_check(demo);
		(void)weft_event_set(&demo->first_look);
		capacity_look(demo, &capacity);
		if (rc == 0)
			rc = weft_sleep_until(weft_after(LOOK_NS));
	}
	return 0;
}
