/* js_engine_test.c - lifetime of an engine, calls in both directions, exceptions. */
#include "js/script.h"

TEST(js_eval_returns_the_last_value_of_the_script)
{
	struct script s;

	begin(&s);
	CHECK_EQ(eval_integer(&s, "let a = 40; a + 2"), 42);
	CHECK_EQ(eval_integer(&s, "a"), 40); /* scripts share their globals */
	end(&s);
}

TEST(js_error_detail_has_message_position_and_stack)
{
	struct script s;

	begin(&s);
	check_fails(&s, "function inner() {\n  throw new TypeError('why');\n}\ninner()",
	            WEFT_ESCRIPT, "TypeError: why\n    at inner (test.js:2");
	check_fails(&s, "throw 42", WEFT_ESCRIPT, "42");
	check_fails(&s, "throw {}", WEFT_ESCRIPT, "[object Object]");
	check_fails(&s, "throw { toString() { throw 1 } }", WEFT_ESCRIPT, "");
	CHECK_EQ(s.errors, 0); /* the caller got the errors */
	end(&s);
}

TEST(js_syntax_error_has_a_position)
{
	struct script s;

	begin(&s);
	check_fails(&s, "let x = 1;\nlet = ;", WEFT_ESCRIPT, "SyntaxError");
	CHECK(strstr(weft_detail(), "test.js:2") != NULL);
	CHECK_EQ(eval_integer(&s, "1 + 1"), 2);
	end(&s);
}

TEST(js_functions_are_called_by_path)
{
	weft_value args[2] = { weft_value_integer(20), weft_value_integer(2) };
	weft_value out = { 0 };
	struct script s;

	begin(&s);
	eval(&s, "globalThis.math = { by: 1, times(a, b) { return a * b + this.by } };");
	OK(weft_js_call(s.js, "math.times", args, 2, &out));
	CHECK_EQ(out.as.integer, 41);
	CHECK_EQ(weft_js_call(s.js, "math.none", args, 2, &out), WEFT_ENOENT);
	CHECK_EQ(weft_js_call(s.js, "none.at.all", NULL, 0, NULL), WEFT_ENOENT);
	CHECK_EQ(weft_js_call(s.js, "math.by", NULL, 0, NULL), WEFT_ENOENT);
	CHECK_EQ(weft_js_call(s.js, NULL, NULL, 0, NULL), WEFT_EINVAL);
	end(&s);
}

static int
fail_with_text(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	(void)out;
	(void)arg;
	return weft_fail(WEFT_EADDRINUSE, "listen: in use");
}

TEST(js_error_from_c_keeps_its_code_and_text_through_a_script)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "host.listen", false, fail_with_text, NULL));
	run(&s, "try { host.listen() } catch (e) { say(e.message, e.code, e.errno) }");
	CHECK_STR(s.said, "listen: in use WEFT_EADDRINUSE -98 ");
	check_fails(&s, "host.listen()", WEFT_EADDRINUSE, "listen: in use");
	end(&s);
}

static int
fail_silently(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	(void)out;
	(void)arg;
	return WEFT_EPIPE;
}

TEST(js_error_without_a_text_does_not_get_the_text_of_another)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "loud", false, fail_with_text, NULL));
	OK(weft_js_expose(s.js, "silent", false, fail_silently, NULL));
	run(&s, "try { loud() } catch { } try { silent() } catch (e) { say(e.message) }");
	CHECK(strncmp(s.said, weft_strerror(WEFT_EPIPE), strlen(weft_strerror(WEFT_EPIPE))) == 0);
	end(&s);
}

static int
fail_with_value(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)js;
	(void)args;
	(void)count;
	(void)arg;
	*out = weft_value_integer(7);
	return WEFT_EINVAL;
}

TEST(js_host_function_can_throw_any_value)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "seven", false, fail_with_value, NULL));
	run(&s, "try { seven() } catch (e) { say(e) }");
	CHECK_STR(s.said, "7 ");
	end(&s);
}

TEST(js_expose_creates_the_objects_of_the_path)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "a.b.c", false, say, &s));
	OK(weft_js_expose(s.js, "a.b.d", false, say, &s));
	run(&s, "a.b.c(a.b.d.name, typeof a.b)");
	CHECK_STR(s.said, "d object ");
	CHECK_EQ(weft_js_expose(s.js, "a.b.c.", false, say, &s), WEFT_EINVAL);
	CHECK_EQ(weft_js_expose(s.js, "", false, say, &s), WEFT_EINVAL);
	CHECK_EQ(weft_js_expose(s.js, "x", false, NULL, &s), WEFT_EINVAL);
	eval(&s, "globalThis.n = 1");
	CHECK_EQ(weft_js_expose(s.js, "n.f", false, say, &s), WEFT_EINVAL);
	end(&s);
}

