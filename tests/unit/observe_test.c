/* observe_test.c - looking at all loops of the process, by number. */
#include "unit/metrics_fake.h"

/* Those that there are; fills the first `max`. */
static int
list_loops(weft_loop_info *out, int max)
{
	weft_loop_info more;
	uint64_t cursor = 0;
	int count = 0;

	while (weft_loop_list(&cursor, count < max ? &out[count] : &more) > 0)
		count++;
	return count;
}

static weft_loop *
make_named(const char *name)
{
	weft_loop_opts opts = { .name = name, .flags = WEFT_LOOP_NO_SPIN };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	return loop;
}

/* --- lists -------------------------------------------------------------- */

TEST(loops_are_listed_in_the_order_of_their_making)
{
	weft_loop *first = make_named("first"), *second = make_named("second");
	weft_loop_info info[2];

	CHECK_EQ(list_loops(info, 2), 2);
	CHECK_STR(info[0].name, "first");
	CHECK_STR(info[1].name, "second");
	CHECK(info[0].number > 0 && info[0].number < info[1].number);
	CHECK_EQ(info[0].state, WEFT_IDLE);
	OK(weft_loop_free(first));
	CHECK_EQ(list_loops(info, 2), 1);
	CHECK_STR(info[0].name, "second");
	OK(weft_loop_free(second));
	CHECK_EQ(list_loops(info, 2), 0);
}

TEST(the_number_of_a_loop_is_not_used_again)
{
	weft_loop *loop = make_named("one");
	weft_loop_info before, after;

	CHECK_EQ(list_loops(&before, 1), 1);
	OK(weft_loop_free(loop));
	loop = make_named("other");
	CHECK_EQ(list_loops(&after, 1), 1);
	CHECK(after.number > before.number);
	OK(weft_loop_free(loop));
}

TEST(a_listed_loop_has_its_counters_and_texts)
{
	weft_loop *loop = make_named("counted");
	weft_loop_info info;

	OK(weft_loop_post(loop, nothing, NULL));
	OK(weft_loop_run(loop));
	CHECK_EQ(list_loops(&info, 1), 1);
	CHECK_EQ(info.stats.posts_executed, 1);
	CHECK_EQ(info.threadlets, 0);
	CHECK_STR(info.backend, "");
	CHECK_STR(info.backend_reason, "not opened yet");
	CHECK(info.stats.backend == NULL && info.stats.backend_reason == NULL);
	weft_loop_stop(loop);
	CHECK_EQ(list_loops(&info, 1), 1);
	CHECK_EQ(info.state, WEFT_STOPPED);
	OK(weft_loop_free(loop));
}

TEST(a_list_of_loops_needs_a_cursor_and_room)
{
	weft_loop_info info;
	uint64_t cursor = 0;

	CHECK_MISUSE(weft_loop_list(NULL, &info), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_list(&cursor, NULL), WEFT_EINVAL);
}
