/* js_timer_test.c - timers, immediates, ticks and jobs: contracts and order. */
#include <errno.h>
#include "base/sys.h"
#include "js/script.h"

TEST(js_jobs_run_in_one_queue_after_ticks)
{
	check_says("Promise.resolve().then(() => say('p1')); queueMicrotask(() => say('q1'));"
	           "Promise.resolve().then(() => say('p2')); process.nextTick(() => say('t1'));"
	           "queueMicrotask(() => { say('q2'); process.nextTick(() => say('t3'));"
	           "  queueMicrotask(() => say('q3')) });"
	           "process.nextTick(say, 't2', 'args'); say('main')",
	           "main t1 t2 args p1 q1 p2 q2 q3 t3 ");
}

TEST(js_microtask_checkpoint_follows_every_callback)
{
	check_says("for (const n of [1, 2]) setTimeout(() => { say('timer' + n);"
	           "  Promise.resolve().then(() => say('job' + n));"
	           "  process.nextTick(() => say('tick' + n)) }, 1);",
	           "timer1 tick1 job1 timer2 tick2 job2 ");
}

TEST(js_timers_fire_in_order_of_their_time_then_of_their_creation)
{
	check_says("setTimeout(() => say('c'), 160); setTimeout(() => say('a'), 80);"
	           "setTimeout(() => say('b'), 80); setTimeout(() => say('0'), 0);"
	           "setTimeout(() => say('1'), 1)",
	           "0 1 a b c ");
}

TEST(js_delays_are_converted_as_on_the_web)
{
	check_says("let n = 0; const f = () => n++;"
	           "for (const ms of [-1, NaN, Infinity, undefined, null, '1', 'x', {}, 2**32,"
	           "                  2**31, { valueOf() { return 1 } }, 0.9, true])"
	           "  setTimeout(f, ms);"
	           "setTimeout(() => say(n), 30)",
	           "13 ");
	check_says("try { setTimeout(() => {}, { valueOf() { throw 'v' } }) } catch (e) {"
	           "  say(e) }"
	           "try { setTimeout() } catch (e) { say(e.name) }"
	           "try { setImmediate(1) } catch (e) { say(e.name) }"
	           "try { queueMicrotask({}) } catch (e) { say(e.name) }"
	           "try { process.nextTick() } catch (e) { say(e.name) }",
	           "v TypeError TypeError TypeError TypeError ");
}

TEST(js_handlers_take_arguments_and_may_be_text)
{
	check_says("globalThis.x = 1; setTimeout('x++; say(\"text\", x)', 1);"
	           "setTimeout(say, 2, 'a', 'b');"
	           "let i = setInterval(v => { say(v); clearInterval(i) }, 3, 'every')",
	           "text 2 a b every ");
	check_says("setImmediate(say, 'i', 'j')", "i j ");
}

TEST(js_timer_ids_are_positive_and_never_reused)
{
	check_says("const seen = new Set();"
	           "for (let i = 0; i < 1000; i++) {"
	           "  const id = [setTimeout, setInterval, setImmediate][i % 3](() => {}, 1);"
	           "  if (!(Number.isSafeInteger(id) && id > 0) || seen.has(id)) say('bad', id);"
	           "  seen.add(id);"
	           "  [clearInterval, clearImmediate, clearTimeout][i % 3](id);"
	           "} say(seen.size)",
	           "1000 ");
}

TEST(js_timers_can_be_cleared_from_everywhere)
{
	check_says("const a = setTimeout(() => say('never'), 1); clearTimeout(a); clearTimeout(a);"
	           "const b = setTimeout(() => { clearTimeout(b); clearTimeout(c); say('b') }, 1);"
	           "const c = setTimeout(() => say('never'), 1);"
	           "let n = 0; const d = setInterval(() => { say('d'); if (++n == 2)"
	           "  clearInterval(d) }, 1);"
	           "clearTimeout(undefined); clearTimeout(null); clearTimeout('x');"
	           "clearTimeout({}); clearTimeout(-1); clearTimeout(1e300); clearTimeout();"
	           "clearTimeout(String(setTimeout(() => say('never'), 1)))",
	           "b d d ");
	check_says("const e = setImmediate(() => say('never')); clearImmediate(e);"
	           "const f = setImmediate(() => { clearImmediate(g);"
	           "  clearImmediate(f); say('f') });"
	           "const g = setImmediate(() => say('never'))",
	           "f ");
}

