/* suspend_sync_scenarios.c - locks and other sync objects, disturbed while threadlets wait for
 * them.
 *
 * No ownership is lost or duplicated by a disturbance.  A threadlet releases what it holds,
 * whether it must end or not.  A threadlet that still waits gets it.  At the end the object can
 * be acquired at once.  A lost release shows there, or as a hang.
 */
#include "fault.h"
#include "suspend.h"

enum { CROWD = 4, ROUNDS = 2 };

/* Several threadlets run `fn`, and the caller runs `meanwhile`, if not NULL. */
static void
crowd(const struct stage *stage, weft_threadlet_fn fn, weft_threadlet_fn meanwhile, void *arg)
{
	weft_scope scope;

	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < CROWD; i++)
		(void)start_in(&scope, i % 2 ? stage->there : NULL, fn, arg);
	if (meanwhile)
		(void)meanwhile(arg);
	EXPECT(weft_scope_close(&scope) == 0);
}

/* --- mutex -------------------------------------------------------------- */

struct desk {
	weft_mutex mutex;
	int users;
};

static int
use_mutex(void *arg)
{
	struct desk *desk = arg;
	enum went went = WELL;

	for (int i = 0; i < ROUNDS && went == WELL; i++) {
		RETRY(went, how(weft_mutex_lock(&desk->mutex, WEFT_NEVER), 0));
		if (went == DISTURBED)
			break;
		EXPECT(desk->users++ == 0);
		(void)nap(1);
		desk->users--;
		EXPECT(weft_mutex_unlock(&desk->mutex) == 0);
	}
	return 0;
}

static void
expect_free(weft_mutex *mutex)
{
	EXPECT(weft_mutex_lock(mutex, WEFT_NOWAIT) == 0);
	EXPECT(weft_mutex_unlock(mutex) == 0);
}

int
run_mutex(void *arg)
{
	const struct stage *stage = arg;
	struct desk desk = { .mutex = { .flags = stage->flags } };

	crowd(stage, use_mutex, NULL, &desk);
	expect_free(&desk.mutex);
	return 0;
}

/* --- condition ---------------------------------------------------------- */

/* The producer wakes one threadlet for each item, and makes the next item after that one was
 * taken.  A wake that is lost to a canceled threadlet would show as a hang. */
struct belt {
	weft_mutex mutex;
	weft_cond cond;
	int made, items, taken;
	bool over;
};

static int
take_items(void *arg)
{
	struct belt *belt = arg;
	enum went went;

	RETRY(went, how(weft_mutex_lock(&belt->mutex, WEFT_NEVER), 0));
	if (went == DISTURBED)
		return 0;
	while (went != DISTURBED && !belt->over) {
		if (belt->items > 0) {
			belt->items--;
			belt->taken++;
			continue;
		}
		went = how(weft_cond_wait(&belt->cond, &belt->mutex, WEFT_NEVER), 0);
	}
	EXPECT(weft_mutex_unlock(&belt->mutex) == 0); /* held even if the wait was disturbed */
	return 0;
}

static enum went
make_item(struct belt *belt)
{
	enum went went;

	RETRY(went, how(weft_mutex_lock(&belt->mutex, WEFT_NEVER), 0));
	if (went == DISTURBED)
		return DISTURBED;
	belt->made++;
	belt->items++;
	EXPECT(weft_cond_wake(&belt->cond) <= 1);
	(void)nap(1); /* the woken threadlet must wait for the lock */
	EXPECT(weft_mutex_unlock(&belt->mutex) == 0);
	while (went == WELL && belt->items > 0)
		went = nap(1) < 0 ? DISTURBED : WELL;
	return went;
}

/* If it must end, it cannot lock the mutex.  But no other threadlet runs between the two
 * statements. */
static int
make_items(void *arg)
{
	struct belt *belt = arg;

	if (nap(1) == 0)
		for (int i = 0; i < CROWD && make_item(belt) == WELL; i++)
			continue;
	belt->over = true;
	EXPECT(weft_cond_wake_all(&belt->cond) <= CROWD);
	return 0;
}

