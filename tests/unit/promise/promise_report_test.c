/* promise_report_test.c - reports of rejections without a handler. */
#include "base/os.h"
#include "unit/promise/promised.h"

/* Each report appends U (unhandled) or H (handled) to the trace.  The latest one is kept. */
static weft_report last;
static char text[256], name[64];
static weft_value why;
static weft_promise *p, *q;
static struct token token;

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind != WEFT_REPORT_UNHANDLED && report->kind != WEFT_REPORT_HANDLED)
		return;
	note(MARK(report->kind == WEFT_REPORT_UNHANDLED ? 'U' : 'H'));
	last = *report;
	why = *report->reason;
	(void)snprintf(text, sizeof(text), "%s", report->text);
	(void)snprintf(name, sizeof(name), "%s", report->name ? report->name : "-");
}

static weft_loop *
make_heard(void)
{
	weft_loop_opts opts = { .name = "hero" };

	last = (weft_report){ 0 };
	weft__hooks.on_report = on_report;
	return make_with(&opts);
}

static void
end_heard(weft_loop *loop)
{
	stop_idle(loop);
	weft__hooks.on_report = NULL;
}

/* Run a callback, and the loop until it has no work left. */
static void
call(weft_loop *loop, weft_fn fn)
{
	OK(weft_loop_post(loop, fn, loop));
	OK(weft_loop_run(loop));
}

/* --- unhandled -------------------------------------------------------------- */

static void
reject_p(void *arg)
{
	p = weft_promise_new(arg);
	(void)weft_fail(WEFT_EPROTO, "the peer said nonsense");
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPROTO)));
	OK(weft_schedule_microtask(arg, note, MARK('m')));
	OK(weft_schedule_tick(arg, note, MARK('t')));
	CHECK_STR(trace, "");
}

TEST(an_unhandled_rejection_is_reported_at_the_end_of_the_checkpoint)
{
	weft_loop *loop = make_heard();

	call(loop, reject_p);
	CHECK_STR(trace, "tmU");
	CHECK_EQ(last.error, WEFT_EPROTO);
	CHECK_EQ(last.level, 0);
	CHECK(last.loop == loop);
	CHECK(last.promise == p);
	CHECK(why.type == &weft_type_error && why.as.integer == WEFT_EPROTO);
	CHECK_STR(name, "hero");
	CHECK_STR(text,
	          "a promise was rejected, and no handler was attached: the peer said nonsense");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "tmU"); /* only once */
	drop(p);
	end_heard(loop);
}

static void
reject_all_kinds(void *arg)
{
	for (int i = 0; i < 3; i++) {
		weft_value reason = i == 0   ? weft_value_text("a sentence")
		                    : i == 1 ? alone(&token, 1)
		                             : (weft_value){ 0 };

		p = weft_promise_new(arg);
		OK(weft_promise_reject(p, reason));
		drop(p); /* a dropped promise does not count as handled */
	}
}

TEST(a_rejection_without_an_error_code_is_reported_as_rejected)
{
	weft_loop *loop = make_heard();

	call(loop, reject_all_kinds);
	CHECK_STR(trace, "UUU");
	CHECK_EQ(last.error, WEFT_EREJECTED);
	CHECK(strstr(text, weft_strerror(WEFT_EREJECTED)) != NULL);
	CHECK_EQ(owners(&token), 0);
	end_heard(loop);
}

/* Only the last promise of a chain is unhandled, so there is one report. */
static void
reject_chain(void *arg)
{
	weft_promise *first = weft_promise_new(arg);

	p = weft_promise_then(hold(first), note_it, NULL, MARK('-'));
	p = weft_promise_then(p, NULL, NULL, NULL);
	OK(weft_promise_reject(first, weft_value_error(WEFT_EPERM)));
	drop(first);
}

TEST(an_unhandled_chain_is_reported_once_for_its_last_promise)
{
	weft_loop *loop = make_heard();

	call(loop, reject_chain);
	CHECK_STR(trace, "U");
	CHECK_EQ(last.error, WEFT_EPERM);
	drop(p);
	end_heard(loop);
}

static void
follow_rejected(void *arg)
{
	p = weft_promise_new(arg);
	q = weft_promise_new(arg);
	OK(weft_promise_resolve(p, weft_value_promise(hold(q))));
	(void)weft_fail(WEFT_EPERM, "followed");
	OK(weft_promise_reject(q, weft_value_error(WEFT_EPERM)));
	drop(q);
}