TEST(js_script_cannot_clear_timers_of_c)
{
	struct script s;

	trace[0] = '\0';
	begin(&s);
	CHECK(weft_schedule_timeout(s.loop, WEFT_MS, note, MARK('c')) > 0);
	run(&s, "for (let i = 0; i < 100; i++) clearTimeout(i)");
	CHECK_STR(trace, "c");
	end(&s);
}

TEST(js_immediates_set_by_immediates_wait_one_iteration)
{
	check_says("setImmediate(() => { say(1); setImmediate(() => say(3)) });"
	           "setImmediate(() => say(2))",
	           "1 2 3 ");
}

/* --- the clamp, with a clock that advances almost only by waits -------------- */

static const struct weft__sys *real;
static uint64_t clock_ns;

static uint64_t
fake_now(void)
{
	return clock_ns++; /* so that a loop that spins ends */
}

static int
fake_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	(void)word;
	(void)value;
	CHECK(deadline_ns != WEFT_NEVER); /* nothing would end this wait */
	if (clock_ns < deadline_ns)
		clock_ns = deadline_ns;
	return -ETIMEDOUT;
}

/* Returns the total time that the script waits, in milliseconds. */
static uint64_t
waits_of(const char *source)
{
	struct weft__sys faked = *weft__sys;
	struct script s;
	uint64_t begin_ns;

	begin(&s);
	clock_ns = begin_ns = weft_now();
	faked.now = fake_now;
	faked.park = fake_park;
	real = weft__sys;
	weft__sys = &faked;
	run(&s, source);
	weft__sys = real;
	CHECK_EQ(s.errors, 0);
	end(&s);
	return (clock_ns - begin_ns) / WEFT_MS;
}

#define CHAIN(ms)                                                  \
	"let n = 0; (function again() { if (n++ < 10) setTimeout(" \
	"again, " #ms ") })()"
#define BEATS(ms)                                            \
	"let n = 0; const id = setInterval(() => { if (++n " \
	"== 10) clearInterval(id) }, " #ms ")"

/* Of ten waits, the last four are of timers nested more than five deep. */
TEST(js_only_deeply_nested_timers_are_clamped_to_4_ms)
{
	CHECK_EQ(waits_of(CHAIN(2)), 6 * 2 + 4 * 4);
	CHECK_EQ(waits_of(CHAIN(4)), 10 * 4);
	CHECK_EQ(waits_of(CHAIN(7)), 10 * 7);
	CHECK_EQ(waits_of(BEATS(2)), 6 * 2 + 4 * 4);
	CHECK_EQ(waits_of(BEATS(7)), 10 * 7);
	/* Timers that an immediate sets start at the first nesting level. */
	CHECK_EQ(waits_of("let n = 0; (function again() { if (n++ < 20) "
	                  "setTimeout(setImmediate, 2, again) })()"),
	         20 * 2);
}

TEST(js_throw_in_a_microtask_is_an_error_and_not_a_rejection)
{
	struct script s;

	begin(&s);
	run(&s, "queueMicrotask(() => { throw new Error('here') });"
	        "queueMicrotask(() => say('next'));"
	        "process.nextTick(() => { throw 1 }); process.nextTick(() => say('tick'))");
	CHECK_EQ(s.errors, 2);
	CHECK_STR(s.text, "1");
	CHECK_STR(s.said, "tick next ");
	end(&s);
}

TEST(js_interval_continues_after_a_throw)
{
	struct script s;

	begin(&s);
	run(&s, "let n = 0; const i = setInterval(() => { if (++n == 3) clearInterval(i);"
	        " throw new Error('each') }, 1)");
	CHECK_EQ(s.errors, 3);
	end(&s);
}

TEST(js_many_timers_fire_and_their_entries_are_reused)
{
	check_says("let n = 0; for (let r = 0; r < 3; r++)"
	           "  setTimeout(() => { for (let i = 0; i < 3000; i++)"
	           "    setTimeout(() => n++, i % 5) }, r * 50);"
	           "const end = setInterval(() => { if (n == 9000) {"
	           "  say(n); clearInterval(end) } }, 5)",
	           "9000 ");
}
