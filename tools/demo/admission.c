/* admission.c - limits the number of concurrent requests, based on how long they take. */
#include "admission.h"
#include <string.h>

#define LOWER 0.8 /* factor by which the limit is lowered */

void
admission_init(struct admission *admission, uint32_t most)
{
	memset(admission, 0, sizeof(*admission));
	(void)pthread_mutex_init(&admission->lock, NULL);
	admission->limit = admission->most = most;
}

static void
count(struct admission *admission, int64_t step)
{
	__atomic_store_n(&admission->in_flight, admission->in_flight + (uint64_t)step,
	                 __ATOMIC_RELAXED);
}

bool
admission_enter(struct admission *admission)
{
	bool room;

	(void)pthread_mutex_lock(&admission->lock);
	room = (double)admission->in_flight + 1 <= admission->limit;
	if (room)
		count(admission, 1);
	(void)pthread_mutex_unlock(&admission->lock);
	return room;
}

/* Invariant 2. */
static void
adapt(struct admission *admission, uint64_t took_ns, uint64_t target_ns, uint64_t now_ns)
{
	if (took_ns <= target_ns) {
		admission->limit += 1 / admission->limit;
		if (admission->limit > admission->most)
			admission->limit = admission->most;
		return;
	}
	if (now_ns - admission->lowered_ns < target_ns)
		return;
	admission->lowered_ns = now_ns;
	admission->limit *= LOWER;
	if (admission->limit < ADMISSION_LEAST)
		admission->limit = ADMISSION_LEAST;
}

void
admission_leave(struct admission *admission, uint64_t took_ns, uint64_t target_ns, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&admission->lock);
	count(admission, -1);
	adapt(admission, took_ns, target_ns, now_ns);
	(void)pthread_mutex_unlock(&admission->lock);
}
