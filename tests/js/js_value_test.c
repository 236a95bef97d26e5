/* js_value_test.c - conversion of values between C and scripts. */
#include <math.h>
#include "js/script.h"

static weft_value
evaluate(struct script *s, const char *source)
{
	weft_value value = { 0 };

	if (weft_js_eval(s->js, source, "test.js", &value) < 0)
		test_fail(__FILE__, __LINE__, "%s", weft_detail());
	return value;
}

static void
check_type(struct script *s, const char *source, const weft_type *type)
{
	weft_value value = evaluate(s, source);

	if (value.type != type)
		test_fail(__FILE__, __LINE__, "%s is %s, not %s", source,
		          value.type ? value.type->name : "none", type ? type->name : "none");
	weft_value_drop(&value);
}

TEST(js_script_values_are_converted_to_c_types)
{
	struct script s;

	begin(&s);
	check_type(&s, "undefined", NULL);
	check_type(&s, "null", NULL);
	check_type(&s, "1", &weft_type_integer);
	check_type(&s, "2 ** 53", &weft_type_integer);
	check_type(&s, "-1e15", &weft_type_integer);
	check_type(&s, "2 ** 54", &weft_type_number);
	check_type(&s, "0.5", &weft_type_number);
	check_type(&s, "-0", &weft_type_number);
	check_type(&s, "NaN", &weft_type_number);
	check_type(&s, "-Infinity", &weft_type_number);
	check_type(&s, "'text'", &weft_type_text);
	check_type(&s, "'a\\0b'", &weft_type_bytes);
	check_type(&s, "[1, [2], 'x']", &weft_type_list);
	check_type(&s, "new Uint8Array(3)", &weft_type_bytes);
	check_type(&s, "new ArrayBuffer(3)", &weft_type_bytes);
	check_type(&s, "new Error('x')", &weft_type_error);
	check_type(&s, "Promise.resolve(1)", &weft_type_promise);
	check_type(&s, "({})", &weft_type_js);
	check_type(&s, "() => 1", &weft_type_js);
	check_type(&s, "Symbol('x')", &weft_type_js);
	check_type(&s, "12345678901234567890n", &weft_type_js);
	check_type(&s, "new Uint16Array(3)", &weft_type_js);
	CHECK_EQ(eval_integer(&s, "true"), 1);
	CHECK_EQ(eval_integer(&s, "false"), 0);
	end(&s);
}

TEST(js_lists_keep_their_order_and_have_a_maximum_depth)
{
	struct script s;
	weft_value value;
	const weft_list *list;

	begin(&s);
	value = evaluate(&s, "[1, 'two', [3, [4]], , null]");
	list = value.as.ptr;
	CHECK_EQ(list->count, 5);
	CHECK_EQ(list->items[0].as.integer, 1);
	CHECK_STR(list->items[1].as.ptr, "two");
	CHECK_EQ(((weft_list *)list->items[2].as.ptr)->items[0].as.integer, 3);
	CHECK(list->items[3].type == NULL && list->items[4].type == NULL);
	weft_value_drop(&value);
	CHECK_EQ(weft_js_eval(s.js, "let a = []; a.push(a); a", NULL, &value), WEFT_EINVAL);
	CHECK_EQ(weft_js_eval(s.js,
	                      "[{ }, { get x() { return 1 } },"
	                      "new Proxy([1], { get() { throw new Error('no') } })]",
	                      NULL, &value),
	         WEFT_ESCRIPT);
	end(&s);
}

/* Calls `back(value)`, which returns its argument.  `said` is the script's description of
 * it. */
static weft_value
go_round(struct script *s, weft_value value, const char *said)
{
	weft_value out = { 0 };

	s->said[0] = '\0';
	if (weft_js_call(s->js, "back", &value, 1, &out) < 0)
		test_fail(__FILE__, __LINE__, "%s", weft_detail());
	CHECK_STR(s->said, said);
	weft_value_drop(&value);
	return out;
}

static const char back_text[] =
	"function back(v) { say(typeof v, v instanceof Error ? v.code : String(v));"
	" return v }";

TEST(js_values_of_c_are_passed_in_and_returned)
{
	weft_value items[2] = { weft_value_integer(1), { 0 } };
	weft_value number = { &weft_type_number, { .number = 0.25 } };
	struct script s;
	weft_value out;

	begin(&s);
	eval(&s, back_text);
	out = go_round(&s, (weft_value){ 0 }, "undefined undefined ");
	CHECK(out.type == NULL);
	CHECK_EQ(go_round(&s, weft_value_integer(-5), "number -5 ").as.integer, -5);
	CHECK(go_round(&s, number, "number 0.25 ").as.number == 0.25);
	out = go_round(&s, weft_value_integer(INT64_MAX), "bigint 9223372036854775807 ");
	CHECK(out.type == &weft_type_js);
	weft_value_drop(&out);
	out = go_round(&s, weft_value_text("gr\xc3\xbc\xc3\x9f"), "string gr\xc3\xbc\xc3\x9f ");
	CHECK_STR(out.as.ptr, "gr\xc3\xbc\xc3\x9f");
	weft_value_drop(&out);
	out = go_round(&s, weft_value_bytes((weft_span){ "\1\2", 2 }), "object 1,2 ");
	CHECK_EQ(((weft_span *)out.as.ptr)->size, 2);
	weft_value_drop(&out);
	items[1] = weft_value_text("b");
	out = go_round(&s, weft_value_list(items, 2), "object 1,b ");
	CHECK_EQ(((weft_list *)out.as.ptr)->count, 2);
	weft_value_drop(&out);
	out = go_round(&s, weft_value_error(WEFT_EPIPE), "object WEFT_EPIPE ");
	CHECK_EQ(out.as.integer, WEFT_EPIPE);
	end(&s);
}