TEST(a_promise_that_follows_another_handles_it_and_is_reported_itself)
{
	weft_loop *loop = make_heard();

	call(loop, follow_rejected);
	CHECK_STR(trace, "U");
	CHECK(strstr(text, "followed") != NULL);
	drop(p);
	end_heard(loop);
}

/* --- handled in time -------------------------------------------------------- */

static void
handle_p(void *arg)
{
	(void)arg;
	note(MARK('h'));
	drop(weft_promise_then(hold(p), NULL, note_it, MARK('e')));
}

static void
reject_and_handle(void *arg)
{
	p = weft_promise_new(arg);
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPERM)));
	drop(weft_promise_then(hold(p), NULL, note_it, MARK('a')));
	drop(p);
	p = weft_promise_new(arg);
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPERM)));
	OK(weft_schedule_microtask(arg, handle_p, NULL));
}

TEST(a_rejection_handled_in_the_same_checkpoint_is_not_reported)
{
	weft_loop *loop = make_heard();

	call(loop, reject_and_handle);
	CHECK_STR(trace, "ahe");
	drop(p);
	end_heard(loop);
}

static void
combine_rejected(void *arg)
{
	weft_promise *both[2];

	for (int i = 0; i < 2; i++) {
		both[i] = weft_promise_new(arg);
		OK(weft_promise_reject(both[i], weft_value_error(WEFT_EPERM)));
	}
	p = weft_promise_all_settled(both, 2);
	for (int i = 0; i < 2; i++) {
		both[i] = weft_promise_new(arg);
		OK(weft_promise_reject(both[i], weft_value_error(WEFT_EPERM)));
	}
	q = weft_promise_all(both, 2);
}

TEST(a_combined_promise_handles_the_rejections_of_its_promises)
{
	weft_loop *loop = make_heard();

	call(loop, combine_rejected);
	CHECK_STR(trace, "U"); /* for the promise of weft_promise_all() */
	drop(p);
	drop(q);
	end_heard(loop);
}

static int
await_p(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_await(p, NULL, WEFT_NEVER), WEFT_EPROTO);
	note(MARK('w'));
	return 0;
}

TEST(awaiting_a_rejected_promise_handles_it)
{
	weft_loop *loop = make_heard();

	p = weft_promise_new(loop);
	(void)go_on(loop, await_p, NULL);
	turns(loop, 2);
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPROTO)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "w");
	drop(p);
	end_heard(loop);
}

/* --- handled later ---------------------------------------------------------- */

TEST(a_rejection_handled_later_is_reported_as_handled_once)
{
	weft_loop *loop = make_heard();

	call(loop, reject_p);
	CHECK_STR(trace, "tmU");
	call(loop, handle_p);
	CHECK_STR(trace, "tmUhHe");
	CHECK_EQ(last.kind, WEFT_REPORT_HANDLED);
	CHECK_EQ(last.error, WEFT_EPROTO);
	CHECK_EQ(last.level, 2);
	CHECK(last.loop == loop);
	CHECK_STR(
		text,
		"a promise was handled after it was reported as unhandled: the peer said nonsense");
	call(loop, handle_p);
	CHECK_STR(trace, "tmUhHehe");
	drop(p);
	end_heard(loop);
}

TEST(a_plain_thread_may_handle_a_reported_rejection)
{
	weft_loop *loop = make_heard();

	call(loop, reject_p);
	CHECK_EQ(weft_await(p, NULL, WEFT_NOWAIT), WEFT_EPROTO);
	CHECK_STR(trace, "tmUH");
	CHECK_STR(weft_detail(), "the peer said nonsense");
	CHECK_EQ(weft_await(p, NULL, WEFT_NOWAIT), WEFT_EPROTO);
	CHECK_STR(trace, "tmUH");
	CHECK(!last.loop && !last.name);
	drop(p);
	end_heard(loop);
}

TEST(a_reported_rejection_may_be_handled_after_its_loop_was_freed)
{
	weft_loop *loop = make_heard();

	call(loop, reject_p);
	stop_idle(loop);
	CHECK_EQ(weft_await(p, NULL, WEFT_NOWAIT), WEFT_EPROTO);
	CHECK_STR(trace, "tmUH");
	drop(p);
	weft__hooks.on_report = NULL;
}

/* --- handled soon by another thread ------------------------------------------- */

