/* inspect_test.c - inspecting threadlets: lists, stack frames, dumps. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <weft/debug.h>
#include <weft/metrics.h>
#include "base/sys.h"
#include "base/text.h"
#include "threadlet/threadlet.h"
#include "unit/threadlet/sched.h"

#define SEEN_MAX 200

static weft_threadlet_info seen[SEEN_MAX];

/* Lists all threadlets of a loop, `slice` at a time. */
static int
look_at(weft_loop *loop, size_t slice)
{
	uint64_t cursor = 0;
	int all = 0, count;

	while ((count = weft__threadlet_list(loop, &cursor, &seen[all], slice, WEFT_NEVER)) > 0)
		all += count;
	OK(count);
	return all;
}

static const weft_threadlet_info *
see(const char *name, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(seen[i].name, name) == 0)
			return &seen[i];
	test_fail(__FILE__, __LINE__, "%s is not seen", name);
}

static weft_threadlet
go_named(weft_loop *loop, const char *name, weft_threadlet_fn fn, void *arg)
{
	weft_go_opts opts = { .loop = loop, .name = name };
	weft_threadlet id = weft_go_with(&opts, fn, arg);

	CHECK(id > 0);
	return id;
}

/* Yields until all listed threadlets wait.  Returns how many there are. */
static int
watch_for_waits(weft_loop *loop)
{
	for (;; sched_yield()) {
		int count = look_at(loop, 64), waits = 0;

		for (int i = 0; i < count; i++)
			waits += strcmp(seen[i].state, "waiting") == 0;
		if (count > 0 && waits == count)
			return count;
	}
}

/* --- states ------------------------------------------------------------- */

static int
wait_for_byte(void *arg)
{
	const struct pair *pair = arg;

	(void)weft_wait_fd(pair->fd, WEFT_READABLE, weft_now() + HOUR);
	return 0;
}

static int
receive(void *arg)
{
	const struct pair *pair = arg;
	char byte;
	weft_op op;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_recv(&op, pair->peer, &byte, 1, 0, WEFT_NEVER));
	(void)weft_op_wait(&op, WEFT_NEVER);
	return 0;
}

static weft_threadlet child;

static int
join_child(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, sleep_until_cancelled, NULL);
	(void)weft_join(child, NULL, WEFT_NEVER);
	weft_scope_cancel(&scope);
	return weft_scope_close(&scope);
}

static void
check_waits(int count, const struct pair *pair)
{
	const weft_threadlet_info *info = see("reader", count);

	CHECK_STR(info->state, "waiting");
	CHECK_STR(info->waits_for, "fd");
	CHECK_EQ(info->waits_on, pair->fd);
	CHECK(info->deadline_ns > weft_now() && info->deadline_ns < WEFT_NEVER);
	CHECK(info->since_ns <= weft_now() && info->since_ns > 0);
	CHECK(info->fn == (const void *)(uintptr_t)wait_for_byte);
	info = see("receiver", count);
	CHECK_STR(info->waits_for, "recv");
	CHECK_EQ(info->waits_on, pair->peer);
	CHECK_EQ(info->deadline_ns, WEFT_NEVER);
	info = see("joiner", count);
	CHECK_STR(info->waits_for, "join");
	CHECK_EQ(info->waits_on, child);
	CHECK_EQ(info->deadline_ns, WEFT_NEVER);
	info = see("sleeper", count);
	CHECK_STR(info->waits_for, "sleep until");
	CHECK(info->stack_bytes == 64 << 10);
	CHECK(info->stack_used > 0 && info->stack_used < info->stack_high + 1);
	CHECK(info->stack_high <= info->stack_bytes);
}

