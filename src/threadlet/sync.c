/* sync.c - semaphore, group, event: a number, and the waiters for it. */
#include <weft/sync.h>
#include "threadlet/waitable.h"

struct counter {
	struct weft__waitable waitable;
	struct weft__waits waits;
	uint64_t count; /* semaphore: units; group: work left; event: 1 if set */
};
WEFT_STATIC_ASSERT(sizeof(struct counter) == sizeof(weft_sem)
                           && sizeof(struct counter) == sizeof(weft_group)
                           && sizeof(struct counter) == sizeof(weft_event),
                   "one layout");

#define COUNT_MAX          UINT32_MAX
#define counter_of(handle) ((struct counter *)(void *)(handle))

/* Called inside the waitable, which it leaves: wake all waiters. */
static void
wake_all(struct counter *c, int64_t result)
{
	struct weft__wait *all = weft__waitable_claim_all(&c->waits);

	weft__waitable_leave(&c->waitable);
	(void)weft__waitable_wake_all(all, result);
}

/* Called inside the waitable, which it leaves. */
static int
threadlet_sync_wait_for(struct counter *c, const char *what, uint64_t deadline_ns)
{
	return weft__waitable_wait(&c->waitable,
	                           &(struct weft__waitable_wait){ what, &c->waits, NULL, false },
	                           deadline_ns);
}

static int
enter_to_wait(struct counter *c, uint64_t deadline_ns)
{
	int rc = weft__check_requests(deadline_ns);

	return rc < 0 ? rc : weft__waitable_enter(&c->waitable);
}

/* --- semaphore ---------------------------------------------------------- */

int
weft_sem_acquire(weft_sem *sem, uint64_t deadline_ns)
{
	struct counter *c = counter_of(sem);
	int rc = enter_to_wait(c, deadline_ns);

	if (rc < 0)
		return rc;
	if (weft__get(c->count) == 0)
		return threadlet_sync_wait_for(c, "sem", deadline_ns);
	weft__put(c->count, weft__get(c->count) - 1);
	weft__waitable_leave(&c->waitable);
	return weft__maybe_yield(weft__self());
}

/* Waiters get units first, so the count is 0 while there are waiters. */
int
weft_sem_release(weft_sem *sem, uint32_t count)
{
	struct counter *c = counter_of(sem);
	struct weft__wait *list = NULL, **end = &list, *wait;
	int rc = weft__waitable_enter(&c->waitable);

	if (rc < 0)
		return rc;
	if (weft__get(c->count) + count > COUNT_MAX) {
		weft__waitable_leave(&c->waitable);
		return weft__misuse(
			WEFT_EINVAL,
			"weft_sem_release: the semaphore would have more than 4,294,967,295 units");
	}
	while (count > 0 && (wait = weft__wait_claim(&c->waits))) {
		weft__put(*end, wait);
		end = &wait->next;
		count--;
	}
	weft__put(*end, NULL);
	weft__put(c->count, weft__get(c->count) + count);
	weft__waitable_leave(&c->waitable);
	(void)weft__waitable_wake_all(list, 0);
	return 0;
}

/* --- group -------------------------------------------------------------- */

int
weft_group_add(weft_group *group, uint32_t count)
{
	struct counter *c = counter_of(group);
	int rc = weft__waitable_enter(&c->waitable);

	if (rc < 0)
		return rc;
	if (weft__get(c->count) + count > COUNT_MAX)
		rc = WEFT_EINVAL;
	else
		weft__put(c->count, weft__get(c->count) + count);
	weft__waitable_leave(&c->waitable);
	return rc < 0 ? weft__misuse(rc, "weft_group_add: the count would exceed 4,294,967,295")
	              : 0;
}

int
weft_group_done(weft_group *group)
{
	struct counter *c = counter_of(group);
	int rc = weft__waitable_enter(&c->waitable);
	uint64_t left;

	if (rc < 0)
		return rc;
	left = weft__get(c->count);
	if (left > 0)
		weft__put(c->count, left - 1);
	if (left == 1) {
		wake_all(c, 0);
		return 0;
	}
	weft__waitable_leave(&c->waitable);
	return left == 0 ? weft__misuse(WEFT_EINVAL, "weft_group_done: the count is already 0") : 0;
}

int
weft_group_wait(weft_group *group, uint64_t deadline_ns)
{
	struct counter *c = counter_of(group);
	int rc = enter_to_wait(c, deadline_ns);

	if (rc < 0)
		return rc;
	if (weft__get(c->count) > 0)
		return threadlet_sync_wait_for(c, "group", deadline_ns);
	weft__waitable_leave(&c->waitable);
	return 0;
}

int
weft__group_join(weft_group *group)
{
	struct counter *c = counter_of(group);
	int rc = weft__waitable_enter(&c->waitable);

	if (rc == 0 && weft__get(c->count) > 0)
		return weft__waitable_wait(
			&c->waitable,
			&(struct weft__waitable_wait){ "group", &c->waits, NULL, true },
			WEFT_NEVER);
	if (rc == 0)
		weft__waitable_leave(&c->waitable);
	return rc;
}

/* --- event -------------------------------------------------------------- */

int
weft_event_set(weft_event *event)
{
	struct counter *c = counter_of(event);
	int rc = weft__waitable_enter(&c->waitable);

	if (rc < 0)
		return rc;
	weft__put(c->count, 1);
	wake_all(c, 0);
	return 0;
}

int
weft_event_reset(weft_event *event)
{
	struct counter *c = counter_of(event);
	int rc = weft__waitable_enter(&c->waitable);

	if (rc < 0)
		return rc;
	weft__put(c->count, 0);
	weft__waitable_leave(&c->waitable);
	return 0;
}

int
weft_event_wait(weft_event *event, uint64_t deadline_ns)
{
	struct counter *c = counter_of(event);
	int rc = enter_to_wait(c, deadline_ns);

	if (rc < 0)
		return rc;
	if (weft__get(c->count) == 0)
		return threadlet_sync_wait_for(c, "event", deadline_ns);
	weft__waitable_leave(&c->waitable);
	return 0;
}

/* A shared event, whose waitable can always be entered. */
void
weft__event_wait_shielded(weft_event *event, const char *what)
{
	struct counter *c = counter_of(event);

	(void)weft__waitable_enter(&c->waitable);
	if (weft__get(c->count) == 0)
		(void)weft__waitable_wait(
			&c->waitable, &(struct weft__waitable_wait){ what, &c->waits, NULL, true },
			WEFT_NEVER);
	else
		weft__waitable_leave(&c->waitable);
}

/* For select. */
bool
weft__event_is_set(weft_event *event)
{
	return weft__get(counter_of(event)->count) > 0;
}

struct weft__waits *
weft__event_waits(weft_event *event)
{
	return &counter_of(event)->waits;
}