static const struct weft__sys *real;
static uint64_t later_ns;

static uint64_t
later_now(void)
{
	return real->now() + later_ns;
}

/* The clock can be moved forward by later_ns. */
static void
move_clock(void)
{
	static struct weft__sys moved;

	later_ns = 0;
	real = weft__sys;
	moved = *real;
	moved.now = later_now;
	weft__sys = &moved;
}

static void
pass(weft_loop *loop, uint64_t delay_ns)
{
	later_ns += delay_ns;
	turns(loop, 3);
}

static void
on_thread(void *(*fn)(void *), void *arg)
{
	OK(pthread_join(thread(fn, arg), NULL));
}

static void *
reject_p_there(void *arg)
{
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPERM)));
	return arg;
}

static void *
make_and_reject_p_there(void *arg)
{
	p = weft_promise_new(arg);
	return reject_p_there(arg);
}

static void *
handle_p_there(void *arg)
{
	drop(weft_promise_then(hold(p), NULL, note_it, MARK('p')));
	return arg;
}

static void
make_p(void *arg)
{
	p = weft_promise_new(arg);
}

/* Each way in which another thread has a rejected promise that it can still handle. */
static void
way_made_there(weft_loop *loop)
{
	on_thread(make_and_reject_p_there, loop);
}

static void
way_rejected_there(weft_loop *loop)
{
	call(loop, make_p);
	on_thread(reject_p_there, NULL);
}

static void *
make_p_there(void *arg)
{
	p = weft_promise_new(arg);
	return arg;
}

static void
reject_p_here(void *arg)
{
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPERM)));
	CHECK(arg != NULL);
}

static void
way_rejected_here(weft_loop *loop)
{
	on_thread(make_p_there, loop);
	call(loop, reject_p_here);
}

static void *
chain_p_there(void *arg)
{
	p = weft_promise_then(p, NULL, NULL, NULL);
	CHECK(p != NULL);
	return arg;
}

static void
way_chained_there(weft_loop *loop)
{
	way_made_there(loop);
	on_thread(chain_p_there, NULL);
}

static void (*const ways[])(weft_loop *) = {
	way_made_there,
	way_rejected_there,
	way_rejected_here,
	way_chained_there,
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

TEST(a_rejection_that_another_thread_handles_within_a_second_is_not_reported)
{
	move_clock();
	for (size_t i = 0; i < WAYS; i++) {
		weft_loop *loop = make_heard();

		ways[i](loop);
		pass(loop, 0);
		on_thread(handle_p_there, NULL);
		pass(loop, 0);
		CHECK_STR(trace, "p");
		pass(loop, HOUR);
		CHECK_STR(trace, "p");
		drop(p);
		end_heard(loop);
	}
	weft__sys = real;
}

TEST(a_rejection_that_another_thread_does_not_handle_is_reported_after_a_second)
{
	move_clock();
	for (size_t i = 0; i < WAYS; i++) {
		weft_loop *loop = make_heard();

		ways[i](loop);
		pass(loop, 0);
		CHECK_STR(trace, "");
		pass(loop, WEFT_S);
		CHECK_STR(trace, "U");
		CHECK(last.promise == p);
		on_thread(handle_p_there, NULL);
		pass(loop, 0);
		CHECK_STR(trace, "UHp");
		drop(p);
		end_heard(loop);
	}
	weft__sys = real;
}

TEST(each_rejection_by_another_thread_is_reported_a_second_after_it)
{
	weft_loop *loop = make_heard();

	move_clock();
	way_made_there(loop);
	pass(loop, 0);
	q = p;
	pass(loop, 600 * WEFT_MS);
	way_made_there(loop);
	pass(loop, 0);
	CHECK_STR(trace, "");
	pass(loop, 400 * WEFT_MS);
	CHECK_STR(trace, "U");
	CHECK(last.promise == q);
	pass(loop, 600 * WEFT_MS);
	CHECK_STR(trace, "UU");
	CHECK(last.promise == p);
	drop(p);
	drop(q);
	weft__sys = real;
	end_heard(loop);
}

TEST(a_rejection_that_no_code_can_handle_any_longer_is_reported_at_once)
{
	weft_loop *loop = make_heard();

	way_made_there(loop);
	drop(p);
	turns(loop, 3);
	CHECK_STR(trace, "U");
	end_heard(loop);
}

TEST(a_rejection_that_waits_for_a_handler_is_reported_as_the_loop_stops)
{
	weft_loop *loop = make_heard();

	way_made_there(loop);
	turns(loop, 3);
	CHECK_STR(trace, "");
	stop_idle(loop);
	CHECK_STR(trace, "U");
	drop(p);
	loop = make_heard();
	way_made_there(loop);
	turns(loop, 3);
	drop(p);
	OK(weft_loop_run(loop)); /* a report that is due later does not keep the loop running */
	CHECK_STR(trace, "");
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "U");
	weft__hooks.on_report = NULL;
}

