/* trace_test.c - recordings of what the program does, as a Chrome trace.
 *
 * tests/trace/check.py checks the contents of a whole trace.
 */
#include <pthread.h>
#include <sched.h>
#include <weft/dag.h>
#include <weft/trace.h>
#include "base/node.h"
#include "base/sys.h"
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

/* All of an ended recording.  The caller frees it. */
static char *
text_of(weft_trace *trace)
{
	char *text = calloc(1, 1);
	size_t all = 0, size;
	const char *piece;

	while (weft_trace_read(trace, &piece, &size) == 1) {
		CHECK(size > 0 && size <= 65536);
		text = realloc(text, all + size + 1);
		memcpy(text + all, piece, size);
		all += size;
		text[all] = '\0';
	}
	return text;
}

static int
count_of(const char *text, const char *what)
{
	int count = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		count++;
	return count;
}

static weft_trace *
record(size_t bytes_max)
{
	weft_trace_opts opts = { .bytes_max = bytes_max };
	weft_trace *trace;

	OK(weft_trace_begin(&opts, &trace));
	return trace;
}

static void
nothing(void *arg)
{
	(void)arg;
}

static void
post_and_run(weft_loop *loop, int count)
{
	for (int i = 0; i < count; i++)
		OK(weft_loop_post(loop, nothing, NULL));
	OK(weft_loop_run(loop));
}

/* --- recordings ---------------------------------------------------------- */

TEST(only_one_recording_runs_at_a_time)
{
	weft_trace *first = record(0), *second = NULL;

	CHECK_EQ(weft_trace_begin(NULL, &second), WEFT_EBUSY);
	CHECK(second == NULL);
	OK(weft_trace_end(first));
	OK(weft_trace_end(first));
	OK(weft_trace_begin(NULL, &second));
	weft_trace_free(first);
	CHECK_EQ(weft_trace_begin(NULL, &first), WEFT_EBUSY);
	weft_trace_free(second);
	weft_trace_free(NULL);
	CHECK_MISUSE(weft_trace_begin(NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_trace_end(NULL), WEFT_EINVAL);
}

TEST(a_recording_can_be_read_only_after_its_end)
{
	weft_trace *trace = record(0);
	const char *piece;
	size_t size;

	CHECK_EQ(weft_trace_read(trace, &piece, &size), WEFT_EBUSY);
	OK(weft_trace_end(trace));
	CHECK_EQ(weft_trace_read(trace, &piece, &size), 1);
	CHECK(piece[0] == '[' && piece[size - 2] == ']');
	CHECK_EQ(weft_trace_read(trace, &piece, &size), 0);
	CHECK_EQ(weft_trace_read(trace, &piece, &size), 0);
	weft_trace_free(trace);
}

TEST(events_before_and_after_a_recording_are_not_in_it)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_trace *trace;
	char *text;

	post_and_run(loop, 3);
	trace = record(0);
	post_and_run(loop, 5);
	OK(weft_trace_end(trace));
	post_and_run(loop, 7);
	text = text_of(trace);
	CHECK_EQ(count_of(text, "\"name\":\"post "), 5);
	CHECK_EQ(count_of(text, "\"ph\":\"s\""), 5);
	CHECK_EQ(count_of(text, "\"ph\":\"f\""), 5);
	free(text);
	weft_trace_free(trace);
	OK(weft_loop_free(loop));
}

TEST(a_second_recording_names_its_tracks_again)
{
	weft_loop_opts opts = { .name = "again" };
	weft_loop *loop = weft_loop_new(&opts);

	for (int i = 0; i < 2; i++) {
		weft_trace *trace = record(0);
		char *text;

		post_and_run(loop, 1);
		OK(weft_trace_end(trace));
		text = text_of(trace);
		CHECK_EQ(count_of(text, "(again)"), 1);
		free(text);
		weft_trace_free(trace);
	}
	OK(weft_loop_free(loop));
}

TEST(events_that_do_not_fit_are_dropped_and_counted)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_trace *trace = record(1);
	char *text;

	post_and_run(loop, 2000);
	OK(weft_trace_end(trace));
	text = text_of(trace);
	CHECK(count_of(text, "\"name\":\"post ") > 100);
	CHECK(count_of(text, "\"name\":\"post ") < 1000);
	CHECK(!strstr(text, "\"count\":0}"));
	CHECK_EQ(count_of(text, "dropped_events"), 1);
	free(text);
	weft_trace_free(trace);
	OK(weft_loop_free(loop));
}

static int
sleep_a_little(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_US);
}

