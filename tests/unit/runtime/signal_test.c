/* signal_test.c - signals: which watches see them, and how handlers are installed and restored.
 *
 * The process raises signals itself, on this thread, so the handler has run when raise()
 * returns.  To the tests, "soon" and "never" mean: within a few loop iterations.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "loop/process/signal.h"
#include "unit/probe.h"

#define BIT(signo) (UINT64_C(1) << (signo))

struct ear {
	weft_watch watch;
	int calls, ends, signo;
	void (*act)(struct ear *ear);
	struct ear *other;
	char name; /* noted in the trace, if set */
};

static void
on_hear(weft_watch *heard, int what, void *arg)
{
	struct ear *ear = arg;

	CHECK(heard == &ear->watch);
	CHECK(weft_loop_current() == heard->loop);
	if (what < 0) {
		CHECK_EQ(what, WEFT_ESHUTDOWN);
		CHECK_EQ(weft_watch_stop(heard), 0);
		ear->ends++;
		return;
	}
	CHECK_EQ(what, heard->id);
	ear->calls++;
	ear->signo = what;
	if (ear->name)
		note(MARK(ear->name));
	if (ear->act)
		ear->act(ear);
}

static void
hear(weft_loop *loop, struct ear *ear, int signo)
{
	OK(weft_watch_start_signal(loop, &ear->watch, signo, on_hear, ear));
}

/* The current handler of `signo`. */
static void (*handler_of(int signo))(int)
{
	struct sigaction now;

	OK(sigaction(signo, NULL, &now));
	return now.sa_handler;
}

static void
on_foreign(int signo)
{
	(void)signo;
}

/* --- watches ------------------------------------------------------------ */

TEST(signal_is_reported_to_its_watch_each_time_and_to_no_other)
{
	weft_loop *loop = make();
	struct ear a = { .calls = 0 }, b = { .calls = 0 };

	hear(loop, &a, SIGUSR1);
	hear(loop, &b, SIGUSR2);
	turns(loop, 2);
	CHECK_EQ(a.calls + b.calls, 0);
	for (int i = 1; i < 4; i++) {
		OK(raise(SIGUSR1));
		turns(loop, 2);
		CHECK_EQ(a.calls, i);
	}
	CHECK_EQ(b.calls, 0);
	OK(raise(SIGUSR2));
	turns(loop, 2);
	CHECK_EQ(a.calls, 3);
	CHECK_EQ(b.calls, 1);
	CHECK_EQ(weft_watch_stop(&a.watch), 1);
	CHECK_EQ(weft_watch_stop(&a.watch), 0);
	CHECK_EQ(weft_watch_stop(&b.watch), 1);
	OK(weft_loop_free(loop));
}