/* --- the hook of a loop --------------------------------------------------------- */

static void
on_loop_report(void *arg, const weft_report *report)
{
	if (report->kind == WEFT_REPORT_UNHANDLED)
		note(arg);
}

TEST(a_loop_with_a_report_hook_reports_to_it_instead_of_the_hook_of_the_process)
{
	weft_loop_opts opts = { .on_report = on_loop_report, .report_arg = MARK('l') };
	weft_loop *loop = make_heard(), *own = weft_loop_new(&opts);

	call(loop, reject_p);
	CHECK_STR(trace, "tmU");
	drop(p);
	trace[0] = '\0';
	call(own, reject_p);
	CHECK_STR(trace, "tml");
	drop(p);
	stop_idle(own);
	end_heard(loop);
}

/* --- no report -------------------------------------------------------------- */

static void
break_promises(void *arg)
{
	p = weft_promise_new(arg);
	drop(weft_promise_then(p, NULL, note_it, MARK('b')));
	drop(weft_promise_new(arg));
	OK(weft_promise_reject(q, weft_value_error(WEFT_EPERM)));
	drop(weft_promise_then(q, NULL, note_it, MARK('q')));
}

TEST(a_promise_that_can_never_settle_is_handled_by_its_chained_handler)
{
	weft_loop *loop = make_heard();

	q = weft_promise_new(loop);
	call(loop, break_promises);
	CHECK_STR(trace, "bq");
	end_heard(loop);
}

/* A report hook that rejects another promise, a limited number of times. */
static void
on_report_reject(void *arg, const weft_report *report)
{
	on_report(arg, report);
	if (report->kind != WEFT_REPORT_UNHANDLED || strlen(trace) > 4)
		return;
	q = weft_promise_new(report->loop);
	OK(weft_promise_reject(q, weft_value_error(WEFT_EPERM)));
	drop(q);
}

TEST(the_report_hook_may_use_promises)
{
	weft_loop *loop = make_heard();

	weft__hooks.on_report = on_report_reject;
	call(loop, reject_p);
	CHECK_STR(trace, "tmUUU");
	drop(p);
	end_heard(loop);
}

/* --- without memory ----------------------------------------------------------- */

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

static void *
no_more_memory(void *mem, size_t size)
{
	(void)mem;
	return no_memory(size);
}

static void *
chain_to_p(void *arg)
{
	drop(weft_promise_then(hold(p), NULL, note_it, MARK('p')));
	return arg;
}

/* Another thread handles p, which was rejected before r, whose rejection is to be reported.  There
 * is no memory to chain to q, nor for the jobs of p and s. */
static void
handle_without_room(void *arg)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys poor = *before;
	weft_promise *r = weft_promise_new(arg), *s = weft_promise_new(arg);

	p = weft_promise_new(arg);
	q = weft_promise_new(arg);
	OK(weft_promise_resolve(q, integer(1)));
	drop(weft_promise_then(hold(s), note_it, NULL, MARK('s')));
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPERM)));
	OK(weft_promise_reject(r, weft_value_error(WEFT_EPROTO)));
	OK(pthread_join(thread(chain_to_p, NULL), NULL));
	poor.alloc = no_memory;
	poor.resize = no_more_memory;
	weft__sys = &poor;
	drop(weft_promise_then(hold(q), note_it, NULL, MARK('q')));
	OK(weft_promise_resolve(s, integer(2)));
	weft__sys = before;
	drop(p);
	drop(q);
	drop(r);
	drop(s);
}

TEST(jobs_that_wait_for_memory_are_not_reported_as_unhandled)
{
	weft_loop *loop = make_heard();

	call(loop, handle_without_room);
	CHECK_STR(trace, "psU");
	CHECK_EQ(last.error, WEFT_EPROTO);
	end_heard(loop);
}
