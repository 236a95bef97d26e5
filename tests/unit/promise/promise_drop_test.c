/* promise_drop_test.c - a thread drops the last reference to a promise as the loop settles it.
 *
 * These tests meet the moment by chance; tests/explore/promise_models.c meets it in all ways.
 */
#include <sched.h>
#include <weft/abort.h>
#include <weft/op.h>
#include "unit/promise/promised.h"

static weft_loop *loop;

enum { DROPS = TEST_TSAN ? 2000 : 10000, SOON_NS = 15000, SPREAD_NS = 12000 };

/* It may spin: a loop that sleeps notices a deadline much later. */
static void
start_spinning(void)
{
	loop = weft_loop_new(&(weft_loop_opts){ .flags = WEFT_LOOP_KEEP });
	CHECK(loop != NULL);
	OK(weft_loop_start(loop));
}

/* Returns at a random moment around the one at which the loop notices that `due_ns` has passed. */
static void
wait_about(uint64_t due_ns, uint64_t *seed)
{
	uint64_t until_ns = due_ns + test_random(seed) % SPREAD_NS;

	while (weft_now() < until_ns)
		;
}

TEST(the_last_reference_to_a_signal_may_be_dropped_as_its_deadline_passes)
{
	uint64_t seed = test_seed();

	start_spinning();
	for (int i = 0; i < DROPS; i++) {
		uint64_t due_ns = weft_now() + SOON_NS;
		weft_abort *signal = weft_abort_new_timeout(loop, due_ns);

		wait_about(due_ns, &seed);
		(void)weft_abort_unref(signal);
	}
	stop_and_free(loop);
}

struct sleeping {
	weft_promise *promise;
	uint64_t due_ns;
	weft__a32 made;
};

static void
make_sleeping(void *arg)
{
	struct sleeping *sleeping = arg;
	weft_op *op;

	sleeping->promise = weft_promise_new_op(loop, &op);
	sleeping->due_ns = weft_now() + SOON_NS;
	OK(weft_op_sleep(op, sleeping->due_ns));
	weft__store(&sleeping->made, 1, WEFT__RELEASE);
}

TEST(the_last_reference_to_a_promise_may_be_dropped_as_its_op_finishes)
{
	uint64_t seed = test_seed();

	start_spinning();
	for (int i = 0; i < DROPS; i++) {
		struct sleeping sleeping = { 0 };

		OK(weft_loop_post(loop, make_sleeping, &sleeping));
		while (!weft__load(&sleeping.made, WEFT__ACQUIRE))
			sched_yield();
		wait_about(sleeping.due_ns, &seed);
		(void)weft_promise_unref(sleeping.promise);
	}
	stop_and_free(loop);
}
