/* threadlets_test.c - the list of threadlets of all loops: in slices, searched, sorted,
 * limited. */
#include <pthread.h>
#include <weft/debug.h>
#include "admin/world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CROWD 2000
#else
#define CROWD 10000
#endif

/* --- slices ------------------------------------------------------------------------ */

/* Loop iterations, counted by a threadlet of the loop; the count at the last slice; slices;
 * slices without an iteration in between. */
static int seen, seen_then, slices, together;

/* Whether listing calls wait at `gate`, and how many do. */
static bool holds;
static int held_now;
static weft_event gate;

int __wrap_weft_threadlet_list(uint64_t loop_id, uint64_t *cursor, weft_threadlet_info *out,
                               size_t max, uint64_t deadline_ns);
int __real_weft_threadlet_list(uint64_t loop_id, uint64_t *cursor, weft_threadlet_info *out,
                               size_t max, uint64_t deadline_ns);

int
__wrap_weft_threadlet_list(uint64_t loop_id, uint64_t *cursor, weft_threadlet_info *out, size_t max,
                           uint64_t deadline_ns)
{
	int now = __atomic_load_n(&seen, __ATOMIC_RELAXED);

	CHECK(max <= 64);
	together += slices++ > 0 && now == seen_then;
	seen_then = now;
	if (holds) {
		held_now++;
		OK(weft_event_wait(&gate, weft_after(HOUR)));
	}
	return __real_weft_threadlet_list(loop_id, cursor, out, max, deadline_ns);
}

static int
count_turns(void *arg)
{
	(void)arg;
	while (weft_yield() == 0)
		(void)__atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
	return 0;
}

struct crowd {
	weft_scope scope;
	weft_threadlet counter;
};

static void
assemble(struct crowd *crowd, int count)
{
	weft_go_opts opts = { .name = "sleeper", .scope = &crowd->scope };

	OK(weft_scope_open(&crowd->scope, 0, WEFT_NEVER));
	crowd->counter = weft_scope_go(&crowd->scope, count_turns, NULL);
	CHECK(crowd->counter > 0);
	for (int i = 0; i < count; i++)
		CHECK(weft_go_with(&opts, sleep_until_cancelled, NULL) > 0);
	OK(weft_yield());
	seen = seen_then = slices = together = 0;
}

static void
disperse(struct crowd *crowd)
{
	weft_scope_cancel(&crowd->scope);
	(void)weft_scope_close(&crowd->scope);
}

static void
play_slices(struct world *world)
{
	static const char *const targets[] = {
		"/debug/threadlets?format=json&max=20000&q=sleeper",
		"/debug/threadlets?format=json&max=20000&sort=since&q=sleeper",
		"/debug/threadlets?q=sleeper",
	};
	struct crowd crowd;
	const struct reply *reply;

	assemble(&crowd, CROWD);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		seen = seen_then = slices = together = 0;
		reply = get(world, targets[i]);
		CHECK_EQ(reply->status, 200);
		CHECK_EQ(times_in(reply->body, i < 2 ? "\"name\":\"sleeper\"" : " (sleeper) is "),
		         CROWD);
		CHECK(i == 2 || is_json(reply->body));
		CHECK(slices > CROWD / 64);
		CHECK_EQ(together, 0);
		CHECK(seen >= (i == 1 ? 3 : 1) * (CROWD / 64));
	}
	disperse(&crowd);
}

TEST(admin_lists_ten_thousand_threadlets_in_slices_between_iterations)
{
	world_run(&(struct world){ 0 }, play_slices);
}

/* --- query parameters ---------------------------------------------------------------- */

static int
sleep_named(void *arg)
{
	(void)arg;
	return weft_sleep(HOUR) == WEFT_ECANCELED ? 0 : -1;
}

static void
go_named(weft_scope *scope, const char *name)
{
	weft_go_opts opts = { .name = name, .scope = scope };

	CHECK(weft_go_with(&opts, sleep_named, NULL) > 0);
	OK(weft_sleep_until(weft_after(WEFT_MS))); /* so that their start times differ */
}