TEST(names_with_any_bytes_are_escaped)
{
	static const char name[] = "\"\\\n\x7f\xc3\xa9\xff\xed\xa0\x80";
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop, .name = name };
	weft_trace *trace = record(0);
	char *text;

	CHECK(weft_go_with(&opts, sleep_a_little, NULL) > 0);
	OK(weft_loop_run(loop));
	OK(weft_trace_end(trace));
	text = text_of(trace);
	CHECK(strstr(text, "(\\\"\\\\\\u000a\\u007f\xc3\xa9"
	                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd)"));
	free(text);
	weft_trace_free(trace);
	OK(weft_loop_free(loop));
}

/* Ten threadlets one after another, most likely on one stack. */
static int
start_ten(void *arg)
{
	weft_scope scope;

	(void)arg;
	for (int i = 0; i < 10; i++) {
		weft_go_opts opts = { .name = "one of ten", .scope = &scope };

		OK(weft_scope_open(&scope, 0, WEFT_NEVER));
		CHECK(weft_go_with(&opts, sleep_a_little, NULL) > 0);
		OK(weft_scope_close(&scope));
	}
	return 0;
}

TEST(each_threadlet_has_its_own_track)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };
	weft_trace *trace = record(0);
	char *text;

	CHECK(weft_go_with(&opts, start_ten, NULL) > 0);
	OK(weft_loop_run(loop));
	OK(weft_trace_end(trace));
	text = text_of(trace);
	CHECK_EQ(count_of(text, "(one of ten)"), 10);
	CHECK_EQ(count_of(text, "\"name\":\"begin\""), 11);
	CHECK_EQ(count_of(text, "\"name\":\"end\""), 11);
	CHECK_EQ(count_of(text, "\"name\":\"sleep\""), 10);
	CHECK_EQ(count_of(text, "\"until\":\"sleep\""), 10);
	CHECK_EQ(count_of(text, "\"until\":\"end\""), 11);
	free(text);
	weft_trace_free(trace);
	OK(weft_loop_free(loop));
}

/* A threadlet starts, runs and waits in an iteration that began before the recording. */
static int
sleep_longer(void *arg)
{
	(void)arg;
	return weft_sleep_until(weft_after(20 * WEFT_MS));
}

static weft_trace *begun;

static void
record_and_go(void *arg)
{
	weft_go_opts opts = { .name = "early" };

	(void)arg;
	begun = record(0);
	CHECK(weft_go_with(&opts, sleep_longer, NULL) > 0);
}

TEST(a_threadlet_that_ran_unrecorded_is_not_shown_as_waiting_to_start)
{
	weft_loop *loop = weft_loop_new(NULL);
	const char *at;
	char *text;

	OK(weft_loop_post(loop, record_and_go, NULL));
	OK(weft_loop_run(loop));
	OK(weft_trace_end(begun));
	text = text_of(begun);
	at = strstr(text, "\"cat\":\"threadlet\",\"name\":\"start\"");
	if (at) {
		while (strncmp(at, "\"dur\":", 6) != 0)
			at--;
		CHECK(strtod(at + 6, NULL) < 20000);
	}
	free(text);
	weft_trace_free(begun);
	OK(weft_loop_free(loop));
}

static int
step(weft_dag_step *self, void *arg)
{
	(void)self;
	(void)arg;
	return 0;
}

/* However little memory is left, an arrow is recorded only with the spans of its ends. */
TEST(arrows_between_steps_that_do_not_fit_are_dropped)
{
	weft_dag *dag = weft_dag_new("two");
	weft_dag_node b = { .name = "b", .fn = step, .inputs = (const char *const[]){ "a", NULL } };

	CHECK(weft_dag_add(dag, &(weft_dag_node){ .name = "a", .fn = step }) >= 0);
	CHECK(weft_dag_add(dag, &b) >= 0);
	OK(weft_dag_check(dag));
	for (int posts = 0; posts < 5; posts++) {
		weft_loop *loop = weft_loop_new(NULL);
		weft_trace *trace = record(1);
		char *text;

		for (int i = 0; i < posts; i++)
			OK(weft_loop_post(loop, nothing, NULL));
		for (int i = 0; i < 200; i++) {
			weft_dag_run *run = weft_dag_run_new(dag, NULL);

			OK(weft_dag_run_wait(run, WEFT_NEVER));
			weft_dag_run_free(run);
		}
		OK(weft_trace_end(trace));
		text = text_of(trace);
		CHECK(count_of(text, "\"name\":\"b\"") > 10);
		CHECK(count_of(text, "\"ph\":\"f\"") <= count_of(text, "\"name\":\"b\""));
		free(text);
		weft_trace_free(trace);
		OK(weft_loop_run(loop));
		OK(weft_loop_free(loop));
	}
	OK(weft_dag_free(dag));
}

