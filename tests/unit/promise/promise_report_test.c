/* promise_report_test.c - reports of rejections without a handler. */
#include "base/os.h"
#include "unit/promise/promised.h"

/* Each report appends U (unhandled) or H (handled) to the trace.  The latest one is kept. */
static weft_report last;
static char text[256], name[64];
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

/* Another thread handles p, which is in the list before the rejection to be reported.  There is
 * no memory for the job of p, nor for that of s. */
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
