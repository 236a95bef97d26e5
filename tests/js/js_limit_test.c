/* js_limit_test.c - runaway scripts are ended, and the host continues. */
#include <sched.h>
#include "js/script.h"

TEST(js_endless_loop_is_ended)
{
	weft_js_opts opts = { .run_ns = 20 * WEFT_MS };
	struct script s;

	begin_with(&s, &opts);
	check_fails(&s, "for (;;);", WEFT_ETIMEDOUT, "time limit exceeded");
	check_fails(&s, "try { for (;;); } catch { say('caught') } finally { say('f') }",
	            WEFT_ETIMEDOUT, "time limit exceeded");
	CHECK_STR(s.said, "");
	CHECK_EQ(eval_integer(&s, "6 * 7"), 42);
	end(&s);
}

TEST(js_endless_callback_is_ended_and_reported)
{
	weft_js_opts opts = { .run_ns = 20 * WEFT_MS };
	struct script s;

	begin_with(&s, &opts);
	run(&s, "setTimeout(() => { for (;;); }, 1); setTimeout(() => say('after'), 2)");
	CHECK_EQ(s.errors, 1);
	CHECK_EQ(s.error, WEFT_ETIMEDOUT);
	CHECK_STR(s.said, "after ");
	end(&s);
}

TEST(js_script_is_ended_while_it_reports_an_error)
{
	static const char *const sources[] = {
		"{ const e = new Error('x'); Object.defineProperty(e, 'stack',"
		"  { get() { for (;;); } }); for (;;) reportError(e) }",
		"{ const e = new Error('x'); Object.defineProperty(e, 'code',"
		"  { get() { for (;;); } }); for (;;) say(e) }",
		"{ const e = new Error('x'); Object.defineProperty(e, 'name',"
		"  { get() { for (;;); } }); for (;;) try { say([e]) } catch { } }",
		"for (;;) reportError({ toString() { for (;;); } })",
		"onerror = () => { for (;;); }; for (;;) reportError(1)",
	};
	weft_js_opts opts = { .run_ns = 20 * WEFT_MS };
	struct script s;

	begin_with(&s, &opts);
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		check_fails(&s, sources[i], WEFT_ETIMEDOUT, "time limit exceeded");
	CHECK_STR(s.said, "");
	CHECK_EQ(eval_integer(&s, "6 * 7"), 42);
	end(&s);
}

static void
check_job(const char *source)
{
	weft_js_opts opts = { .run_ns = 20 * WEFT_MS };
	struct script s;

	begin_with(&s, &opts);
	run(&s, source);
	CHECK_EQ(s.errors, 1);
	CHECK_EQ(s.error, WEFT_ETIMEDOUT);
	CHECK(strstr(s.text, "time limit exceeded") != NULL);
	end(&s);
}

TEST(js_endless_job_is_reported_even_if_its_promise_is_handled)
{
	check_job("Promise.resolve().then(() => { for (;;); })");
	check_job("Promise.resolve().then(() => { for (;;); }).catch(() => {})");
	check_job("(async () => { await null; for (;;); })()");
	check_job("setTimeout(async () => { for (;;); }, 1)");
	check_job("new Promise(r => setTimeout(r, 1)).then(() => { for (;;); })"
	          ".finally(() => {}).catch(() => {})");
}

TEST(js_eval_fails_if_its_async_function_hits_the_time_limit)
{
	weft_js_opts opts = { .run_ns = 20 * WEFT_MS };
	struct script s;

	begin_with(&s, &opts);
	check_fails(&s, "(async () => { for (;;); })()", WEFT_ETIMEDOUT, "time limit exceeded");
	OK(weft_loop_run(s.loop));
	CHECK_EQ(s.errors, 0);
	end(&s);
}

static void
leave(weft_timer *timer, void *arg)
{
	(void)timer;
	weft_loop_break(arg);
}

static void
check_endless(const char *source)
{
	weft_js_opts opts = { .run_ns = 5 * WEFT_MS };
	weft_timer timer = WEFT_INIT;
	struct script s;

	begin_with(&s, &opts);
	eval(&s, source);
	OK(weft_timer_start(s.loop, &timer, weft_after(WEFT_MS), 0, leave, s.loop));
	OK(weft_loop_run(s.loop));
	weft_loop_break(s.loop);
	OK(weft_loop_run(s.loop));
	CHECK_EQ(s.errors, 0);
	CHECK(eval_integer(&s, "const before = n; n") > 1000);
	weft_loop_break(s.loop);
	OK(weft_loop_run(s.loop));
	CHECK_EQ(eval_integer(&s, "n > before"), 1); /* and they continue */
	end(&s);
}

TEST(js_jobs_that_queue_jobs_forever_do_not_block_the_loop)
{
	check_endless("var n = 0; (function f() { n++; Promise.resolve().then(f) })()");
	check_endless("var n = 0; (function f() { n++; queueMicrotask(f) })()");
	check_endless("var n = 0; (function f() { n++; process.nextTick(f) })()");
}

TEST(js_many_jobs_run_without_a_time_limit)
{
	weft_js_opts opts = { .run_ns = WEFT_NEVER };
	struct script s;

	begin_with(&s, &opts);
	run(&s, "let p = Promise.resolve(0); for (let i = 0; i < 30000; i++)"
	        "  p = p.then(n => n + 1); p.then(say)");
	CHECK_STR(s.said, "30000 ");
	CHECK_EQ(s.errors, 0);
	end(&s);
}