TEST(threadlet_list_shows_what_each_threadlet_waits_for)
{
	struct pair pair = make_pair();
	weft_loop *loop = make();
	weft_threadlet id = go_named(loop, "sleeper", sleep_until_cancelled, NULL);
	int count;

	go_named(loop, "joiner", join_child, NULL);
	go_named(loop, "reader", wait_for_byte, &pair);
	go_named(loop, "receiver", receive, &pair);
	turns(loop, 3);
	count = look_at(loop, 64);
	CHECK_EQ(count, 5);
	CHECK_EQ(see("sleeper", count)->id, id);
	check_waits(count, &pair);
	stop_idle(loop);
	close_pair(pair);
}

static int
look_at_oneself(void *arg)
{
	int count = look_at(arg, 64);

	CHECK_EQ(count, 2);
	CHECK_STR(see("self", count)->state, "running");
	CHECK_EQ(see("self", count)->id, weft_self());
	CHECK(see("self", count)->stack_used > 0);
	CHECK(see("self", count)->frames[0] != NULL);
	CHECK_STR(see("later", count)->state, "ready");
	CHECK_STR(see("later", count)->waits_for, "");
	CHECK(see("later", count)->frames[0] == see("later", count)->fn);
	return 0;
}

static int
do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

TEST(threadlet_list_shows_the_caller_running_and_others_ready)
{
	weft_loop *loop = make();

	go_named(loop, "self", look_at_oneself, loop);
	go_named(loop, "later", do_nothing, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(look_at(loop, 1), 0);
	OK(weft_loop_free(loop));
}

/* --- stacks ------------------------------------------------------------- */

static __attribute__((noinline)) int
park_deep(int depth)
{
	volatile char room[2000];

	memset((char *)room, depth, sizeof(room));
	if (depth > 0)
		return park_deep(depth - 1) + (room[0] != depth);
	return weft_sleep_until(WEFT_NEVER) + (room[1] != 0);
}

static __attribute__((noinline)) int
park_far_down(void *arg)
{
	int rc = park_deep((int)(intptr_t)arg);

	note(MARK('p'));
	return rc == WEFT_ECANCELED ? 0 : rc;
}

static bool
is_in(const void *pc, const void *fn)
{
	return (const char *)pc > (const char *)fn && (const char *)pc < (const char *)fn + 1024;
}

TEST(frames_of_a_waiting_threadlet_lead_to_its_function)
{
	weft_loop *loop = make();
	int count, last = 0;

	go_named(loop, "deep", park_far_down, MARK(3));
	turns(loop, 2);
	count = look_at(loop, 64);
	CHECK_EQ(count, 1);
	for (int i = 0; i < 16; i++)
		if (is_in(seen[0].frames[i], (void *)(uintptr_t)park_far_down))
			last = i;
	CHECK(last > 3);
	CHECK(is_in(seen[0].frames[last - 1], (void *)(uintptr_t)park_deep));
	CHECK(is_in(seen[0].frames[last - 4], (void *)(uintptr_t)park_deep));
	stop_idle(loop);
	CHECK_STR(trace, "p");
}

static int
dig_and_park(void *arg)
{
	volatile char room[30000];

	memset((char *)room, 1, sizeof(room));
	(void)arg;
	return room[5];
}

static int
dig_then_sleep(void *arg)
{
	(void)dig_and_park(arg);
	return sleep_until_cancelled(arg);
}

TEST(stack_high_mark_stays_when_the_stack_is_used_less)
{
	weft_loop *loop = make();

	go_named(loop, "dug", dig_then_sleep, NULL);
	turns(loop, 2);
	CHECK_EQ(look_at(loop, 64), 1);
	CHECK(seen[0].stack_used < 8000);
	CHECK(TEST_PORTABLE || seen[0].stack_high > 30000);
	CHECK(TEST_PORTABLE || seen[0].stack_high < 48000);
	stop_idle(loop);
}

/* --- slices ------------------------------------------------------------- */

TEST(slices_list_each_threadlet_once_although_some_end_meanwhile)
{
	weft_loop *loop = make();
	weft_threadlet ids[100];
	uint64_t cursor = 0;
	int count, all = 0;

	for (int i = 0; i < 100; i++)
		ids[i] = go_on(loop, sleep_until_cancelled, NULL);
	turns(loop, 3);
	CHECK_EQ(look_at(loop, 7), 100);
	for (int i = 0; i < 100; i++) /* newest first */
		CHECK_EQ(seen[i].id, ids[99 - i]);
	while ((count = weft__threadlet_list(loop, &cursor, seen, 10, WEFT_NEVER)) > 0) {
		all += count;
		/* The threadlet that was listed last, and the one to be listed next. */
		OK(weft_cancel(ids[100 - all]));
		if (all < 100)
			OK(weft_cancel(ids[99 - all]));
		go_on(loop, sleep_until_cancelled, NULL);
		turns(loop, 3);
		if (all % 3 == 0) /* another list uses the marker */
			(void)weft__threadlet_list(loop, &(uint64_t){ 0 }, &seen[100], 3,
			                           WEFT_NEVER);
		all++;
	}
	CHECK_EQ(count, 0);
	CHECK(all >= 100 && all <= 101);
	stop_idle(loop);
}

/* --- other threads and loops -------------------------------------------- */

TEST(plain_thread_can_list_the_threadlets_of_a_sleeping_loop)
{
	weft_loop *loop = make();

	go_named(loop, "a", sleep_until_cancelled, NULL);
	go_named(loop, "b", sleep_until_cancelled, NULL);
	CHECK_EQ(look_at(loop, 64), 0); /* still in the loop's inbox */
	OK(weft_loop_start(loop));
	while (watch_for_waits(loop) < 2)
		sched_yield();
	watch_for(loop, WEFT_SLEEPING);
	CHECK_EQ(look_at(loop, 1), 2);
	CHECK_STR(seen[0].name, "b");
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	CHECK_EQ(look_at(loop, 1), 0);
	OK(weft_loop_free(loop));
}

/* Starts a loop on its own thread, with one threadlet that already sleeps. */
static weft_loop *
start_with_sleeper(void)
{
	weft_loop *loop = make();

	go_named(loop, "a", sleep_until_cancelled, NULL);
	OK(weft_loop_start(loop));
	(void)watch_for_waits(loop);
	return loop;
}

static weft__a32 held, let_go;

static void
hold(void *arg)
{
	(void)arg;
	weft__store(&held, 1, WEFT__RELEASE);
	while (!weft__load(&let_go, WEFT__ACQUIRE))
		sched_yield();
}

/* Blocks the loop until `let_go` is set. */
static void
hold_loop(weft_loop *loop)
{
	weft__store(&held, 0, WEFT__RELAXED);
	weft__store(&let_go, 0, WEFT__RELAXED);
	OK(weft_loop_post(loop, hold, NULL));
	while (!weft__load(&held, WEFT__ACQUIRE))
		sched_yield();
}

TEST(list_of_a_blocked_loop_waits_or_times_out)
{
	weft_loop *loop = start_with_sleeper();
	uint64_t cursor = 0;

	hold_loop(loop);
	CHECK_EQ(weft__threadlet_list(loop, &cursor, seen, 1, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft__threadlet_list(loop, &cursor, seen, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(cursor, 0);
	weft__store(&let_go, 1, WEFT__RELEASE);
	CHECK_EQ(look_at(loop, 1), 1);
	stop_and_free(loop);
}

static int
look_at_other(void *arg)
{
	while (watch_for_waits(arg) < 1)
		OK(weft_yield());
	CHECK_STR(see("a", 1)->waits_for, "sleep until");
	note(MARK('s'));
	return 0;
}

TEST(threadlet_can_list_the_threadlets_of_another_loop)
{
	weft_loop *loop = start_with_sleeper();

	run_threadlet(look_at_other, loop);
	CHECK_STR(trace, "s");
	stop_and_free(loop);
}

static weft_threadlet looker;

static void
cancel_looker(void *arg)
{
	(void)arg;
	OK(weft_cancel(looker));
}

static int
look_in_vain(void *arg)
{
	uint64_t cursor = 0;

	looker = weft_self();
	CHECK_EQ(weft__threadlet_list(arg, &cursor, seen, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_loop_post(NULL, cancel_looker, NULL));
	CHECK_EQ(weft__threadlet_list(arg, &cursor, seen, 1, WEFT_NEVER), WEFT_ECANCELED);
	note(MARK('v'));
	return 0;
}

TEST(list_of_a_blocked_loop_can_be_canceled)
{
	weft_loop *loop = start_with_sleeper();

	hold_loop(loop);
	run_threadlet(look_in_vain, loop);
	CHECK_STR(trace, "v");
	weft__store(&let_go, 1, WEFT__RELEASE);
	stop_and_free(loop);
}

static void
look_from_callback(void *arg)
{
	uint64_t cursor = 0;

	CHECK_EQ(weft__threadlet_list(arg, &cursor, seen, 1, WEFT_NEVER), WEFT_ENOSUSPEND);
	note(MARK('c'));
}

TEST(list_of_another_loop_in_a_callback_is_refused)
{
	weft_loop *loop = start_with_sleeper(), *mine = make();

	OK(weft_loop_post(mine, look_from_callback, loop));
	OK(weft_loop_run(mine));
	CHECK_STR(trace, "c");
	OK(weft_loop_free(mine));
	stop_and_free(loop);
}

static void *
look_all_the_time(void *arg)
{
	uint64_t cursor = 0;
	weft_threadlet_info info[8];

	while (!weft__load(&let_go, WEFT__ACQUIRE))
		if (weft__threadlet_list(arg, &cursor, info, 8, WEFT_NEVER) <= 0)
			cursor = 0;
	return NULL;
}

static int
yield_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++)
		OK(weft_yield());
	return 0;
}

TEST(list_works_while_the_loop_runs_repeatedly)
{
	weft_loop *loop = make();
	pthread_t watcher;

	weft__store(&let_go, 0, WEFT__RELAXED);
	go_on(loop, yield_often, NULL);
	watcher = thread(look_all_the_time, loop);
	for (int i = 0; i < 200; i++) {
		go_on(loop, yield_often, NULL);
		turns(loop, 3);
	}
	OK(weft_loop_run(loop));
	weft__store(&let_go, 1, WEFT__RELEASE);
	OK(pthread_join(watcher, NULL));
	OK(weft_loop_free(loop));
}

/* --- by the ID of a loop -------------------------------------------- */

static uint64_t
id_of(const char *name)
{
	weft_loop_info info;
	uint64_t cursor = 0;

	while (weft_loop_list(&cursor, &info) > 0)
		if (strcmp(info.name, name) == 0)
			return info.id;
	return 0;
}

TEST(threadlets_are_listed_by_the_id_of_their_loop)
{
	weft_loop_opts opts = { .name = "numbered" };
	weft_loop *loop = weft_loop_new(&opts), *next = weft_loop_new(NULL);
	uint64_t cursor = 0, id = id_of("numbered");

	CHECK(id > 0);
	OK(weft_threadlet_list(id, &cursor, seen, 8, WEFT_NEVER));
	go_named(loop, "one", sleep_until_cancelled, NULL);
	go_named(loop, "two", sleep_until_cancelled, NULL);
	OK(weft_loop_start(loop));
	do {
		cursor = 0;
		CHECK_EQ(weft_threadlet_list(id, &cursor, seen, 8, WEFT_NEVER), 2);
	} while (strcmp(seen[0].state, "waiting") != 0);
	CHECK_STR(seen[0].name, "two");
	CHECK_STR(seen[1].name, "one");
	OK(weft_threadlet_list(id, &cursor, seen, 8, WEFT_NEVER));
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	OK(weft_loop_free(loop));
	cursor = 0;
	CHECK_EQ(weft_threadlet_list(id, &cursor, seen, 8, WEFT_NEVER), WEFT_ENOENT);
	CHECK_EQ(weft_threadlet_list(0, &cursor, seen, 8, WEFT_NEVER), WEFT_ENOENT);
	OK(weft_loop_free(next));
	CHECK_MISUSE(weft_threadlet_list(1, NULL, seen, 8, WEFT_NEVER), WEFT_EINVAL);
}

/* `listed` runs a callback until its listing is pending, and is freed by the thread on which the
 * threadlet waits for the listing. */
static struct freed_while_listed {
	weft_loop *listed;
	pthread_t runner;
	weft__a32 blocked, may_go; /* the callback of `listed` */
	int free_rc, list_rc;
} fl;

static void
block_and_break(void *arg)
{
	(void)arg;
	weft__store(&fl.blocked, 1, WEFT__RELEASE);
	while (!weft__load(&fl.may_go, WEFT__ACQUIRE))
		sched_yield();
	weft_loop_break(fl.listed);
}

static void *
run_listed(void *arg)
{
	(void)arg;
	OK(weft_loop_run(fl.listed));
	return NULL;
}

static void
end_run_and_free(void *arg)
{
	(void)arg;
	weft__store(&fl.may_go, 1, WEFT__RELEASE);
	OK(pthread_join(fl.runner, NULL));
	fl.free_rc = weft_loop_free(fl.listed);
}

static int
list_a_loop_that_is_freed(void *arg)
{
	uint64_t cursor = 0;

	(void)arg;
	OK(weft_loop_post(NULL, end_run_and_free, NULL)); /* runs once this suspends */
	fl.list_rc = weft_threadlet_list(weft__loop_id(fl.listed), &cursor, seen, 8, WEFT_NEVER);
	return 0;
}

TEST(a_loop_can_be_freed_by_a_thread_on_which_a_threadlet_waits_for_its_list)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP | WEFT_LOOP_MOVABLE };

	weft__store(&fl.blocked, 0, WEFT__RELAXED);
	weft__store(&fl.may_go, 0, WEFT__RELAXED);
	fl.listed = make_with(&opts);
	(void)weft__sched_of(fl.listed); /* it may have threadlets */
	OK(weft_loop_post(fl.listed, block_and_break, NULL));
	OK(pthread_create(&fl.runner, NULL, run_listed, NULL));
	while (!weft__load(&fl.blocked, WEFT__ACQUIRE))
		sched_yield();
	run_threadlet(list_a_loop_that_is_freed, NULL);
	CHECK_EQ(fl.free_rc, 0);
	CHECK_EQ(fl.list_rc, 0);
}

TEST(weft_symbol_formats_an_address_and_truncates_it_to_the_buffer)
{
	char buf[200], few[8];
	const void *address = (const char *)(uintptr_t)weft_now + 1;
	size_t size = weft_symbol(address, buf, sizeof(buf));

	CHECK_EQ(size, strlen(buf));
	CHECK(strstr(buf, "weft_now+0x1 (clock.c:"));
	CHECK_EQ(weft_symbol(address, few, sizeof(few)), sizeof(few) - 1);
	CHECK(memcmp(few, buf, sizeof(few) - 1) == 0);
	CHECK_EQ(weft_symbol((const void *)(uintptr_t)16, buf, sizeof(buf)), 4);
	CHECK_STR(buf, "0x10");
	CHECK_EQ(weft_symbol(address, buf, 0), 0);
}

TEST(threadlet_list_needs_a_loop_a_cursor_and_room)
{
	weft_loop *loop = make();
	uint64_t id = loop->inbox.id, cursor = 0;

	CHECK_EQ(weft_threadlet_list(id, &cursor, seen, 1, WEFT_NOWAIT), 0);
	CHECK_EQ(weft_threadlet_list(id + 1, &cursor, seen, 1, WEFT_NOWAIT), WEFT_ENOENT);
	CHECK_MISUSE(weft_threadlet_list(id, NULL, seen, 1, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_threadlet_list(id, &cursor, seen, 0, WEFT_NOWAIT), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}

/* --- dumps -------------------------------------------------------------- */

static char dumped[65536];

static void
read_dump(FILE *file)
{
	size_t size;

	rewind(file);
	size = fread(dumped, 1, sizeof(dumped) - 1, file);
	dumped[size] = '\0';
	OK(fclose(file));
}

TEST(dump_describes_the_threadlets_of_all_loops)
{
	weft_loop *one = make_with(&(weft_loop_opts){ .name = "one" });
	weft_loop *two = make_with(&(weft_loop_opts){ .name = "two" });
	FILE *file = tmpfile();

	CHECK(file != NULL);
	go_named(one, "first", sleep_until_cancelled, NULL);
	go_named(two, "second", sleep_until_cancelled, NULL);
	turns(one, 2);
	OK(weft_loop_start(two));
	(void)watch_for_waits(two);
	CHECK_EQ(weft_dump(fileno(file)), 2);
	read_dump(file);
	CHECK(strstr(dumped, "(one) was idle\n"));
	CHECK(strstr(dumped, "(two) was "));
	CHECK(strstr(dumped, "(first) is waiting for sleep until, for 0."));
	CHECK(strstr(dumped, "(second) is waiting for sleep"));
	CHECK(strstr(dumped, "started at "));
	CHECK(strstr(dumped, " sleep_until_cancelled+0x"));
	CHECK(strstr(dumped, "inspect_test.c:"));
	CHECK(!strstr(dumped, "inspect_test+0x"));
	CHECK(strstr(dumped, " bytes in use, "));
	stop_idle(one);
	stop_and_free(two);
	CHECK_EQ(weft_dump(1), 0);
}

TEST(dump_to_a_bad_descriptor_returns_ebadf)
{
	weft_loop *loop = make();

	go_named(loop, "a", sleep_until_cancelled, NULL);
	turns(loop, 2);
	CHECK_EQ(weft_dump(-1), WEFT_EBADF);
	stop_idle(loop);
}

static void *
alloc_nothing(size_t size)
{
	(void)size;
	return NULL;
}

TEST(dump_without_memory_returns_enomem)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys poor = *before;

	poor.alloc = alloc_nothing;
	weft__sys = &poor;
	CHECK_EQ(weft_dump(1), WEFT_ENOMEM);
	weft__sys = before;
}

static int
fill_then_dump(void *arg)
{
	const struct pair *pair = arg;

	CHECK_EQ(weft_dump(pair->fd), 1);
	return 0;
}

static void *
empty_slowly(void *arg)
{
	const struct pair *pair = arg;
	char byte;

	while (read(pair->peer, &byte, 1) == 1)
		;
	return NULL;
}

TEST(dump_waits_for_a_full_descriptor)
{
	struct pair pair = make_pair();
	pthread_t reader;

	fill(pair.fd);
	reader = thread(empty_slowly, &pair);
	run_threadlet(fill_then_dump, &pair);
	OK(close(pair.fd));
	OK(pthread_join(reader, NULL));
	OK(close(pair.peer));
}

/* --- text --------------------------------------------------------------- */

TEST(text_is_truncated_at_the_end_of_its_buffer)
{
	char buf[12];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));

	weft__text_number(&text, -120);
	weft__text_add(&text, " ");
	weft__text_hex(&text, 0xbeef);
	CHECK_STR(buf, "-120 0xbeef");
	weft__text_add(&text, "more");
	CHECK_STR(buf, "-120 0xbeef");
	text = weft__text_begin(buf, sizeof(buf));
	weft__text_seconds(&text, 12034 * WEFT_MS);
	CHECK_STR(buf, "12.034 s");
	text = weft__text_begin(buf, sizeof(buf));
	weft__text_number(&text, INT64_MIN);
	CHECK_STR(buf, "-9223372036");
}
