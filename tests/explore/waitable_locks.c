/* waitable_locks.c - shared locks, conditions and similar objects, over all schedules.
 *
 * waitable_models.c runs these models together with its own.
 */
#include "waitable_world.h"

static void
setup(void *state)
{
	struct world *w = state;

	w->bug = (enum bug)planted;
	w->mutex.flags = w->cond.flags = w->sem.flags = WEFT_SHARED;
}

/* Not atomic: two threads that count at the same time race. */
static void
count(struct world *w)
{
	weft__put(w->shared, weft__get(w->shared) + 1);
}

/* --- mutex -------------------------------------------------------------- */

static void
lock_and_count(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_mutex_lock(&w->mutex, WEFT_NEVER) == 0);
	count(w);
	unlock_mutex(w);
	w->done[explore_thread()] = 1;
}

static void
lock_soon(void *state)
{
	struct world *w = state;
	int rc = weft_mutex_lock(&w->mutex, SOON);

	EXPLORE_CHECK(rc == 0 || rc == WEFT_ETIMEDOUT);
	if (rc < 0)
		return;
	count(w);
	unlock_mutex(w);
	w->done[explore_thread()] = 1;
}

static void
check_mutex(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->shared == w->done[0] + w->done[1] + w->done[2]);
	EXPLORE_CHECK(weft_mutex_lock(&w->mutex, WEFT_NOWAIT) == 0);
	EXPLORE_CHECK(weft_mutex_unlock(&w->mutex) == 0);
}

/* --- condition ---------------------------------------------------------- */

static void
wait_for_flag(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_mutex_lock(&w->mutex, WEFT_NEVER) == 0);
	while (!weft__get(w->flag))
		EXPLORE_CHECK(wait_for_cond(w, WEFT_NEVER) == 0);
	count(w);
	unlock_mutex(w);
	w->done[explore_thread()] = 1;
}

static void
wait_for_flag_soon(void *state)
{
	struct world *w = state;
	int rc = 0;

	EXPLORE_CHECK(weft_mutex_lock(&w->mutex, WEFT_NEVER) == 0);
	while (!weft__get(w->flag) && rc == 0)
		rc = wait_for_cond(w, SOON);
	EXPLORE_CHECK(rc == 0 || rc == WEFT_ETIMEDOUT);
	count(w);
	unlock_mutex(w);
	w->done[explore_thread()] = 1;
}

static void
raise_flag(struct world *w, bool inside, int (*wake)(weft_cond *cond))
{
	EXPLORE_CHECK(weft_mutex_lock(&w->mutex, WEFT_NEVER) == 0);
	weft__put(w->flag, 1);
	if (inside)
		EXPLORE_CHECK(wake(&w->cond) >= 0);
	unlock_mutex(w);
	if (!inside)
		EXPLORE_CHECK(wake(&w->cond) >= 0);
}

/* Either wake one inside the lock, or wake all after unlocking. */
static void
raise_and_wake(void *state)
{
	if (explore_choose(2) == 0)
		raise_flag(state, true, weft_cond_wake);
	else
		raise_flag(state, false, weft_cond_wake_all);
}

/* --- semaphore ---------------------------------------------------------- */

static void
acquire_soon(void *state)
{
	struct world *w = state;
	int rc = weft_sem_acquire(&w->sem, SOON);

	EXPLORE_CHECK(rc == 0 || rc == WEFT_ETIMEDOUT);
	w->got[explore_thread()] = rc == 0;
}

static void
acquire_one(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_sem_acquire(&w->sem, WEFT_NEVER) == 0);
	EXPLORE_CHECK(weft__get(w->shared) > 0);
	w->got[explore_thread()] = 1;
}

static void
release_one(void *state)
{
	struct world *w = state;

	weft__put(w->shared, 1);
	EXPLORE_CHECK(weft_sem_release(&w->sem, 1) == 0);
}

static void
release_two(void *state)
{
	struct world *w = state;

	weft__put(w->shared, 2);
	EXPLORE_CHECK(weft_sem_release(&w->sem, 2) == 0);
}

