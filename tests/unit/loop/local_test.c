/* local_test.c - loop-local values. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/embed.h>
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)
#define MARK(c)  ((void *)(intptr_t)(c))

static char trace[64];
static weft_loop *dropping; /* the loop whose values are dropped */
static int key_a, key_b, key_plain, key_again;
static int again_rc, again_times;
static void *seen;

/* Values are letters.  The drop callbacks append them to the trace. */
static void
note(void *value)
{
	size_t used = strlen(trace);

	CHECK(used + 1 < sizeof(trace));
	trace[used] = (char)(intptr_t)value;
	trace[used + 1] = '\0';
}

/* Read another value and set this key again, at most 100 times. */
static void
drop_again(void *value)
{
	note(value);
	if (++again_times > 100)
		return;
	seen = weft_loop_local_get(dropping, key_a);
	again_rc = weft_loop_local_set(dropping, key_again, MARK('z'));
}

static weft_loop *
make(void)
{
	if (!key_a) {
		key_a = weft_key_new(note);
		key_b = weft_key_new(note);
		key_plain = weft_key_new(NULL);
		key_again = weft_key_new(drop_again);
	}
	trace[0] = '\0';
	again_times = again_rc = 0;
	seen = NULL;
	dropping = weft_loop_new(NULL);
	CHECK(dropping != NULL);
	return dropping;
}

TEST(each_loop_has_its_own_values)
{
	weft_loop *loop = make(), *other = make();

	CHECK(weft_loop_local_get(loop, key_a) == NULL);
	OK(weft_loop_local_set(loop, key_a, MARK('a')));
	OK(weft_loop_local_set(other, key_a, MARK('A')));
	OK(weft_loop_local_set(loop, key_b, MARK('b')));
	CHECK(weft_loop_local_get(loop, key_a) == MARK('a'));
	CHECK(weft_loop_local_get(other, key_a) == MARK('A'));
	CHECK(weft_loop_local_get(loop, key_b) == MARK('b'));
	CHECK(weft_loop_local_get(other, key_b) == NULL);
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "ba");
	OK(weft_loop_free(other));
	CHECK_STR(trace, "baA");
}

TEST(a_value_that_is_replaced_or_unset_is_dropped_at_once)
{
	weft_loop *loop = make();

	OK(weft_loop_local_set(loop, key_a, MARK('a')));
	OK(weft_loop_local_set(loop, key_a, MARK('a'))); /* the same value is not dropped */
	CHECK_STR(trace, "");
	OK(weft_loop_local_set(loop, key_a, MARK('b')));
	CHECK_STR(trace, "a");
	OK(weft_loop_local_set(loop, key_a, NULL));
	CHECK_STR(trace, "ab");
	OK(weft_loop_local_set(loop, key_a, NULL));
	OK(weft_loop_local_set(loop, key_plain, MARK('p')));
	OK(weft_loop_local_set(loop, key_plain, NULL));
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "ab");
}

TEST(values_are_dropped_when_the_loop_stops_and_not_again_when_it_is_freed)
{
	weft_loop *loop = make();

	OK(weft_loop_local_set(loop, key_a, MARK('a')));
	OK(weft_loop_local_set(loop, key_plain, MARK('p')));
	weft_loop_shutdown(loop);
	CHECK_STR(trace, "a");
	CHECK(weft_loop_local_get(loop, key_a) == NULL);
	CHECK_EQ(weft_loop_local_set(loop, key_a, MARK('b')), WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "a");
}

TEST(values_outlive_posts_accepted_before_the_stop)
{
	weft_loop *loop = make();

	OK(weft_loop_local_set(loop, key_a, MARK('a')));
	OK(weft_loop_post(loop, note, MARK('p')));
	weft_loop_shutdown(loop);
	CHECK_STR(trace, "");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "pa");
	OK(weft_loop_free(loop));
}

static void
drop_late(void *value)
{
	note(value);
	OK(weft_schedule_microtask(dropping, note, MARK('m')));
}

TEST(a_microtask_queued_by_a_drop_callback_still_runs)
{
	weft_loop *loop = make();
	int key = weft_key_new(drop_late);

	OK(weft_loop_local_set(loop, key, MARK('d')));
	weft_loop_shutdown(loop);
	CHECK_STR(trace, "dm");
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
}

TEST(a_drop_callback_cannot_set_values_while_the_loop_stops_or_is_freed)
{
	for (int i = 0; i < 2; i++) {
		weft_loop *loop = make();

		OK(weft_loop_local_set(loop, key_again, MARK('x')));
		OK(weft_loop_local_set(loop, key_a, MARK('a')));
		if (i == 0)
			weft_loop_shutdown(loop);
		OK(weft_loop_free(loop));
		CHECK_STR(trace, "xa");
		CHECK_EQ(again_rc, WEFT_ESHUTDOWN);
		CHECK(seen != NULL);
	}
}