/* --- without memory ------------------------------------------------------- */

static const struct weft__sys *plain;
static int allowed;

static void *
alloc_some(size_t size)
{
	return allowed-- > 0 ? plain->alloc(size) : NULL;
}

TEST(beginning_and_reading_a_recording_fail_without_memory)
{
	struct weft__sys poor = *weft__sys;
	weft_trace *trace;
	const char *piece;
	size_t size;

	plain = weft__sys;
	poor.alloc = alloc_some;
	weft__sys = &poor;
	for (int i = 0; i < 2; i++) {
		allowed = i;
		CHECK_EQ(weft_trace_begin(NULL, &trace), WEFT_ENOMEM);
	}
	allowed = 2;
	OK(weft_trace_begin(NULL, &trace));
	OK(weft_trace_end(trace));
	for (int i = 0; i < 3; i++) {
		allowed = i;
		CHECK_EQ(weft_trace_read(trace, &piece, &size), WEFT_ENOMEM);
	}
	allowed = 3;
	CHECK_EQ(weft_trace_read(trace, &piece, &size), 1);
	weft_trace_free(trace);
	weft__sys = plain;
}

/* --- threads -------------------------------------------------------------- */

static weft__a32 over;
static weft_loop *target;

static void
await_node(const weft_node *node)
{
	const struct weft__node *inner = (const void *)node;

	while (weft__load(&inner->state, WEFT__ACQUIRE))
		sched_yield();
}

/* Each round waits for its last post, so that few posts are queued at a time. */
static void *
post_all_the_time(void *arg)
{
	weft_node node = { .fn = nothing };

	(void)arg;
	while (!weft__load(&over, WEFT__RELAXED)) {
		(void)weft_loop_post(target, nothing, NULL);
		OK(weft_loop_post_node(target, &node));
		await_node(&node);
	}
	return NULL;
}

static int
work(void *arg)
{
	(void)arg;
	return 0;
}

static int
work_all_the_time(void *arg)
{
	(void)arg;
	while (!weft__load(&over, WEFT__RELAXED)) {
		(void)weft_work(WEFT_CPU, work, NULL, WEFT_NEVER);
		(void)weft_yield();
	}
	return 0;
}

/* Record while the other threads write.  With `whole`, the recording lasts until the loop has
 * run two iterations in it: the first of three posts may run in an iteration that began before
 * the recording, the second runs in a later iteration, and that iteration is over when the
 * third post runs. */
static void
record_for_a_moment(size_t bytes_max, bool whole)
{
	weft_trace *trace = record(bytes_max);
	weft_node mark = { .fn = nothing };
	char *text;
	int begun_posts;

	for (int i = 0; whole && i < 3; i++) {
		OK(weft_loop_post_node(target, &mark));
		await_node(&mark);
	}
	OK(weft_trace_end(trace));
	text = text_of(trace);
	begun_posts = count_of(text, "\"ph\":\"s\"");
	CHECK_EQ(count_of(text, "\"ph\":\"f\""), begun_posts);
	CHECK(begun_posts > 0 || !whole || bytes_max == 1);
	free(text);
	weft_trace_free(trace);
}

/* A thread that comes too late for the end of a recording writes nothing. */
TEST(recordings_end_and_are_freed_while_other_threads_write)
{
	weft_loop_opts opts = { .name = "target", .flags = WEFT_LOOP_KEEP };
	pthread_t threads[3];

	weft__store(&over, 0, WEFT__RELAXED);
	target = weft_loop_new(&opts);
	OK(weft_loop_start(target));
	for (int i = 0; i < 3; i++)
		OK(pthread_create(&threads[i], NULL, post_all_the_time, NULL));
	for (int i = 0; i < 2; i++) {
		weft_go_opts go = { .loop = target, .name = "worker" };

		CHECK(weft_go_with(&go, work_all_the_time, NULL) > 0);
	}
	for (int i = 0; i < 200; i++)
		record_for_a_moment(i & 1 ? 1 : (size_t)1 << 20, i & 2);
	weft__store(&over, 1, WEFT__RELAXED);
	for (int i = 0; i < 3; i++)
		OK(pthread_join(threads[i], NULL));
	weft_loop_shutdown(target);
	OK(weft_loop_wait_stopped(target, WEFT_NEVER));
	OK(weft_loop_free(target));
}