/* --- values of custom C types --------------------------------------------------------- */

static int drops;

static void
drop_it(void *ptr)
{
	(void)ptr;
	drops++;
}

static void
share_it(void *ptr)
{
	(void)ptr;
	drops--;
}

static const weft_type shared_type = { .name = "own", .drop = drop_it, .share = share_it };
static const weft_type lone_type = { .name = "lone", .drop = drop_it };

static int
give_own(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	*out = weft_value_ptr(arg, &drops);
	return 0;
}

TEST(js_value_of_a_custom_type_is_passed_through_and_dropped_once)
{
	struct script s;
	weft_value out;

	drops = 0;
	begin(&s);
	OK(weft_js_expose(s.js, "own", false, give_own, (void *)(uintptr_t)&shared_type));
	OK(weft_js_expose(s.js, "lone", false, give_own, (void *)(uintptr_t)&lone_type));
	out = evaluate(&s, "let kept = own(); kept");
	CHECK(out.type == &shared_type && out.as.ptr == &drops);
	weft_value_drop(&out);
	CHECK_EQ(drops, 0); /* the script still has it */
	eval(&s, "kept = null");
	CHECK_EQ(drops, 1);
	CHECK_EQ(weft_js_eval(s.js, "kept = lone()", NULL, &out), WEFT_EPERM);
	eval(&s, "kept = null");
	CHECK_EQ(drops, 2);
	end(&s);
	CHECK_EQ(drops, 2);
}

/* --- held values ------------------------------------------------------------------------ */

TEST(js_held_value_is_passed_back_as_the_same_object)
{
	struct script s;
	weft_value held[2], out = { 0 };

	begin(&s);
	held[0] = evaluate(&s, "globalThis.object = { }");
	held[1] = held[0];
	eval(&s, "function same(a, b) { return a === b && a === object }");
	OK(weft_js_call(s.js, "same", held, 2, &out));
	CHECK_EQ(out.as.integer, 1);
	OK(weft_value_share(&held[0], &held[1]));
	weft_value_drop(&held[0]);
	weft_value_drop(&held[1]);
	end(&s);
}

TEST(js_held_value_of_another_engine_is_refused)
{
	struct script s, other;
	weft_value held;

	begin(&s);
	begin(&other);
	held = evaluate(&s, "({})");
	eval(&other, "function take() {}");
	CHECK_EQ(weft_js_call(other.js, "take", &held, 1, NULL), WEFT_ESCRIPT);
	weft_value_drop(&held);
	end(&other);
	end(&s);
}

static void *
drop_elsewhere(void *arg)
{
	weft_value_drop(arg);
	return NULL;
}

TEST(js_held_value_can_be_dropped_on_any_thread)
{
	struct script s;
	weft_value held;

	drops = 0;
	begin(&s);
	OK(weft_js_expose(s.js, "own", false, give_own, (void *)(uintptr_t)&lone_type));
	held = evaluate(&s, "({ part: own() })");
	OK(pthread_join(thread(drop_elsewhere, &held), NULL));
	CHECK_EQ(drops, 0); /* the object belongs to the loop's thread */
	OK(weft_loop_run(s.loop));
	CHECK_EQ(drops, 1);
	end(&s);
}

TEST(js_held_value_can_outlive_its_engine)
{
	struct script s;
	weft_value held, second;

	begin(&s);
	held = evaluate(&s, "({})");
	second = evaluate(&s, "[() => 1]");
	OK(weft_js_free(s.js));
	weft_value_drop(&held);
	OK(pthread_join(thread(drop_elsewhere, &second), NULL));
	stop_idle(s.loop);
}

TEST(js_values_dropped_on_another_thread_while_the_engine_ends_do_not_leak)
{
	for (int i = 0; i < 50; i++) {
		struct script s;
		weft_value held;
		pthread_t other;

		begin(&s);
		held = evaluate(&s, "({})");
		other = thread(drop_elsewhere, &held);
		OK(weft_js_free(s.js));
		OK(weft_loop_free(s.loop));
		OK(pthread_join(other, NULL));
	}
}

