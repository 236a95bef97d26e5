/* promise_combine_test.c - one promise of many: all, all settled, any, race. */
#include "unit/promise/promised.h"

#define COUNT 3

static weft_promise *many[COUNT], *end;
static struct token tokens[COUNT], other;

typedef weft_promise *combine_fn(weft_promise *const *promises, size_t count);

static void
make_many(weft_loop *loop)
{
	for (int i = 0; i < COUNT; i++)
		many[i] = weft_promise_new(loop);
}

/* Combine the promises, and keep a reference to each. */
static weft_promise *
combine(combine_fn *fn)
{
	weft_promise *promise;

	for (int i = 0; i < COUNT; i++)
		(void)hold(many[i]);
	promise = fn(many, COUNT);
	CHECK(promise != NULL);
	return promise;
}

static void
drop_many(void)
{
	for (int i = 0; i < COUNT; i++)
		drop(many[i]);
}

static void
check_no_tokens(void)
{
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(owners(&tokens[i]), 0);
}

static const weft_list *
list_of(weft_promise *promise, weft_outcome want)
{
	weft_value value = { 0 };

	CHECK_EQ(weft_promise_state(promise, &value), want);
	CHECK(value.type == &weft_type_list);
	return value.as.ptr;
}

/* Check that the promise has a list of `count` consecutive numbers from `first` on. */
static void
check_list(weft_promise *promise, weft_outcome want, size_t count, int first)
{
	const weft_list *list = list_of(promise, want);

	CHECK_EQ(list->count, count);
	for (size_t i = 0; i < count; i++)
		CHECK_EQ(number_of(&list->items[i]), first + (int)i);
}

/* --- all ------------------------------------------------------------------ */

static void
fulfill_in_disorder(void *arg)
{
	static const int order[] = { 1, 2, 0 };

	make_many(arg);
	end = combine(weft_promise_all);
	for (int i = 0; i < COUNT; i++) {
		check_pending(end);
		OK(weft_promise_resolve(many[order[i]], shared(&tokens[order[i]], 10 + order[i])));
	}
	also_note(end, 'e');
}

static void
check_all(void)
{
	CHECK_STR(trace, "e");
	check_list(end, WEFT_FULFILLED, COUNT, 10);
	for (int i = 0; i < COUNT; i++) {
		CHECK_EQ(owners(&tokens[i]), 2);
		check_fulfilled(many[i], 10 + i);
	}
	drop_many();
	check_list(end, WEFT_FULFILLED, COUNT, 10);
	drop(end);
	check_no_tokens();
}

TEST(all_has_the_values_in_the_order_of_the_promises)
{
	in_both_ways(fulfill_in_disorder, check_all);
}

static void
reject_second(void *arg)
{
	make_many(arg);
	end = combine(weft_promise_all);
	also_note(end, 'e');
	OK(weft_promise_resolve(many[0], shared(&tokens[0], 1)));
	OK(weft_promise_reject(many[1], alone(&tokens[1], 2)));
	OK(weft_promise_reject(many[2], alone(&tokens[2], 3)));
}

static void
check_first_rejection(void)
{
	CHECK_STR(trace, "e");
	drop_many();
	CHECK_EQ(owners(&tokens[0]) + owners(&tokens[2]), 0);
	end_rejected(end, 2);
	check_no_tokens();
}

TEST(all_is_rejected_with_the_first_rejection)
{
	in_both_ways(reject_second, check_first_rejection);
}

/* One promise decides at once.  The others can never be settled. */
static void
reject_early(void *arg)
{
	make_many(arg);
	OK(weft_promise_reject(many[2], alone(&tokens[2], 3)));
	end = weft_promise_all(many, COUNT);
	also_note(end, 'e');
}

static void
check_early(void)
{
	CHECK_STR(trace, "e");
	end_rejected(end, 3);
	check_no_tokens();
}

TEST(all_does_not_wait_for_the_rest_after_a_rejection_and_drops_it)
{
	in_both_ways(reject_early, check_early);
}

/* --- all settled ------------------------------------------------------------ */

static void
settle_each(void *arg)
{
	make_many(arg);
	OK(weft_promise_resolve(many[0], alone(&tokens[0], 1)));
	end = combine(weft_promise_all_settled);
	OK(weft_promise_reject(many[1], alone(&tokens[1], 2)));
	drop(many[1]);
	check_pending(end);
	OK(weft_promise_resolve(many[2], weft_value_promise(hold(many[0]))));
	drop(many[2]);
	drop(many[0]);
	also_note(end, 'e');
}