static void
play_query(struct world *world)
{
	const struct reply *reply;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	go_named(&scope, "zebra");
	go_named(&scope, "ant");
	go_named(&scope, "An \"odd\"\n<\xff>");
	reply = get(world, "/debug/threadlets?format=json&q=ZEB");
	CHECK(is_json(reply->body));
	CHECK_EQ(times_in(reply->body, "\"id\":"), 1);
	CHECK_EQ(number_after(reply->body, "shown"), 1);
	CHECK_EQ(number_after(reply->body, "matched"), 1);
	CHECK(number_after(reply->body, "total") >= 5);
	CHECK(strstr(reply->body, "\"state\":\"waiting\""));
	CHECK(strstr(reply->body, "\"waits_for\":\"sleep\""));
	CHECK(number_after(reply->body, "left_ns") > 0);
	CHECK(number_after(reply->body, "stack_used") > 0);
	CHECK(strstr(reply->body, "\"frames\":[\""));

	reply = get(world, "/debug/threadlets?format=json&q=odd");
	CHECK(is_json(reply->body));
	CHECK(strstr(reply->body, "\"name\":\"An \\\"odd\\\"\\u000a\\u003c"
	                          "\xef\xbf\xbd>\""));
	reply = get(world, "/debug/threadlets?q=odd");
	CHECK(strstr(reply->body, " (An \"odd\"?<?>) is waiting for sleep, for "));

	reply = get(world, "/debug/threadlets?format=json&sort=name&max=20000");
	CHECK(strstr(reply->body, "\"zebra\"") > strstr(reply->body, "\"ant\""));
	reply = get(world, "/debug/threadlets?format=json&sort=since&q=sleep");
	CHECK(strstr(reply->body, "\"zebra\"") < strstr(reply->body, "\"ant\""));
	reply = get(world, "/debug/threadlets?format=json&max=2");
	CHECK_EQ(times_in(reply->body, "\"id\":"), 2);
	CHECK(number_after(reply->body, "total") >= 5);
	reply = get(world, "/debug/threadlets?format=json&sort=stack&max=1");
	CHECK_EQ(times_in(reply->body, "\"id\":"), 1);
	reply = get(world, "/debug/threadlets?format=json&loop=999999999");
	CHECK_EQ(times_in(reply->body, "\"id\":"), 0);
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
}

TEST(admin_searches_sorts_and_limits_threadlets_and_escapes_names)
{
	world_run(&(struct world){ 0 }, play_query);
}

static void
play_bad(struct world *world)
{
	static const char *const bad[] = {
		"max=0",  "max=20001", "max=x",  "max=",     "max=-1",
		"loop=0", "loop=x",    "sort=x", "format=x",
	};
	char target[512];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(target, sizeof(target), "/debug/threadlets?%s", bad[i]);
		CHECK_EQ(get(world, target)->status, 400);
	}
	(void)snprintf(target, sizeof(target), "/debug/threadlets?q=%0201d", 0);
	CHECK_EQ(get(world, target)->status, 400);
	(void)snprintf(target, sizeof(target), "/debug/threadlets?q=%0200d", 0);
	CHECK_EQ(get(world, target)->status, 200);
	CHECK_EQ(get(world, "/debug/dag")->status, 200);
	CHECK(is_json(get(world, "/debug/dag")->body));
}

TEST(admin_refuses_an_invalid_query)
{
	world_run(&(struct world){ 0 }, play_bad);
}

/* Four requests are held while they list a loop. */
static void
play_busy(struct world *world)
{
	static const char request[] = "GET /debug/threadlets HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	weft_stream *readers[4];

	holds = true;
	for (int i = 0; i < 4; i++) {
		OK(weft_stream_connect(world->place, NULL, &readers[i], weft_after(HOUR)));
		CHECK_EQ(weft_stream_write(readers[i], request, sizeof(request) - 1,
		                           weft_after(HOUR)),
		         sizeof(request) - 1);
	}
	UNTIL(held_now == 4);
	CHECK_EQ(get(world, "/debug/threadlets")->status, 503);
	CHECK_EQ(get(world, "/metrics")->status, 200);
	holds = false;
	OK(weft_event_set(&gate));
	for (int i = 0; i < 4; i++)
		weft_stream_close(readers[i]);
	while (get(world, "/debug/threadlets")->status == 503)
		OK(weft_yield());
}