TEST(a_value_set_by_a_drop_callback_replaces_the_new_value)
{
	weft_loop *loop = make();

	OK(weft_loop_local_set(loop, key_again, MARK('x')));
	OK(weft_loop_local_set(loop, key_again, MARK('y')));
	CHECK_STR(trace, "xy"); /* z replaced y; setting z again changes nothing */
	CHECK(weft_loop_local_get(loop, key_again) == MARK('z'));
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "xyz");
}

static void
use_current(void *arg)
{
	(void)arg;
	OK(weft_loop_local_set(NULL, key_b, MARK('b')));
	CHECK(weft_loop_local_get(NULL, key_b) == MARK('b'));
}

TEST(null_means_the_running_loop)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, use_current, NULL));
	OK(weft_loop_run(loop));
	CHECK(weft_loop_local_get(loop, key_b) == MARK('b'));
	OK(weft_loop_free(loop));
}

TEST(a_forked_child_frees_a_loop_without_calling_drop_callbacks)
{
	weft_loop *loop = make();
	int status = 0;
	pid_t child;

	OK(weft_loop_local_set(loop, key_a, MARK('a')));
	child = fork();
	if (child == 0) {
		int rc = weft_loop_free(loop);

		test_child_exit(rc != 0 || trace[0] != '\0');
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "a");
}

/* --- misuse ------------------------------------------------------------- */

static void *
use_elsewhere(void *arg)
{
	CHECK_MISUSE(weft_loop_local_set(arg, key_a, MARK('a')), WEFT_EWRONGLOOP);
	CHECK_MISUSE(weft_loop_local_get(arg, key_a) == NULL, true);
	return NULL;
}

static void
try_elsewhere(void *arg)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, use_elsewhere, arg));
	OK(pthread_join(thread, NULL));
}

TEST(misuse_of_loop_values_is_refused)
{
	weft_loop *loop = make();

	CHECK_MISUSE(weft_loop_local_set(loop, 0, MARK('a')), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_local_set(loop, 65, MARK('a')), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_local_set(loop, -1, MARK('a')), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_local_get(loop, 0) == NULL, true);
	CHECK_MISUSE(weft_loop_local_set(NULL, key_a, MARK('a')), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_local_get(NULL, key_a) == NULL, true);
	OK(weft_loop_post(loop, try_elsewhere, loop));
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "");
}

static int post_rc, stop_rc, last_ran;

static void
ran(void *arg)
{
	(void)arg;
	last_ran++;
}

/* Everything that a drop callback might try with its loop. */
static void
drop_busy(void *value)
{
	static weft_node node;

	note(value);
	post_rc = weft_loop_post(dropping, ran, NULL);
	node = (weft_node){ .fn = ran };
	OK(weft_loop_post_before_wait(dropping, &node));
	weft_loop_shutdown(dropping);
	stop_rc = weft_loop_free(dropping);
}

TEST(calls_of_a_drop_callback_are_refused_or_run_when_a_loop_is_freed)
{
	static int key;
	weft_loop *loop = make();

	if (!key)
		key = weft_key_new(drop_busy);
	last_ran = 0;
	OK(weft_loop_local_set(loop, key, MARK('d')));
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "d");
	CHECK_EQ(post_rc, WEFT_ESHUTDOWN);
	CHECK_EQ(stop_rc, WEFT_EBUSY);
	CHECK_EQ(last_ran, 1);
}

TEST(calls_of_a_drop_callback_are_refused_or_run_when_a_loop_is_stopped)
{
	static int key;
	weft_loop *loop = make();

	if (!key)
		key = weft_key_new(drop_busy);
	last_ran = 0;
	OK(weft_loop_local_set(loop, key, MARK('d')));
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_EQ(post_rc, WEFT_ESHUTDOWN);
	CHECK_EQ(stop_rc, WEFT_EBUSY);
	CHECK_EQ(last_ran, 1);
	OK(weft_loop_free(loop));
}

/* Must be the last test: keys are never freed. */
TEST(there_are_64_keys_and_all_can_be_used)
{
	weft_loop *loop = make();
	int last = 0, key;

	while ((key = weft_key_new(note)) > 0)
		last = key;
	CHECK_EQ(key, WEFT_EAGAIN);
	CHECK_EQ(last, 64);
	OK(weft_loop_local_set(loop, 64, MARK('l')));
	OK(weft_loop_local_set(loop, key_a, MARK('a')));
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "la");
}
