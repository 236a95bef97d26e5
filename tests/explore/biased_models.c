/* biased_models.c - the biased lock, over all schedules. */
#include "base/biased.h"
#include "models.h"

enum bug {
	NO_BUG,
	NO_BARRIER,  /* the other thread reads `inside` without a barrier before */
	NO_WAIT,     /* the other thread does not read `inside` */
	NO_OWN_READ, /* the owner does not read `own` */
};

struct world {
	struct weft__biased lock;
	uint32_t count; /* protected by the lock */
};

static void
setup_biased(void *state)
{
	struct world *w = state;

	weft__store(&w->lock.own, 1, WEFT__RELAXED);
}

/* --- planted bugs ------------------------------------------------------- */

static void
take_own(struct weft__biased *lock)
{
	if (planted != NO_OWN_READ) {
		weft__biased_take(lock, true);
		return;
	}
	weft__store(&lock->inside, 1, WEFT__RELAXED);
}

static void
take_other(struct weft__biased *lock)
{
	if (planted != NO_BARRIER && planted != NO_WAIT) {
		weft__biased_take(lock, false);
		return;
	}
	weft__lock_take(&lock->lock);
	weft__store(&lock->own, 0, WEFT__RELAXED);
	if (planted == NO_WAIT) {
		(void)weft__barrier();
		return;
	}
	while (weft__load(&lock->inside, WEFT__ACQUIRE))
		weft__sys->yield();
}

/* --- threads ------------------------------------------------------------ */

static void
count(struct world *w)
{
	weft__put(w->count, weft__get(w->count) + 1);
}

static void
owner(void *state)
{
	struct world *w = state;

	for (int i = 0; i < 2; i++) {
		take_own(&w->lock);
		count(w);
		weft__biased_give(&w->lock, true);
	}
}

static void
other(void *state)
{
	struct world *w = state;

	take_other(&w->lock);
	count(w);
	weft__biased_give(&w->lock, false);
}

static void
check_three(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->count == 3);
}

static void
check_four(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->count == 4);
}

/* The owner has taken the lock 254 times alone.  The second of its two times in the model makes
 * the lock biased. */
static void
setup_almost(void *state)
{
	struct world *w = state;

	for (int i = 0; i < 254; i++) {
		weft__biased_take(&w->lock, true);
		weft__biased_give(&w->lock, true);
	}
	EXPLORE_CHECK(w->lock.alone == 254);
}

/* --- the models --------------------------------------------------------- */

static const struct explore_model models[] = {
	{ .name = "an owner without the lock, and another",
	  .state_size = sizeof(struct world),
	  .setup = setup_biased,
	  .threads = 2,
	  .thread = { owner, other },
	  .check = check_three,
	  .late_unpark = true },
	{ .name = "an owner without the lock, and two others",
	  .state_size = sizeof(struct world),
	  .setup = setup_biased,
	  .threads = 3,
	  .thread = { owner, other, other },
	  .check = check_four,
	  .preemptions = 3,
	  .late_unpark = true },
	{ .name = "an owner that comes to need no lock, and another",
	  .state_size = sizeof(struct world),
	  .setup = setup_almost,
	  .threads = 2,
	  .thread = { owner, other },
	  .check = check_three,
	  .steps_max = 8000,
	  .late_unpark = true },
};

static const struct plant plants[] = {
	{ NO_BARRIER, &models[0], 0, "no barrier before the check of the owner" },
	{ NO_WAIT, &models[0], 0, "no check of the owner" },
	{ NO_OWN_READ, &models[0], 0, "the owner does not read own" },
};

static const struct model_set biased_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
};

int
main(int argc, char **argv)
{
	static const struct model_set *const sets[] = { &biased_models };

	(void)argv;
	return models_run(sets, COUNT(sets), argc);
}