static int
call_back(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)args;
	(void)count;
	(void)arg;
	return weft_js_call(js, "inner", NULL, 0, out);
}

TEST(js_host_function_can_call_the_script_again)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "back", false, call_back, NULL));
	run(&s, "function inner() { return 'in' }  say(back())");
	CHECK_STR(s.said, "in ");
	end(&s);
}

static int
free_engine(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)args;
	(void)count;
	(void)out;
	(void)arg;
	return weft_js_free(js);
}

TEST(js_engine_cannot_be_freed_from_its_own_script)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "free", false, free_engine, NULL));
	run(&s, "try { free() } catch (e) { say(e.code) }"
	        "setTimeout(() => { try { free() } catch (e) { say(e.code) } }, 1);"
	        "Promise.resolve().then(free).catch(e => say(e.code))");
	CHECK_STR(s.said, "WEFT_EBUSY WEFT_EBUSY WEFT_EBUSY ");
	end(&s);
	OK(weft_js_free(NULL));
}

TEST(js_exception_in_a_callback_is_reported_and_kept)
{
	struct script s;

	begin(&s);
	OK(weft_js_failed(s.js));
	OK(weft_js_status(s.js));
	run(&s, "setTimeout(() => { throw new Error('first') }, 1);"
	        "setTimeout(() => { throw new Error('second') }, 2);"
	        "setTimeout(() => say('goes on'), 3);");
	CHECK_EQ(s.errors, 2);
	CHECK_EQ(s.error, WEFT_ESCRIPT);
	CHECK(strstr(s.text, "Error: first\n    at") == s.text);
	CHECK_EQ(weft_js_failed(s.js), WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "Error: first") != NULL);
	CHECK_EQ(weft_js_status(s.js), 1);
	CHECK_STR(s.said, "goes on ");
	end(&s);
}

TEST(js_host_can_end_the_script_at_an_error)
{
	struct script s;

	begin(&s);
	s.ends = true;
	run(&s, "setInterval(() => { say('once'); throw new Error('end') }, 1);"
	        "setTimeout(() => say('never'), 50); Promise.resolve().then(() => 1)");
	CHECK_EQ(s.errors, 1);
	CHECK_STR(s.said, "once ");
	CHECK_EQ(weft_js_eval(s.js, "1", NULL, NULL), WEFT_ESHUTDOWN);
	end(&s);
}

TEST(js_process_exit_ends_the_script_immediately)
{
	struct script s;

	begin(&s);
	eval(&s, "setTimeout(() => { try { process.exit(3) } catch (e) { say('caught') }"
	         " finally { say('finally') } }, 1);"
	         "setTimeout(() => say('never'), 2)");
	OK(weft_loop_run(s.loop));
	CHECK_STR(s.said, "");
	CHECK_EQ(s.exits, 1);
	CHECK_EQ(s.status, 3);
	CHECK_EQ(weft_js_status(s.js), 3);
	CHECK_EQ(s.errors, 0);
	end(&s);
}

static int
try_to_free(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	struct script *s = arg;

	(void)args;
	(void)count;
	(void)out;
	add_said(s, &(weft_value){ &weft_type_integer, { .integer = weft_js_free(js) } });
	return 0;
}

TEST(js_status_query_runs_no_script_code)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "free", false, try_to_free, &s));
	eval(&s, "process.exitCode = { valueOf() { free(); return 6 } }");
	CHECK_EQ(weft_js_status(s.js), 0);
	eval(&s, "Object.defineProperty(process, 'exitCode',"
	         " { get() { free(); return 7 }, configurable: true })");
	CHECK_EQ(weft_js_status(s.js), 0);
	CHECK_STR(s.said, "");
	eval(&s, "delete process.exitCode");
	CHECK_EQ(weft_js_status(s.js), 0);
	eval(&s, "process.exitCode = '8'");
	CHECK_EQ(weft_js_status(s.js), 8);
	end(&s);
}