int
run_cond(void *arg)
{
	const struct stage *stage = arg;
	struct belt belt = { .mutex = { .flags = stage->flags },
		             .cond = { .flags = stage->flags } };

	crowd(stage, take_items, make_items, &belt);
	EXPECT(belt.made == belt.taken + belt.items);
	expect_free(&belt.mutex);
	EXPECT(weft_cond_wake_all(&belt.cond) == 0);
	return 0;
}

/* --- semaphore ---------------------------------------------------------- */

enum { UNITS = 2 };

struct pot {
	weft_sem sem;
	int users;
};

static int
use_sem(void *arg)
{
	struct pot *pot = arg;
	enum went went = WELL;

	for (int i = 0; i < ROUNDS && went == WELL; i++) {
		RETRY(went, how(weft_sem_acquire(&pot->sem, WEFT_NEVER), 0));
		if (went == DISTURBED)
			break;
		EXPECT(pot->users++ < UNITS);
		(void)nap(1);
		pot->users--;
		EXPECT(weft_sem_release(&pot->sem, 1) == 0);
	}
	return 0;
}

int
run_sem(void *arg)
{
	const struct stage *stage = arg;
	struct pot pot = { .sem = { .flags = stage->flags } };

	EXPECT(weft_sem_release(&pot.sem, UNITS) == 0);
	crowd(stage, use_sem, NULL, &pot);
	for (int i = 0; i < UNITS; i++)
		EXPECT(weft_sem_acquire(&pot.sem, WEFT_NOWAIT) == 0);
	EXPECT(weft_sem_acquire(&pot.sem, WEFT_NOWAIT) == WEFT_ETIMEDOUT);
	return 0;
}

/* --- group and event ---------------------------------------------------- */

struct start {
	weft_group group;
	weft_event event;
	bool given; /* what the others wait for has happened */
};

static int
await_group(void *arg)
{
	struct start *start = arg;
	enum went went;

	RETRY(went, how(weft_group_wait(&start->group, WEFT_NEVER), 0));
	EXPECT(went == DISTURBED || start->given);
	return 0;
}

static int
end_group(void *arg)
{
	struct start *start = arg;

	(void)nap(1);
	EXPECT(weft_group_done(&start->group) == 0);
	(void)nap(1);
	start->given = true;
	EXPECT(weft_group_done(&start->group) == 0);
	return 0;
}

int
run_group(void *arg)
{
	const struct stage *stage = arg;
	struct start start = { .group = { .flags = stage->flags } };

	EXPECT(weft_group_add(&start.group, 2) == 0);
	crowd(stage, await_group, end_group, &start);
	EXPECT(weft_group_wait(&start.group, WEFT_NOWAIT) == 0);
	return 0;
}

static int
await_event(void *arg)
{
	struct start *start = arg;
	enum went went;

	RETRY(went, how(weft_event_wait(&start->event, WEFT_NEVER), 0));
	EXPECT(went == DISTURBED || start->given);
	return 0;
}

static int
set_event(void *arg)
{
	struct start *start = arg;

	(void)nap(2);
	start->given = true;
	EXPECT(weft_event_set(&start->event) == 0);
	return 0;
}

int
run_event(void *arg)
{
	const struct stage *stage = arg;
	struct start start = { .event = { .flags = stage->flags } };

	crowd(stage, await_event, set_event, &start);
	EXPECT(weft_event_wait(&start.event, WEFT_NOWAIT) == 0);
	return 0;
}

/* --- planted ------------------------------------------------------------ */

/* Keeps the lock when it must end. */
static int
keep_lock(void *arg)
{
	struct desk *desk = arg;
	enum went went;

	RETRY(went, how(weft_mutex_lock(&desk->mutex, WEFT_NEVER), 0));
	if (went == WELL && nap(1) == 0)
		EXPECT(weft_mutex_unlock(&desk->mutex) == 0);
	return 0;
}

int
plant_lock(void *arg)
{
	struct desk desk = { .users = 0 };
	weft_scope scope;

	(void)arg;
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, keep_lock, &desk);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(weft_mutex_lock(&desk.mutex, WEFT_NOWAIT) == 0);
	return 0;
}