TEST(js_value_dropped_while_the_loop_is_idle_is_no_work_of_the_loop)
{
	struct script s;
	weft_value here, elsewhere;

	drops = 0;
	begin(&s);
	OK(weft_js_expose(s.js, "own", false, give_own, (void *)(uintptr_t)&lone_type));
	here = evaluate(&s, "({ part: own() })");
	elsewhere = evaluate(&s, "({ part: own() })");
	weft_value_drop(&here);
	OK(pthread_join(thread(drop_elsewhere, &elsewhere), NULL));
	OK(weft_js_free(s.js));
	CHECK_EQ(drops, 2);
	OK(weft_loop_free(s.loop));
}

TEST(js_values_dropped_while_the_loop_is_idle_end_before_the_next_call)
{
	struct script s;
	weft_value held;

	drops = 0;
	begin(&s);
	OK(weft_js_expose(s.js, "own", false, give_own, (void *)(uintptr_t)&lone_type));
	for (int i = 0; i < 3; i++) {
		held = evaluate(&s, "({ part: own() })");
		CHECK_EQ(drops, i);
		weft_value_drop(&held);
	}
	eval(&s, "1");
	CHECK_EQ(drops, 3);
	end(&s);
}

static int
ignore_args(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	(void)out;
	(void)arg;
	return 0;
}

TEST(js_arguments_of_a_host_function_end_with_the_call)
{
	weft_js_opts opts = { .memory_bytes = 1 << 20 };
	struct script s;

	begin_with(&s, &opts);
	OK(weft_js_expose(s.js, "ignore", false, ignore_args, NULL));
	eval(&s, "for (let i = 0; i < 50000; i++) ignore({ i })");
	end(&s);
}

/* The loop refuses posts by then. */
TEST(js_value_dropped_on_another_thread_after_its_loop_has_stopped_ends_with_the_engine)
{
	struct script s;
	weft_value held;

	drops = 0;
	begin(&s);
	OK(weft_js_expose(s.js, "own", false, give_own, (void *)(uintptr_t)&lone_type));
	held = evaluate(&s, "({ part: own() })");
	weft_loop_shutdown(s.loop);
	(void)weft_loop_run(s.loop);
	CHECK_EQ(weft_loop_state(s.loop), WEFT_STOPPED);
	OK(pthread_join(thread(drop_elsewhere, &held), NULL));
	CHECK_EQ(drops, 0);
	end(&s);
	CHECK_EQ(drops, 1);
}

/* A value of C that drops another value, on another thread, and waits for that. */
static void
drop_other(void *ptr)
{
	OK(pthread_join(thread(drop_elsewhere, ptr), NULL));
}

static const weft_type dropping_type = { .name = "dropping", .drop = drop_other };

static int
give_dropping(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	*out = weft_value_ptr(&dropping_type, arg);
	return 0;
}

/* The handle of `held` is unlinked, but the list is still open. */
static void
check_dropped_by_its_own_end(bool stopped)
{
	struct script s;
	weft_value held;

	begin(&s);
	OK(weft_js_expose(s.js, "dropping", false, give_dropping, &held));
	held = evaluate(&s, "({ part: dropping() })");
	if (stopped) {
		weft_loop_shutdown(s.loop);
		(void)weft_loop_run(s.loop);
	}
	OK(weft_js_free(s.js));
	OK(weft_loop_free(s.loop));
}

TEST(js_value_dropped_on_another_thread_while_the_engine_ends_it_does_not_leak)
{
	check_dropped_by_its_own_end(false);
	check_dropped_by_its_own_end(true);
}

/* --- while the loop runs on another thread ------------------------------------------------- */

static void
drop_and_count(void *ptr)
{
	(void)__atomic_add_fetch((int *)ptr, 1, __ATOMIC_RELAXED);
}

static const weft_type counting_type = { .name = "counting", .drop = drop_and_count };

static int
give_counting(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	*out = weft_value_ptr(&counting_type, arg);
	return 0;
}

/* This thread called the engine last.  The values end although the loop has nothing to do. */
static void
check_dropped_beside_the_loop(const char *source)
{
	enum { COUNT = 200 };
	weft_value held[COUNT];
	struct script s;
	int ended = 0;

	begin(&s);
	OK(weft_js_expose(s.js, "counting", false, give_counting, &ended));
	for (int i = 0; i < COUNT; i++)
		held[i] = evaluate(&s, "({ part: counting() })");
	eval(&s, source);
	OK(weft_loop_start(s.loop));
	for (int i = 0; i < COUNT; i++)
		weft_value_drop(&held[i]);
	while (__atomic_load_n(&ended, __ATOMIC_RELAXED) < COUNT)
		sched_yield();
	weft_loop_shutdown(s.loop);
	OK(weft_loop_wait_stopped(s.loop, WEFT_NEVER));
	end(&s);
}

TEST(js_values_are_dropped_while_their_loop_runs_on_another_thread)
{
	check_dropped_beside_the_loop("1");
	check_dropped_beside_the_loop(
		"setInterval(() => { for (let i = 0; i < 100; i++) ({ i }) }, 0)");
}