static void
check_each(void)
{
	static const weft_outcome want[] = { WEFT_FULFILLED, WEFT_REJECTED, WEFT_FULFILLED };
	static const int numbers[] = { 1, 2, 1 };
	const weft_list *list = list_of(end, WEFT_FULFILLED);

	CHECK_STR(trace, "e");
	CHECK_EQ(list->count, COUNT);
	for (int i = 0; i < COUNT; i++) {
		CHECK(list->items[i].type == &weft_type_promise);
		check_settled(list->items[i].as.ptr, want[i], numbers[i]);
	}
	CHECK_EQ(owners(&tokens[0]), 1);
	drop(end);
	check_no_tokens();
}

TEST(all_settled_has_the_list_of_promises_when_each_has_settled)
{
	in_both_ways(settle_each, check_each);
}

/* --- any -------------------------------------------------------------------- */

static void
fulfill_third(void *arg)
{
	make_many(arg);
	end = combine(weft_promise_any);
	OK(weft_promise_reject(many[0], alone(&tokens[0], 1)));
	OK(weft_promise_resolve(many[2], alone(&tokens[2], 3)));
	OK(weft_promise_resolve(many[1], alone(&tokens[1], 2)));
	drop_many();
}

static void
check_third(void)
{
	CHECK_EQ(owners(&tokens[0]) + owners(&tokens[1]), 0);
	end_fulfilled(end, 3);
	check_no_tokens();
}

TEST(any_has_the_first_value)
{
	in_both_ways(fulfill_third, check_third);
}

static void
reject_each(void *arg)
{
	make_many(arg);
	OK(weft_promise_reject(many[1], shared(&tokens[1], 6)));
	end = combine(weft_promise_any);
	OK(weft_promise_reject(many[2], shared(&tokens[2], 7)));
	check_pending(end);
	OK(weft_promise_reject(many[0], shared(&tokens[0], 5)));
	also_note(end, 'e');
}

static void
check_reasons(void)
{
	CHECK_STR(trace, "e");
	check_list(end, WEFT_REJECTED, COUNT, 5);
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EREJECTED);
	drop_many();
	drop(end);
	check_no_tokens();
}

TEST(any_is_rejected_with_all_reasons)
{
	in_both_ways(reject_each, check_reasons);
}

/* --- race ------------------------------------------------------------------- */

static void
settle_in_a_race(void *arg)
{
	make_many(arg);
	end = combine(weft_promise_race);
	OK(weft_promise_reject(many[1], alone(&tokens[1], 2)));
	OK(weft_promise_resolve(many[0], alone(&tokens[0], 1)));
	OK(weft_promise_resolve(many[2], integer(0)));
	also_note(end, 'e');
}

static void
check_winner(void)
{
	CHECK_STR(trace, "e");
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EREJECTED);
	end_rejected(end, 2);
	drop_many();
	check_no_tokens();
}

TEST(race_settles_like_the_first_promise_to_settle)
{
	in_both_ways(settle_in_a_race, check_winner);
}

static void
race_with_settled(void *arg)
{
	make_many(arg);
	OK(weft_promise_resolve(many[2], alone(&tokens[2], 3)));
	OK(weft_promise_resolve(many[1], alone(&tokens[1], 2)));
	end = weft_promise_race(many, COUNT);
}

static void
check_first_in_order(void)
{
	end_fulfilled(end, 2);
	check_no_tokens();
}

TEST(race_among_settled_promises_is_won_by_the_first_in_the_list)
{
	in_both_ways(race_with_settled, check_first_in_order);
}

/* --- of none, of NULL, of the same ------------------------------------------ */

static void
combine_none(void *arg)
{
	(void)arg;
	end = weft_promise_all(NULL, 0);
	check_list(end, WEFT_FULFILLED, 0, 0);
	drop(end);
	end = weft_promise_all_settled(NULL, 0);
	check_list(end, WEFT_FULFILLED, 0, 0);
	drop(end);
	end = weft_promise_any(NULL, 0);
	check_list(end, WEFT_REJECTED, 0, 0);
	also_note(end, 'a');
	drop(end);
	end = weft_promise_race(NULL, 0);
	check_pending(end);
	also_note(end, 'r');
}

TEST(all_and_any_of_no_promises_settle_at_once_and_race_never_does)
{
	weft_loop *loop = run_on_loop(combine_none);

	CHECK_STR(trace, "a");
	check_pending(end);
	stop_idle(loop);
	CHECK_STR(trace, "ar");
	end_rejected(end, WEFT_ESHUTDOWN);
	CHECK_MISUSE(weft_promise_all(NULL, 0) ? 1 : 0, 0); /* no loop runs here */
}