TEST(all_watches_of_a_signal_see_it_in_start_order)
{
	weft_loop *loop = make();
	struct ear ears[4] = { { .calls = 0 } };

	for (int i = 0; i < 4; i++) {
		ears[i].name = (char)('a' + i);
		hear(loop, &ears[i], SIGUSR1);
	}
	OK(raise(SIGUSR1));
	turns(loop, 2);
	CHECK_STR(trace, "abcd");
	for (int i = 0; i < 4; i++)
		CHECK_EQ(ears[i].calls, 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(weft_watch_stop(&ears[i].watch), 1);
	OK(weft_loop_free(loop));
}

TEST(two_loops_both_see_a_signal)
{
	weft_loop *one = make(), *two = make();
	struct ear a = { .calls = 0 }, b = { .calls = 0 };

	hear(one, &a, SIGUSR1);
	hear(two, &b, SIGUSR1);
	OK(raise(SIGUSR1));
	turns(one, 2);
	turns(two, 2);
	CHECK_EQ(a.calls, 1);
	CHECK_EQ(b.calls, 1);
	CHECK_EQ(weft_watch_stop(&a.watch), 1); /* the other one continues */
	OK(raise(SIGUSR1));
	turns(one, 2);
	turns(two, 2);
	CHECK_EQ(a.calls, 1);
	CHECK_EQ(b.calls, 2);
	OK(weft_loop_free(one));
	CHECK_EQ(weft_watch_stop(&b.watch), 1);
	OK(weft_loop_free(two));
}

TEST(previous_signal_handler_is_restored_when_the_last_watch_stops)
{
	struct sigaction foreign = { .sa_handler = on_foreign }, first;
	weft_loop *one = make(), *two = make();
	struct ear a = { .calls = 0 }, b = { .calls = 0 };

	OK(sigaction(SIGUSR1, &foreign, &first));
	hear(one, &a, SIGUSR1);
	hear(two, &b, SIGUSR1);
	CHECK(handler_of(SIGUSR1) != on_foreign);
	CHECK_EQ(weft_watch_stop(&a.watch), 1);
	CHECK(handler_of(SIGUSR1) != on_foreign);
	CHECK_EQ(weft_watch_stop(&b.watch), 1);
	CHECK(handler_of(SIGUSR1) == on_foreign);
	hear(one, &a, SIGUSR1); /* freeing an idle loop restores it, too */
	CHECK(handler_of(SIGUSR1) != on_foreign);
	OK(weft_loop_free(one));
	CHECK(handler_of(SIGUSR1) == on_foreign);
	hear(two, &b, SIGUSR1); /* and so does stopping a loop */
	stop_idle(two);
	CHECK_EQ(b.ends, 1);
	CHECK(handler_of(SIGUSR1) == on_foreign);
	OK(sigaction(SIGUSR1, &first, NULL));
}

TEST(signal_handler_installed_meanwhile_by_other_code_is_kept)
{
	struct sigaction foreign = { .sa_handler = on_foreign }, ours;
	weft_loop *loop = make();
	struct ear ear = { .calls = 0 };

	hear(loop, &ear, SIGUSR1);
	OK(sigaction(SIGUSR1, &foreign, &ours));
	CHECK_EQ(weft_watch_stop(&ear.watch), 1);
	CHECK(handler_of(SIGUSR1) == on_foreign);
	foreign.sa_handler = SIG_DFL;
	OK(sigaction(SIGUSR1, &foreign, NULL));
	OK(weft_loop_free(loop));
}

TEST(signal_watch_is_background_unless_that_is_changed)
{
	weft_loop *loop = make();
	struct ear ear = { .calls = 0 };
	struct watcher fd = { .calls = 0 };
	struct pair pair = make_pair();

	hear(loop, &ear, SIGUSR1);
	OK(weft_loop_run(loop));
	weft__watch_set_background(&ear.watch, false);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_EQ(weft_watch_stop(&ear.watch), 1);
	hear(loop, &ear, SIGUSR1); /* the setting is kept */
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	weft__watch_set_background(&ear.watch, true);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	CHECK_EQ(weft_watch_stop(&ear.watch), 1);
	/* When a signal watch is restarted on a descriptor, it keeps nothing of the signal. */
	OK(weft_watch_start_signal(loop, &fd.watch, SIGUSR1, on_ready, &fd));
	watch(loop, &fd, pair.fd, WEFT_READABLE);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	put(pair.peer, "x");
	turns(loop, 1);
	CHECK(fd.calls > 0);
	OK(weft_watch_start_signal(loop, &fd.watch, SIGUSR2, on_ready, &fd));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	CHECK_EQ(weft_watch_stop(&fd.watch), 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

static void
stop_self_and_other(struct ear *ear)
{
	CHECK_EQ(weft_watch_stop(&ear->other->watch), 1);
	free(ear->other);
	CHECK_EQ(weft_watch_stop(&ear->watch), 1);
	free(ear);
}

TEST(callback_may_stop_and_free_its_signal_watch_and_later_ones)
{
	weft_loop *loop = make();
	struct ear *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct ear last = { .calls = 0 };

	a->act = b->act = stop_self_and_other;
	a->other = b;
	b->other = a;
	hear(loop, a, SIGUSR1);
	hear(loop, b, SIGUSR1);
	hear(loop, &last, SIGUSR1);
	OK(raise(SIGUSR1));
	turns(loop, 2);
	CHECK_EQ(last.calls, 1);
	CHECK_EQ(weft_watch_stop(&last.watch), 1);
	OK(weft_loop_free(loop));
}

static void
start_other(struct ear *ear)
{
	hear(ear->watch.loop, ear->other, SIGUSR1);
	CHECK_EQ(weft_watch_stop(&ear->watch), 1);
}

TEST(signal_watch_started_in_a_callback_sees_the_next_signal)
{
	weft_loop *loop = make();
	struct ear b = { .calls = 0 };
	struct ear a = { .act = start_other, .other = &b };

	hear(loop, &a, SIGUSR1);
	OK(raise(SIGUSR1));
	turns(loop, 3);
	CHECK_EQ(a.calls, 1);
	CHECK_EQ(b.calls, 0);
	OK(raise(SIGUSR1));
	turns(loop, 2);
	CHECK_EQ(b.calls, 1);
	CHECK_EQ(weft_watch_stop(&b.watch), 1);
	OK(weft_loop_free(loop));
}

TEST(restarting_a_signal_watch_changes_its_callback_or_its_signal)
{
	weft_loop *loop = make();
	struct ear a = { .calls = 0 }, b = { .calls = 0 };

	hear(loop, &a, SIGUSR1);
	OK(weft_watch_start_signal(loop, &a.watch, SIGUSR1, on_hear, &a));
	OK(weft_watch_start_signal(loop, &a.watch, SIGUSR2, on_hear, &a));
	CHECK(handler_of(SIGUSR1) == SIG_DFL);
	OK(raise(SIGUSR2));
	turns(loop, 2);
	CHECK_EQ(a.calls, 1);
	CHECK_EQ(a.signo, SIGUSR2);
	CHECK_EQ(weft_watch_stop(&a.watch), 1);
	hear(loop, &b, SIGUSR1);
	CHECK_EQ(weft_watch_start_signal(loop, &b.watch, SIGKILL, on_hear, &b), WEFT_EINVAL);
	OK(raise(SIGUSR1)); /* a failed restart leaves it as it was */
	turns(loop, 2);
	CHECK_EQ(b.calls, 1);
	CHECK_EQ(weft_watch_stop(&b.watch), 1);
	OK(weft_loop_free(loop));
}

/* --- loops on their own threads ----------------------------------------- */

static weft__a32 heard_by[2], last_heard;

static void
on_count(weft_watch *heard, int what, void *arg)
{
	(void)heard;
	if (what > 0)
		(void)weft__add((weft__a32 *)arg, 1, WEFT__RELEASE);
}

static struct {
	weft_loop *loop;
	weft_watch watch;
	weft__a32 ready;
} deaf[2];

static void
begin_hearing(void *arg)
{
	int i = (int)(intptr_t)arg;

	OK(weft_watch_start_signal(NULL, &deaf[i].watch, SIGUSR1, on_count, &heard_by[i]));
	weft__store(&deaf[i].ready, 1, WEFT__RELEASE);
}

TEST(signal_wakes_a_sleeping_loop_on_another_thread)
{
	for (int i = 0; i < 2; i++) {
		deaf[i].loop = make_started();
		OK(weft_loop_post(deaf[i].loop, begin_hearing, MARK(i)));
		while (!weft__load(&deaf[i].ready, WEFT__ACQUIRE))
			sched_yield();
		watch_for(deaf[i].loop, WEFT_SLEEPING);
	}
	for (uint32_t n = 1; n < 20; n++) {
		OK(kill(getpid(), SIGUSR1)); /* one of our threads gets it */
		for (int i = 0; i < 2; i++)
			while (weft__load(&heard_by[i], WEFT__ACQUIRE) < n)
				sched_yield();
	}
	for (int i = 0; i < 2; i++)
		stop_and_free(deaf[i].loop);
	CHECK(handler_of(SIGUSR1) == SIG_DFL);
}

/* The last signal must not go to the thread that ends.  When a thread ends, ThreadSanitizer
 * drops the signals that it has delayed for it. */
static void *
storm(void *arg)
{
	sigset_t last;

	(void)arg;
	OK(sigemptyset(&last));
	OK(sigaddset(&last, SIGUSR2));
	OK(pthread_sigmask(SIG_BLOCK, &last, NULL));
	for (int i = 0; i < 20000; i++)
		OK(kill(getpid(), SIGUSR1));
	weft__store(&last_heard, 1, WEFT__RELEASE);
	OK(kill(getpid(), SIGUSR2));
	return NULL;
}

static void
leave_at_last(struct ear *ear)
{
	CHECK(weft__load(&last_heard, WEFT__ACQUIRE));
	weft_loop_break(ear->watch.loop);
}

TEST(last_signal_of_a_storm_is_not_lost)
{
	weft_loop *loop = make();
	struct ear many = { .calls = 0 }, last = { .act = leave_at_last };
	pthread_t stormer;
	int before;

	hear(loop, &many, SIGUSR1);
	hear(loop, &last, SIGUSR2);
	weft__watch_set_background(&last.watch, false);
	stormer = thread(storm, NULL);
	OK(weft_loop_run(loop));
	OK(pthread_join(stormer, NULL));
	turns(loop, 200);
	CHECK_EQ(last.calls, 1);
	CHECK(many.calls > 0);
	before = many.calls;
	OK(raise(SIGUSR1)); /* the loop still receives signals */
	turns(loop, 3);
	CHECK_EQ(many.calls, before + 1);
	CHECK_EQ(weft_watch_stop(&many.watch), 1);
	CHECK_EQ(weft_watch_stop(&last.watch), 1);
	OK(weft_loop_free(loop));
}

static weft__a32 storm_over;

static void *
storm_on(void *arg)
{
	(void)arg;
	while (!weft__load(&storm_over, WEFT__ACQUIRE))
		OK(kill(getpid(), SIGUSR1));
	return NULL;
}

TEST(loops_are_created_and_freed_during_a_signal_storm)
{
	weft_loop *loop = make();
	struct ear stays = { .calls = 0 };
	pthread_t stormer;

	hear(loop, &stays, SIGUSR1); /* without it the storm would kill this process */
	stormer = thread(storm_on, NULL);
	for (int i = 0; i < 200; i++) {
		weft_loop *other = make();
		struct ear ear = { .calls = 0 };

		hear(other, &ear, SIGUSR1);
		while (ear.calls == 0)
			(void)weft_loop_run_once(other, WEFT_NEVER);
		if (i % 2)
			CHECK_EQ(weft_watch_stop(&ear.watch), 1);
		OK(weft_loop_free(other));
	}
	weft__store(&storm_over, 1, WEFT__RELEASE);
	OK(pthread_join(stormer, NULL));
	CHECK_EQ(weft_watch_stop(&stays.watch), 1);
	OK(weft_loop_free(loop));
}

/* --- the end of a loop -------------------------------------------------- */

TEST(loop_stop_is_reported_once_to_each_signal_watch)
{
	weft_loop *loop = make();
	struct ear ears[3] = { { .calls = 0 } };

	for (int i = 0; i < 3; i++)
		hear(loop, &ears[i], i ? SIGUSR1 : SIGUSR2);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ears[i].ends, 1);
		CHECK_EQ(weft_watch_start_signal(loop, &ears[i].watch, SIGUSR1, on_hear, &ears[i]),
		         WEFT_ESHUTDOWN);
	}
	CHECK(handler_of(SIGUSR1) == SIG_DFL);
	CHECK(handler_of(SIGUSR2) == SIG_DFL);
	OK(weft_loop_free(loop));
}

TEST(forked_child_has_the_original_signal_handlers)
{
	weft_loop *loop = make();
	struct ear ear = { .calls = 0 };
	int status;
	pid_t pid;

	hear(loop, &ear, SIGUSR1);
	pid = test_fork();
	if (pid == 0) {
		bool given = handler_of(SIGUSR1) == SIG_DFL;
		bool freed = weft_loop_free(loop) == 0;

		(void)raise(given && freed ? SIGUSR1 : SIGABRT);
		test_child_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGUSR1);
	OK(raise(SIGUSR1)); /* the parent still has its handler */
	turns(loop, 2);
	CHECK_EQ(ear.calls, 1);
	CHECK_EQ(weft_watch_stop(&ear.watch), 1);
	OK(weft_loop_free(loop));
}

TEST(misuse_of_signal_watches_is_reported)
{
	weft_loop *loop = make();
	struct ear ear = { .calls = 0 };
	weft_watch *none = NULL;

	CHECK_MISUSE(weft_watch_start_signal(NULL, &ear.watch, SIGUSR1, on_hear, &ear),
	             WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start_signal(loop, none, SIGUSR1, on_hear, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start_signal(loop, &ear.watch, SIGUSR1, NULL, NULL), WEFT_EINVAL);
	for (int i = 0; i < 3; i++) {
		static const int bad[] = { 0, -1, 64 };

		CHECK_MISUSE(weft_watch_start_signal(loop, &ear.watch, bad[i], on_hear, &ear),
		             WEFT_EINVAL);
	}
	CHECK_EQ(weft_watch_start_signal(loop, &ear.watch, SIGSTOP, on_hear, &ear), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}

/* --- ops ---------------------------------------------------------------- */

static void
await(weft_loop *loop, struct probe *p, uint64_t signals, uint64_t deadline_ns)
{
	init(loop, p);
	OK(weft__signal_op(&p->op, signals, deadline_ns));
}

TEST(signal_op_finishes_with_the_signal_that_arrived)
{
	weft_loop *loop = make();
	struct probe p = { .results = 0 };

	await(loop, &p, BIT(SIGUSR1) | BIT(SIGUSR2), WEFT_NEVER);
	turns(loop, 2);
	CHECK_EQ(p.results, 0);
	OK(raise(SIGUSR2));
	OK(weft_loop_run(loop)); /* the op keeps the loop alive until then */
	CHECK_ENDED(&p, SIGUSR2);
	OK(weft_loop_free(loop));
}

TEST(signal_between_two_waits_is_kept_for_the_next)
{
	weft_loop *loop = make();
	struct probe p = { .results = 0 };

	await(loop, &p, BIT(SIGUSR1) | BIT(SIGUSR2), WEFT_NOWAIT);
	turns(loop, 2);
	CHECK_ENDED(&p, WEFT_ETIMEDOUT);
	OK(raise(SIGUSR2));
	OK(raise(SIGUSR1));
	OK(raise(SIGUSR1));
	turns(loop, 3);
	for (int i = 0; i < 3; i++) {
		static const int want[] = { SIGUSR1, SIGUSR2, WEFT_ETIMEDOUT };

		p = (struct probe){ .results = 0 };
		await(loop, &p, BIT(SIGUSR1) | BIT(SIGUSR2), WEFT_NOWAIT);
		turns(loop, 2);
		CHECK_ENDED(&p, want[i]);
	}
	CHECK(handler_of(SIGUSR1) != SIG_DFL); /* until the loop is freed */
	OK(weft_loop_free(loop));
	CHECK(handler_of(SIGUSR1) == SIG_DFL);
}

TEST(pending_signal_can_be_polled_without_waiting)
{
	weft_loop *loop = make();
	struct ear ear = { .calls = 0 };

	CHECK_EQ(weft__signal_poll(loop, BIT(SIGUSR1)), WEFT_ETIMEDOUT);
	hear(loop, &ear, SIGUSR1);
	OK(raise(SIGUSR1));
	CHECK_EQ(weft__signal_poll(loop, BIT(SIGUSR1)), SIGUSR1);
	CHECK_EQ(weft__signal_poll(loop, BIT(SIGUSR1)), WEFT_ETIMEDOUT);
	CHECK_EQ(ear.calls, 0); /* no callback runs inside the call */
	turns(loop, 2);
	CHECK_EQ(ear.calls, 1);
	CHECK_EQ(weft__signal_poll(loop, BIT(SIGKILL)), WEFT_EINVAL);
	CHECK_MISUSE(weft__signal_poll(loop, 0), WEFT_EINVAL);
	CHECK_MISUSE(weft__signal_poll(NULL, BIT(SIGUSR1)), WEFT_EINVAL);
	CHECK_EQ(weft_watch_stop(&ear.watch), 1);
	OK(weft_loop_free(loop));
}

TEST(signal_op_past_its_deadline_still_returns_a_pending_signal)
{
	weft_loop *loop = make();
	struct ear ear = { .calls = 0 };
	struct probe p = { .results = 0 };

	hear(loop, &ear, SIGUSR1);
	await(loop, &p, BIT(SIGUSR1), WEFT_NOWAIT);
	OK(raise(SIGUSR1));
	turns(loop, 2);
	CHECK_ENDED(&p, SIGUSR1);
	CHECK_EQ(ear.calls, 1); /* the watch gets it as well */
	CHECK_EQ(weft_watch_stop(&ear.watch), 1);
	OK(weft_loop_free(loop));
}

TEST(all_ops_that_wait_for_a_signal_get_it)
{
	weft_loop *loop = make();
	struct probe p[3] = { { .results = 0 } };

	await(loop, &p[0], BIT(SIGUSR1), WEFT_NEVER);
	await(loop, &p[1], BIT(SIGUSR2), WEFT_NEVER);
	await(loop, &p[2], BIT(SIGUSR1) | BIT(SIGHUP), WEFT_NEVER);
	OK(raise(SIGUSR1));
	turns(loop, 3);
	CHECK_ENDED(&p[0], SIGUSR1);
	CHECK_EQ(p[1].results, 0);
	CHECK_ENDED(&p[2], SIGUSR1);
	weft_op_cancel(&p[1].op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p[1], WEFT_ECANCELED);
	OK(weft_loop_free(loop));
}

TEST(loop_stop_ends_signal_ops)
{
	weft_loop *loop = make();
	struct probe p = { .results = 0 };

	await(loop, &p, BIT(SIGUSR1), WEFT_NEVER);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_ESHUTDOWN);
	CHECK(handler_of(SIGUSR1) == SIG_DFL);
	OK(weft_loop_free(loop));
}

TEST(signal_op_for_a_signal_that_cannot_be_caught_fails)
{
	weft_loop *loop = make();
	struct probe p = { .results = 0 };

	await(loop, &p, BIT(SIGUSR1) | BIT(SIGKILL), WEFT_NEVER);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_EINVAL);
	CHECK(handler_of(SIGUSR1) == SIG_DFL);
	CHECK_MISUSE(weft__signal_op(&p.op, 0, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft__signal_op(&p.op, 1, WEFT_NEVER), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}