TEST(js_endless_recursion_is_an_error_that_can_be_caught)
{
	struct script s;

	begin(&s);
	check_fails(&s, "(function f() { f() })()", WEFT_ESCRIPT,
	            "Maximum call stack size exceeded");
	run(&s, "let deep = 0; (function f() { deep++; try { f() } catch (e) { } })();"
	        "say(deep > 10)");
	CHECK_STR(s.said, "1 ");
	end(&s);
}

TEST(js_deeply_nested_source_is_an_error)
{
	struct script s;
	char source[60001];

	begin(&s);
	memset(source, '[', sizeof(source) - 1);
	source[sizeof(source) - 1] = '\0';
	check_fails(&s, source, WEFT_ESCRIPT, "");
	CHECK_EQ(eval_integer(&s, "1"), 1);
	end(&s);
}

TEST(js_memory_bomb_is_refused)
{
	weft_js_opts opts = { .memory_bytes = 4 << 20 };
	struct script s;

	begin_with(&s, &opts);
	check_fails(&s, "let all = []; for (;;) all.push(new Array(1000).fill(1.5))", WEFT_ENOMEM,
	            "out of memory");
	eval(&s, "all = null");
	check_fails(&s, "let text = 'x'.repeat(5e8)", WEFT_ENOMEM, "");
	check_fails(&s, "new Uint8Array(100 * 1024 * 1024)", WEFT_ENOMEM, "");
	CHECK_EQ(eval_integer(&s, "[1, 2, 3].length"), 3);
	end(&s);
}

TEST(js_engine_is_not_created_with_too_little_memory)
{
	weft_js_opts opts = { .memory_bytes = 10000 };
	weft_loop *loop = make();

	CHECK(weft_js_new(loop, &opts) == NULL);
	OK(weft_loop_free(loop));
}

TEST(js_values_passed_to_the_host_are_bounded)
{
	weft_js_opts opts = { .memory_bytes = 4 << 20 };
	struct script s;

	begin_with(&s, &opts);
	check_fails(&s, "say(Array(2 ** 27))", WEFT_EMSGSIZE, "memory_bytes");
	check_fails(&s, "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; say(a)",
	            WEFT_EMSGSIZE, "memory_bytes");
	check_fails(&s, "var t = 'x'.repeat(1e5); say(Array(1000).fill(t))", WEFT_EMSGSIZE,
	            "memory_bytes");
	check_fails(&s, "say(...Array(1000).fill(t))", WEFT_EMSGSIZE, "memory_bytes");
	check_fails(&s, "say(Array(1000).fill(new Uint8Array(1e5)))", WEFT_EMSGSIZE,
	            "memory_bytes");
	check_fails(&s, "var o = {}; say(Array(6e4).fill(o))", WEFT_EMSGSIZE, "memory_bytes");
	CHECK_STR(s.said, "");
	eval(&s, "say(Array(1e5).fill(1))");
	CHECK_STR(s.said, "<list> ");
	end(&s);
}

/* --- interrupts ---------------------------------------------------------------------- */

struct watchdog {
	weft_js *js;
	uint32_t running, over; /* atomic */
};

static int
mark_running(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	struct watchdog *dog = arg;

	(void)js;
	(void)args;
	(void)count;
	(void)out;
	__atomic_store_n(&dog->running, 1, __ATOMIC_RELEASE);
	return 0;
}

static void *
interrupt(void *arg)
{
	struct watchdog *dog = arg;

	while (!__atomic_load_n(&dog->running, __ATOMIC_ACQUIRE))
		sched_yield();
	weft_js_interrupt(dog->js);
	return NULL;
}

TEST(js_another_thread_interrupts_a_script)
{
	weft_js_opts opts = { .run_ns = HOUR };
	struct watchdog dog = { 0 };
	struct script s;
	pthread_t other;

	begin_with(&s, &opts);
	dog.js = s.js;
	OK(weft_js_expose(s.js, "running", false, mark_running, &dog));
	other = thread(interrupt, &dog);
	check_fails(&s, "running(); for (;;);", WEFT_EINTR, "interrupted");
	OK(pthread_join(other, NULL));
	weft_js_interrupt(s.js); /* no script runs: this has no effect */
	CHECK_EQ(eval_integer(&s, "let n = 0; while (n < 1e6) n++; n"), 1000000);
	end(&s);
}

static int
interrupt_now(weft_js *js, const weft_value *args, size_t count, weft_value *out, void *arg)
{
	(void)args;
	(void)count;
	(void)out;
	(void)arg;
	weft_js_interrupt(js);
	return 0;
}

/* The engine checks for interrupts only occasionally while a script runs: a plain script
 * would not be interrupted every time.  The conversion of the list must be. */
TEST(js_conversion_of_a_list_for_the_host_is_interrupted)
{
	struct script s;

	begin(&s);
	OK(weft_js_expose(s.js, "interrupt", false, interrupt_now, NULL));
	for (int i = 0; i < 10; i++)
		check_fails(&s, "interrupt(); say(Array(2000))", WEFT_EINTR, "interrupted");
	CHECK_STR(s.said, "");
	end(&s);
}