/* No unit is lost or added. */
static void
check_units(void *state)
{
	struct world *w = state;
	uint64_t units = w->got[0] + w->got[1] + w->got[2];

	while (weft_sem_acquire(&w->sem, WEFT_NOWAIT) == 0)
		units++;
	EXPLORE_CHECK(units == w->shared);
}

/* --- event and group ---------------------------------------------------- */

static void
setup_event(void *state)
{
	struct world *w = state;

	setup(w);
	w->event = weft__sys->alloc(sizeof(*w->event));
	*w->event = (weft_event)WEFT_SHARED_INIT;
}

static void
set_it(void *state)
{
	struct world *w = state;

	weft__put(w->shared, 1);
	set_event(w);
}

static void
wait_and_free(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_event_wait(w->event, WEFT_NEVER) == 0);
	EXPLORE_CHECK(weft__get(w->shared) == 1);
	weft__sys->release(w->event);
}

static void
select_and_free(void *state)
{
	struct world *w = state;
	weft_case cases[2] = { { .event = w->event } };

	EXPLORE_CHECK(weft_select(cases, 2, WEFT_NEVER) == 0);
	EXPLORE_CHECK(weft__get(w->shared) == 1);
	weft__sys->release(w->event);
}

static void
setup_group(void *state)
{
	struct world *w = state;

	setup(w);
	w->group = weft__sys->alloc(sizeof(*w->group));
	*w->group = (weft_group)WEFT_SHARED_INIT;
	EXPLORE_CHECK(weft_group_add(w->group, 2) == 0);
}

static void
end_work(void *state)
{
	struct world *w = state;

	w->done[explore_thread()] = 1;
	EXPLORE_CHECK(weft_group_done(w->group) == 0);
}

static void
wait_for_group(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_group_wait(w->group, WEFT_NEVER) == 0);
	EXPLORE_CHECK(w->done[0] + w->done[1] == 2);
	weft__sys->release(w->group);
}

/* --- the models --------------------------------------------------------- */

#define TWO(name_, setup_, one_, other_, check_, ...) \
	MODEL(name_, setup_, .threads = 2, .thread = { one_, other_ }, .check = check_, __VA_ARGS__)
#define THREE(name_, setup_, one_, other_, third_, check_, bound_)                              \
	MODEL(name_, setup_, .threads = 3, .thread = { one_, other_, third_ }, .check = check_, \
	      .preemptions = bound_)

enum { MUTEX_OF_THREE, EVENT, CONDITION };

static const struct explore_model models[] = {
	[MUTEX_OF_THREE] = THREE("a mutex lets one of three in at a time", setup, lock_and_count,
	                         lock_and_count, lock_and_count, check_mutex, 2),
	[EVENT] = TWO("who waited for an event may free it", setup_event, wait_and_free, set_it,
	              NULL, .spurious = 1),
	[CONDITION] = TWO("a condition is not missed", setup, wait_for_flag, raise_and_wake,
	                  check_mutex, .preemptions = 3),
	TWO("a mutex lets one in at a time", setup, lock_and_count, lock_and_count, check_mutex,
	    .spurious = 1),
	TWO("a lock is not lost to one whose time is up", setup, lock_and_count, lock_soon,
	    check_mutex, .timeouts = true),
	TWO("a condition with a deadline has the lock in any case", setup, wait_for_flag_soon,
	    raise_and_wake, check_mutex, .timeouts = true, .preemptions = 2),
	TWO("a unit is not lost to one whose time is up", setup, acquire_soon, release_one,
	    check_units, .timeouts = true),
	THREE("units go to those who wait", setup, acquire_one, acquire_one, release_two,
	      check_units, 2),
	TWO("who selected an event may free it", setup_event, select_and_free, set_it, NULL,
	    .spurious = 1),
	THREE("who waited for a group may free it", setup_group, end_work, end_work, wait_for_group,
	      NULL, 2),
};

static const struct plant plants[] = {
	{ NO_OWNER, &models[MUTEX_OF_THREE], 0, "tells the next owner, who then has no lock" },
	{ LATE_LEAVE, &models[EVENT], 0, "wakes inside of the waitable it then leaves" },
	{ EARLY_UNLOCK, &models[CONDITION], 0, "unlocks, and then queues" },
};

const struct model_set lock_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
};