TEST(js_throwing_onerror_getter_leaks_nothing)
{
	struct script s;

	begin(&s);
	eval(&s, "let kept; Object.defineProperty(globalThis, 'onerror',"
	         " { get() { let e = {}; kept = new WeakRef(e); throw e } });"
	         "setTimeout(() => { throw 'of the timer' }, 1)");
	OK(weft_loop_run(s.loop));
	CHECK_EQ(s.errors, 1);
	CHECK_STR(s.text, "of the timer");
	eval(&s, "say(typeof kept, typeof kept.deref())");
	CHECK_STR(s.said, "object undefined ");
	end(&s);
}

TEST(js_status_is_the_exit_code_set_by_the_script)
{
	struct script s;

	begin(&s);
	eval(&s, "process.exitCode = 5");
	CHECK_EQ(weft_js_status(s.js), 5);
	CHECK_EQ(weft_js_eval(s.js, "process.exit()", NULL, NULL), WEFT_ESHUTDOWN);
	CHECK_EQ(s.status, 5);
	end(&s);
}

TEST(js_scripts_see_arguments_and_only_granted_environment)
{
	static const char *const argv[] = { "weft", "a.js", "x", NULL };
	weft_js_opts opts = { .argv = argv };
	struct script s;

	OK(setenv("WEFT_JS_TEST", "seen", 1));
	begin_with(&s, &opts);
	run(&s, "say(process.argv.join(), process.env.WEFT_JS_TEST, process.version)");
	CHECK_STR(s.said, "weft,a.js,x none weft ");
	end(&s);
	opts.grants = WEFT_JS_FILES;
	begin_with(&s, &opts);
	run(&s, "say(process.env.WEFT_JS_TEST)");
	CHECK_STR(s.said, "seen ");
	end(&s);
	OK(unsetenv("WEFT_JS_TEST"));
}

TEST(js_engine_needs_a_loop_and_the_loops_thread)
{
	struct script s;

	CHECK(weft_js_new(NULL, NULL) == NULL);
	begin(&s);
	CHECK_EQ(weft_js_eval(NULL, "1", NULL, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_js_eval(s.js, NULL, NULL, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_js_load(s.js, NULL, NULL), WEFT_EINVAL);
	OK(weft_loop_start(s.loop));
	CHECK_EQ(weft_js_eval(s.js, "1", NULL, NULL), WEFT_EWRONGLOOP);
	weft_loop_shutdown(s.loop);
	OK(weft_loop_wait_stopped(s.loop, WEFT_NEVER));
	OK(weft_js_free(s.js));
	OK(weft_loop_free(s.loop));
}

TEST(js_stopping_the_loop_drops_the_timers)
{
	struct script s;

	begin(&s);
	eval(&s, "setTimeout(() => say('never'), 1e6); setInterval(() => say('never'), 1e6);"
	         "setImmediate(() => say('never')); new Promise(() => {});"
	         "globalThis.id = setTimeout(() => {}, 1e6)");
	weft_loop_shutdown(s.loop);
	if (weft_loop_state(s.loop) != WEFT_STOPPED)
		OK(weft_loop_run(s.loop));
	eval(&s, "clearTimeout(id); setTimeout(() => say('never'), 1)");
	CHECK_STR(s.said, "");
	OK(weft_js_free(s.js));
	OK(weft_loop_free(s.loop));
}

/* --- from threadlets ---------------------------------------------------------------- */

static int
use_engine(void *arg)
{
	struct script *s = arg;
	weft_value out = { 0 };

	OK(weft_js_eval(s->js,
	                "function deep(n) { return n ? 1 + deep(n - 1) : 0 }"
	                "deep(800)",
	                "test.js", &out));
	CHECK_EQ(out.as.integer, 800);
	CHECK_EQ(weft_js_eval(s->js, "throw new Error('told')", "t.js", NULL), WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "Error: told") != NULL);
	return 0;
}

static int
use_engine_cancelled(void *arg)
{
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	return use_engine(arg);
}

TEST(js_threadlets_run_scripts_on_the_loops_stack)
{
	weft_js_opts engine = { .stack_bytes = 4 << 20 };
	struct script s;
	weft_go_opts opts = { 0 };
	weft_threadlet late;

	begin_with(&s, &engine);
	opts.loop = s.loop;
	CHECK(weft_go_with(&opts, use_engine, &s) > 0);
	late = weft_go_with(&opts, use_engine_cancelled, &s);
	CHECK(late > 0);
	OK(weft_cancel(late));
	OK(weft_loop_run(s.loop));
	end(&s);
}
