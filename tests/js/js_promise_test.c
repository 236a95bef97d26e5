/* js_promise_test.c - promises in both directions, host functions that suspend, rejections. */
#include "js/script.h"

static weft_promise *
promise_of(struct script *s, const char *source)
{
	weft_value value = { 0 };

	OK(weft_js_eval(s->js, source, "test.js", &value));
	CHECK(value.type == &weft_type_promise);
	return value.as.ptr;
}

static void
check_settled(weft_promise *promise, weft_outcome outcome, int64_t number)
{
	weft_value value = { 0 };

	CHECK_EQ(weft_promise_state(promise, &value), outcome);
	if (outcome != WEFT_PENDING)
		CHECK_EQ(value.as.integer, number);
	(void)weft_promise_unref(promise);
}

TEST(js_promise_of_a_script_settles_a_promise_of_c)
{
	struct script s;
	weft_promise *good, *bad, *thrown, *number;

	begin(&s);
	good = promise_of(&s, "new Promise(r => setTimeout(r, 1, 7))");
	bad = promise_of(&s, "Promise.reject(new Error('no'))");
	thrown = promise_of(&s, "(async () => { await null; null.x })()");
	number = promise_of(&s, "Promise.reject(9)");
	OK(weft_loop_run(s.loop));
	check_settled(good, WEFT_FULFILLED, 7);
	check_settled(bad, WEFT_REJECTED, WEFT_ESCRIPT);
	check_settled(thrown, WEFT_REJECTED, WEFT_ESCRIPT);
	check_settled(number, WEFT_REJECTED, 9);
	CHECK_EQ(s.errors, 0); /* C handles these, or the promise reports them */
	end(&s);
}

static int
await_script(void *arg)
{
	struct script *s = arg;
	weft_promise *promise = promise_of(
		s, "(async () => { await 1; throw new RangeError('far') })()");

	CHECK_EQ(weft_await(promise, NULL, WEFT_NEVER), WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "RangeError: far") == weft_detail());
	(void)weft_promise_unref(promise);
	return 0;
}

TEST(js_threadlet_awaits_a_script_and_reads_its_error)
{
	struct script s;
	weft_go_opts opts = { 0 };

	begin(&s);
	opts.loop = s.loop;
	CHECK(weft_go_with(&opts, await_script, &s) > 0);
	OK(weft_loop_run(s.loop));
	end(&s);
}

static int
keep_promise(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)out;
	CHECK_EQ(count, 1);
	return weft_value_share(&args[0], arg);
}

TEST(js_garbage_collection_does_not_change_the_text_of_an_error)
{
	struct script s;
	weft_value kept = { 0 };

	begin(&s);
	OK(weft_js_expose(s.js, "keep", false, keep_promise, &kept));
	check_fails(&s,
	            "(() => { const error = new Error('of the script');"
	            " error.promise = new Promise(() => {}); keep(error.promise);"
	            " throw error })()",
	            WEFT_ESCRIPT, "Error: of the script");
	CHECK(kept.type == &weft_type_promise);
	check_settled(weft_promise_ref(kept.as.ptr), WEFT_REJECTED, WEFT_ECLOSED);
	weft_value_drop(&kept);
	end(&s);
}

TEST(js_promise_that_can_no_longer_be_settled_is_rejected)
{
	struct script s;
	weft_promise *promise;

	begin(&s);
	promise = promise_of(&s, "new Promise(() => {})");
	eval(&s, "1");
	check_settled(weft_promise_ref(promise), WEFT_REJECTED, WEFT_ECLOSED);
	(void)weft_promise_unref(promise);
	OK(weft_loop_run(s.loop));
	end(&s);
}

TEST(js_freeing_the_engine_rejects_promises_held_by_c)
{
	struct script s;
	weft_promise *promise;

	begin(&s);
	promise = promise_of(&s, "globalThis.kept = new Promise(() => {})");
	OK(weft_js_free(s.js));
	check_settled(promise, WEFT_REJECTED, WEFT_ESHUTDOWN);
	stop_idle(s.loop);
}

/* --- from C to scripts ----------------------------------------------------------------- */

static int
give_promise(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	*out = weft_value_promise(weft_promise_ref(arg));
	return 0;
}

static const char wait_text[] =
	"given().then(v => say('ok', v), e => say('bad', e.code, e.message))";

TEST(js_promise_of_c_settles_a_promise_of_the_script)
{
	struct script s;
	weft_promise *promise;

	begin(&s);
	promise = weft_promise_new(s.loop);
	OK(weft_js_expose(s.js, "given", false, give_promise, promise));
	run(&s, wait_text);
	CHECK_STR(s.said, "");
	OK(weft_promise_resolve(promise, weft_value_text("late")));
	OK(weft_loop_run(s.loop));
	run(&s, wait_text); /* already settled */
	CHECK_STR(s.said, "ok late ok late ");
	(void)weft_promise_unref(promise);
	end(&s);
}

TEST(js_rejection_of_c_keeps_its_text)
{
	struct script s;
	weft_promise *promise;

	begin(&s);
	promise = weft_promise_new(s.loop);
	OK(weft_js_expose(s.js, "given", false, give_promise, promise));
	eval(&s, wait_text);
	(void)weft_fail(WEFT_ECONNREFUSED, "connect: refused");
	OK(weft_promise_reject(promise, weft_value_error(WEFT_ECONNREFUSED)));
	OK(weft_loop_run(s.loop));
	CHECK_STR(s.said, "bad WEFT_ECONNREFUSED connect: refused ");
	(void)weft_promise_unref(promise);
	end(&s);
}