TEST(a_list_that_contains_null_is_refused_and_its_promises_are_dropped)
{
	static combine_fn *const all[] = { weft_promise_all, weft_promise_all_settled,
		                           weft_promise_any, weft_promise_race };
	weft_loop *loop = make();

	for (size_t i = 0; i < 4; i++) {
		weft_promise *list[COUNT] = { weft_promise_new(loop), NULL,
			                      weft_promise_new(loop) };

		OK(weft_promise_resolve(list[2], alone(&other, 1)));
		CHECK(!all[i](list, COUNT));
		CHECK_EQ(owners(&other), 1); /* the loop has not yet released it */
		OK(weft_loop_run(loop));
		CHECK_EQ(owners(&other), 0);
	}
	stop_idle(loop);
}

static void
combine_twice_the_same(void *arg)
{
	weft_promise *list[2];

	make_many(arg);
	OK(weft_promise_resolve(many[1], shared(&tokens[1], 4)));
	list[0] = list[1] = many[1];
	(void)hold(many[1]);
	end = weft_promise_all(list, 2);
	list[0] = list[1] = many[0];
	(void)hold(many[0]);
	many[0] = weft_promise_all(hold(many[0]) ? list : NULL, 2);
	OK(weft_promise_resolve(list[0], shared(&tokens[0], 5)));
	drop(list[0]);
	drop(many[2]);
}

static void
check_twice(void)
{
	const weft_list *list = list_of(end, WEFT_FULFILLED);

	CHECK_EQ(number_of(&list->items[0]) + number_of(&list->items[1]), 8);
	list = list_of(many[0], WEFT_FULFILLED);
	CHECK_EQ(number_of(&list->items[0]) + number_of(&list->items[1]), 10);
	drop(end);
	drop(many[0]);
	check_no_tokens();
}

TEST(a_promise_may_occur_twice_in_a_list)
{
	in_both_ways(combine_twice_the_same, check_twice);
}

/* --- ownership of values ---------------------------------------------------- */

static void
resolve_held(void *arg)
{
	make_many(arg);
	OK(weft_promise_resolve(many[0], shared(&tokens[0], 1)));
	OK(weft_promise_resolve(many[1], alone(&tokens[1], 2)));
	end = combine(weft_promise_all);
	OK(weft_promise_resolve(many[2], shared(&tokens[2], 3)));
	also_note(end, 'e');
}

static void
check_not_permitted(void)
{
	CHECK_STR(trace, "e");
	end_rejected(end, WEFT_EPERM);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(owners(&tokens[i]), 1);
	drop_many();
	check_no_tokens();
}

TEST(all_is_rejected_if_an_unshareable_value_has_other_holders)
{
	in_both_ways(resolve_held, check_not_permitted);
}

static void
check_handed_over(void)
{
	check_list(end, WEFT_FULFILLED, COUNT, 1);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(owners(&tokens[i]), 1);
	drop(end);
	check_no_tokens();
}

static void
hand_over_settled(void *arg)
{
	make_many(arg);
	for (int i = 0; i < COUNT; i++)
		OK(weft_promise_resolve(many[i], alone(&tokens[i], 1 + i)));
	end = weft_promise_all(many, COUNT);
}

static void
hand_over_in_callback(void *arg)
{
	hand_over_settled(arg);
	check_list(end, WEFT_FULFILLED, COUNT, 1);
}

TEST(an_unshareable_value_without_other_holders_moves_into_the_list)
{
	weft_loop *loop = run_on_loop(hand_over_in_callback);

	check_handed_over();
	stop_idle(loop);
}

static void
hand_over_pending(void *arg)
{
	make_many(arg);
	end = combine(weft_promise_all);
	for (int i = 0; i < COUNT; i++) {
		OK(weft_promise_resolve(many[i], alone(&tokens[i], 1 + i)));
		drop(many[i]);
	}
}

TEST(an_unshareable_value_that_arrives_later_moves_into_the_list)
{
	in_both_ways(hand_over_pending, check_handed_over);
}

/* The values come through promises that no longer exist when all have settled. */
static void
hand_over_passed_on(void *arg)
{
	make_many(arg);
	for (int i = 0; i < COUNT; i++) {
		weft_promise *first = weft_promise_new(arg);

		OK(weft_promise_resolve(first, alone(&tokens[i], 1 + i)));
		if (i == 0)
			OK(weft_promise_resolve(many[i], weft_value_promise(first)));
		else
			drop(many[i]);
		if (i > 0)
			many[i] = weft_promise_then(first, NULL, NULL, NULL);
	}
	end = weft_promise_all(many, COUNT);
}

TEST(an_unshareable_value_that_was_passed_on_moves_into_the_list)
{
	in_both_ways(hand_over_passed_on, check_handed_over);
}

