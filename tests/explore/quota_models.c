/* quota_models.c - a connection is closed while its listener is freed and the loop stops.
 *
 * The quota is full and waits for room.  The thread that removes the connection may have to send
 * the node, and then touches the listener's loop.  Each model ends by freeing that loop: a
 * reference that nothing drops makes it fail, and a late access is a use of freed memory.
 */
#include "loop/core/loop.h"
#include "models.h"
#include "net/stream/stream.h"

struct world {
	weft_loop *loop;
	struct weft__quota *quota;
	uint32_t rooms; /* calls of the listener's function */
};

static void
on_room(void *arg)
{
	struct world *w = arg;

	weft__put(w->rooms, weft__get(w->rooms) + 1);
}

static void
setup(void *state)
{
	struct world *w = state;
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN | WEFT_LOOP_KEEP };

	w->loop = weft_loop_new(&opts);
	w->quota = weft__quota_new(1, on_room, w);
	EXPLORE_CHECK(w->loop && w->quota);
	EXPLORE_CHECK(weft__quota_enter(w->quota, w->loop));
	EXPLORE_CHECK(!weft__quota_enter(w->quota, w->loop));
}

/* --- threads -------------------------------------------------------------- */

static void
leave(void *state)
{
	struct world *w = state;

	weft__quota_leave(w->quota);
}

static void
end_loop(struct world *w)
{
	weft_loop_shutdown(w->loop);
	if (weft_loop_state(w->loop) != WEFT_STOPPED)
		EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
}

static void
drop_and_end(void *state)
{
	struct world *w = state;

	weft__quota_drop(w->quota);
	end_loop(w);
}

/* Then nothing keeps the loop, and the other thread no longer touches it. */
static void
end_and_drop(void *state)
{
	struct world *w = state;

	end_loop(w);
	weft__quota_drop(w->quota);
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
	w->loop = NULL;
}

/* The node may have run before, and the quota may wait for room once more. */
static void
run_and_fill(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_loop_run_once(w->loop, WEFT_NOWAIT) >= 0);
	if (weft__quota_enter(w->quota, w->loop))
		weft__quota_leave(w->quota);
	drop_and_end(w);
}

/* --- checks --------------------------------------------------------------- */

static void
check_freed(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rooms <= 1);
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
}

/* --- the models ------------------------------------------------------------- */

#define TWO(name_, one_, check_)                                                           \
	{                                                                                  \
		.name = name_, .state_size = sizeof(struct world), .setup = setup,         \
		.check = check_, .preemptions = 2, .steps_max = 4000, .late_unpark = true, \
		.threads = 2, .thread = { one_, leave },                                   \
	}

static const struct explore_model models[] = {
	TWO("a listener is freed and its loop stops as room is made", drop_and_end, check_freed),
	TWO("a stopped loop frees its listener as room is made", end_and_drop, NULL),
	TWO("a listener fills up again as room is made", run_and_fill, check_freed),
};

const struct model_set quota_models = {
	.models = models,
	.model_count = COUNT(models),
	.as_it_is = true,
};