TEST(admin_limits_concurrent_threadlet_lists)
{
	world_run(&(struct world){ 0 }, play_busy);
}

/* --- other loops ----------------------------------------------------------------------- */

struct held {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool is_held, may_go;
};

static void
hold_thread(void *arg)
{
	struct held *held = arg;

	(void)pthread_mutex_lock(&held->mutex);
	held->is_held = true;
	(void)pthread_cond_broadcast(&held->cond);
	while (!held->may_go)
		(void)pthread_cond_wait(&held->cond, &held->mutex);
	(void)pthread_mutex_unlock(&held->mutex);
}

static void
wait_until_held(struct held *held)
{
	(void)pthread_mutex_lock(&held->mutex);
	while (!held->is_held)
		(void)pthread_cond_wait(&held->cond, &held->mutex);
	(void)pthread_mutex_unlock(&held->mutex);
}

static void
play_held(struct world *world)
{
	struct held held = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false };
	const weft_loop_opts opts = { .name = "other\"loop" };
	weft_loop *loop = weft_loop_new(&opts);
	const struct reply *reply;

	CHECK(loop);
	OK(weft_loop_start(loop));
	(void)go_on(loop, sleep_until_cancelled, NULL);
	do /* until the threadlet runs there */
		reply = get(world, "/debug/threadlets?format=json"
		                   "&q=sleep_until_cancelled");
	while (number_after(reply->body, "total") < 3);
	CHECK(is_json(reply->body));
	CHECK_EQ(times_in(reply->body, "\"silent\":[]"), 1);
	OK(weft_loop_post(loop, hold_thread, &held));
	wait_until_held(&held);
	reply = get(world, "/debug/threadlets?format=json");
	CHECK(is_json(reply->body));
	CHECK_EQ(times_in(reply->body, "\"silent\":[]"), 0);
	reply = get(world, "/debug/threadlets");
	CHECK(strstr(reply->body, "other\"loop) does not answer: timed out"));
	reply = get(world, "/metrics");
	CHECK(strstr(reply->body, "name=\"other\\\"loop\""));
	(void)pthread_mutex_lock(&held.mutex);
	held.may_go = true;
	(void)pthread_cond_broadcast(&held.cond);
	(void)pthread_mutex_unlock(&held.mutex);
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, weft_after(HOUR)));
	OK(weft_loop_free(loop));
}

TEST(admin_reports_a_loop_that_does_not_answer_and_lists_the_others)
{
	world_run(&(struct world){ 0 }, play_held);
}

/* --- addresses ------------------------------------------------------------------------- */

static int
wait_at_gate(void *arg)
{
	(void)arg;
	OK(weft_event_wait(&gate, WEFT_NEVER));
	return 0;
}

/* The id of the object that the threadlet of that name waits on. */
static double
waits_on(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	CHECK(at);
	return number_after(at, "waits_on");
}

static void
play_addresses(struct world *world)
{
	static const char *const names[] = { "first at gate", "second at gate" };
	char address[32];
	double number;
	const char *text;

	gate = (weft_event)WEFT_INIT;
	for (int i = 0; i < 2; i++) {
		weft_go_opts opts = { .name = names[i] };

		CHECK(weft_go_with(&opts, wait_at_gate, NULL) > 0);
	}
	OK(weft_yield());
	text = get(world, "/debug/threadlets?format=json")->body;
	number = waits_on(text, names[0]);
	CHECK(number > 0 && number == waits_on(text, names[1]));
	CHECK(number < 4294967296.0); /* it is not a pointer of a position-independent program */
	text = get(world, "/debug/threadlets")->body;
	(void)snprintf(address, sizeof(address), "%lx", (unsigned long)(uintptr_t)&gate);
	CHECK(!strstr(text, address));
	CHECK(!strstr(text, " 0x"));
	OK(weft_event_set(&gate));
}

TEST(admin_reveals_no_address_of_code_or_data)
{
	world_run(&(struct world){ 0 }, play_addresses);
}