/* --- ends ------------------------------------------------------------------- */

static void
break_one(void *arg)
{
	make_many(arg);
	OK(weft_promise_resolve(many[0], alone(&tokens[0], 1)));
	drop(many[2]);
	many[2] = weft_promise_ref(many[0]);
	end = weft_promise_all(many, COUNT); /* the second can never settle */
}

static void
check_broken(void)
{
	end_rejected(end, WEFT_ECLOSED);
	check_no_tokens();
}

TEST(all_with_a_promise_that_can_never_settle_is_rejected)
{
	in_both_ways(break_one, check_broken);
}

static void
forget_result(void *arg)
{
	make_many(arg);
	drop(combine(weft_promise_all));
	drop(combine(weft_promise_any));
	drop(combine(weft_promise_race));
	drop(combine(weft_promise_all_settled));
	for (int i = 0; i < COUNT; i++)
		OK(weft_promise_resolve(many[i], alone(&tokens[i], i)));
	drop_many();
}

TEST(a_combined_promise_may_be_dropped_without_awaiting_it)
{
	in_both_ways(forget_result, check_no_tokens);
}

TEST(pending_combined_promises_are_rejected_when_the_loop_stops)
{
	weft_loop *loop = make();
	weft_promise *ends[4];

	make_many(loop);
	ends[0] = combine(weft_promise_all);
	ends[1] = combine(weft_promise_any);
	ends[2] = combine(weft_promise_race);
	ends[3] = combine(weft_promise_all_settled);
	OK(weft_loop_run(loop));
	stop_idle(loop);
	for (int i = 0; i < 4; i++) {
		check_rejected(ends[i], WEFT_ESHUTDOWN);
		drop(ends[i]);
	}
	drop_many();
}

/* --- many ------------------------------------------------------------------- */

#define CROWD 10000

static void
resolve_crowd(void *arg)
{
	static weft_promise *crowd[CROWD];

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = weft_promise_new(arg);
		if (i % 2)
			OK(weft_promise_resolve(crowd[i], integer(i)));
		else
			(void)hold(crowd[i]);
	}
	end = weft_promise_all(crowd, CROWD);
	for (int i = 0; i < CROWD; i += 2) {
		OK(weft_promise_resolve(crowd[i], integer(i)));
		drop(crowd[i]);
	}
}

static void
check_crowd(void)
{
	check_list(end, WEFT_FULFILLED, CROWD, 0);
	drop(end);
}

TEST(all_of_ten_thousand_promises_has_all_values_in_order)
{
	in_both_ways(resolve_crowd, check_crowd);
}

#define DEPTH 1000000

/* Each list contains the promise of the previous list. */
static void
nest(void *arg)
{
	end = weft_promise_new(arg);
	OK(weft_promise_resolve(end, alone(&other, 1)));
	for (int i = 0; i < DEPTH; i++)
		end = weft_promise_all_settled(&end, 1);
}

TEST(a_million_nested_lists_of_promises_can_be_dropped)
{
	weft_loop *loop = run_on_loop(nest);

	CHECK_EQ(owners(&other), 1);
	drop(end);
	CHECK_EQ(owners(&other), 0);
	stop_idle(loop);
}

static int
drop_nest(void *arg)
{
	(void)arg;
	drop(end);
	CHECK_EQ(owners(&other), 0);
	return 0;
}

static void
nest_and_go(void *arg)
{
	nest(arg);
	CHECK(weft_go(drop_nest, NULL) > 0);
}

TEST(a_million_nested_lists_can_be_dropped_on_the_stack_of_a_threadlet)
{
	weft_loop *loop = run_on_loop(nest_and_go);

	CHECK_EQ(owners(&other), 0);
	stop_idle(loop);
}

/* This drop callback drops a promise, whose value must be dropped before that call returns. */
static void
drop_and_look(void *ptr)
{
	(void)ptr;
	CHECK_EQ(owners(&other), 1);
	drop(end);
	CHECK_EQ(owners(&other), 0);
}

static const weft_type type_looks = { .name = "looks", .drop = drop_and_look };

static void
drop_in_drop(void *arg)
{
	weft_promise *outer = weft_promise_new(arg);

	end = weft_promise_new(arg);
	OK(weft_promise_resolve(end, alone(&other, 1)));
	OK(weft_promise_resolve(outer, weft_value_ptr(&type_looks, &other)));
	drop(outer);
	CHECK_EQ(owners(&other), 0);
}

TEST(a_value_dropped_inside_a_drop_callback_is_dropped_at_once)
{
	stop_idle(run_on_loop(drop_in_drop));
}