static void *
resolve_elsewhere(void *arg)
{
	OK(weft_promise_resolve(arg, weft_value_integer(5)));
	return NULL;
}

TEST(js_promise_of_another_loop_settles_on_this_loop)
{
	struct script s;
	weft_loop *far = make_started();
	weft_promise *promise = weft_promise_new(far);

	begin(&s);
	OK(weft_js_expose(s.js, "given", false, give_promise, promise));
	eval(&s, wait_text);
	eval(&s, "let waiting = setInterval(() => {}, 1);"
	         "given().then(() => clearInterval(waiting))");
	OK(pthread_join(thread(resolve_elsewhere, promise), NULL));
	OK(weft_loop_run(s.loop));
	CHECK_STR(s.said, "ok 5 ");
	(void)weft_promise_unref(promise);
	end(&s);
	stop_and_free(far);
}

TEST(js_promise_of_c_can_outlive_the_engine)
{
	struct script s;
	weft_promise *promise;

	begin(&s);
	promise = weft_promise_new(s.loop);
	OK(weft_js_expose(s.js, "given", false, give_promise, promise));
	eval(&s, wait_text);
	OK(weft_js_free(s.js));
	OK(weft_promise_resolve(promise, weft_value_integer(5)));
	OK(weft_loop_run(s.loop));
	(void)weft_promise_unref(promise);
	CHECK_STR(s.said, "");
	stop_idle(s.loop);
}

TEST(js_stopping_the_loop_rejects_promises_that_scripts_await)
{
	struct script s;
	weft_promise *promise;

	begin(&s);
	promise = weft_promise_new(s.loop);
	OK(weft_js_expose(s.js, "given", false, give_promise, promise));
	eval(&s, wait_text);
	weft_loop_shutdown(s.loop);
	OK(weft_loop_run(s.loop));
	(void)weft_promise_unref(promise);
	OK(weft_js_free(s.js));
	OK(weft_loop_free(s.loop));
}

/* --- host functions that suspend ------------------------------------------------------- */

static int
double_it(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	int rc = weft_sleep_until(weft_after(WEFT_MS));

	(void)js;
	(void)arg;
	if (rc < 0)
		return rc;
	if (count != 1 || args[0].type != &weft_type_integer)
		return weft_fail(WEFT_EINVAL, "double: a number is needed");
	*out = weft_value_integer(2 * args[0].as.integer);
	return 0;
}

TEST(js_host_function_that_suspends_returns_a_promise)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "double", true, double_it, NULL));
	run(&s, "(async () => {"
	        "  say((await Promise.all([double(1), double(2), double(21)])).join());"
	        "  try { await double('x') } catch (e) { say(e.code, e.message) }"
	        "})(); say(double(0) instanceof Promise)");
	CHECK_STR(s.said, "1 2,4,42 WEFT_EINVAL double: a number is needed ");
	end(&s);
}

static int
use_freed(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)out;
	CHECK_EQ(count, 1);
	CHECK(args[0].type == &weft_type_js);
	while (!*(bool *)arg)
		OK(weft_yield());
	CHECK_EQ(weft_js_eval(js, "1", NULL, NULL), WEFT_ESHUTDOWN);
	*(bool *)arg = false;
	return 0;
}

TEST(js_suspended_host_function_can_outlive_the_engine)
{
	struct script s;
	bool freed = false;

	begin(&s);
	OK(weft_js_expose(s.js, "wait", true, use_freed, &freed));
	eval(&s, "wait({})");
	turns(s.loop, 3);
	OK(weft_js_free(s.js));
	freed = true;
	OK(weft_loop_run(s.loop));
	CHECK(!freed);
	stop_idle(s.loop);
}

/* --- rejections ---------------------------------------------------------------------------- */

TEST(js_unhandled_rejection_is_reported)
{
	struct script s;

	begin(&s);
	run(&s, "Promise.reject(new Error('alone')); setTimeout(() => say('on'), 1)");
	CHECK_EQ(s.errors, 1);
	CHECK_EQ(s.error, WEFT_ESCRIPT);
	CHECK(strstr(s.text, "Error: alone\n    at") == s.text);
	CHECK_STR(s.said, "on ");
	CHECK_EQ(weft_js_status(s.js), 1);
	end(&s);
}

TEST(js_rejection_handled_before_the_end_of_the_checkpoint_is_not_reported)
{
	struct script s;

	begin(&s);
	run(&s, "let p = Promise.reject(1), q = Promise.reject(2), r = Promise.reject(3);"
	        "q.catch(() => {}); p.catch(() => {});"
	        "Promise.resolve().then(() => process.nextTick(() =>"
	        "  Promise.resolve().then(() => r.catch(() => say('in time')))))");
	CHECK_EQ(s.errors, 0);
	CHECK_STR(s.said, "in time ");
	end(&s);
}

TEST(js_many_handled_rejections_are_not_reported)
{
	struct script s;

	begin(&s);
	run(&s, "let all = []; for (let i = 0; i < 5000; i++) all.push(Promise.reject(i));"
	        "Promise.allSettled(all).then(a => say(a.length))");
	CHECK_EQ(s.errors, 0);
	CHECK_STR(s.said, "5000 ");
	end(&s);
}
