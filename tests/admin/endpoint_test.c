/* endpoint_test.c - page, loops, metrics and addresses of the admin endpoint. */
#include <pthread.h>
#include <unistd.h>
#include <weft/listener.h>
#include <weft/metrics.h>
#include "admin/world.h"
#include "base/sys.h"

/* --- loops and metrics ----------------------------------------------------------------- */

static double
read_number(void *arg)
{
	return *(double *)arg;
}

static void
play_loops(struct world *world)
{
	const struct reply *reply;
	double before, apples = 12.5;
	uint64_t pears = 7;

	OK(weft_admin_add_metric(world->admin,
	                         &(weft_admin_metric){ .name = "apples",
	                                               .help = "That \"were\" <eaten>\n",
	                                               .read = read_number,
	                                               .arg = &apples }));
	OK(weft_admin_add_metric(world->admin, &(weft_admin_metric){ .name = "pears_total",
	                                                             .type = WEFT_ADMIN_COUNTER,
	                                                             .unit = WEFT_ADMIN_BYTES,
	                                                             .value = &pears }));
	reply = get(world, "/debug/loops");
	CHECK_EQ(reply->status, 200);
	CHECK_STR(reply->type, "application/json");
	CHECK_STR(reply->cache, "no-store");
	CHECK(strstr(reply->policy, "default-src 'none'"));
	CHECK(is_json(reply->body));
	CHECK_EQ(number_after(reply->body, "pid"), getpid());
	CHECK(strstr(reply->body, "\"title\":\"a \\\"title\\\" \\u003c\""));
	CHECK(strstr(reply->body, "\"version\":\""));
	CHECK(strstr(reply->body, "{\"name\":\"apples\",\"help\":\"That \\\"were\\\" "
	                          "\\u003ceaten>\\u000a\",\"type\":\"gauge\","
	                          "\"unit\":\"\",\"value\":12.5}"));
	CHECK(strstr(reply->body, "{\"name\":\"pears_total\",\"help\":\"pears_total\","
	                          "\"type\":\"counter\",\"unit\":\"bytes\",\"value\":7}"));
	CHECK(number_after(reply->body, "uptime_ns") >= 0);
	CHECK(number_after(reply->body, "threadlets") >= 2);
	CHECK(number_after(reply->body, "cpu_ns") > 0);
	before = number_after(reply->body, "accepted");
	CHECK_EQ(raw(world->place, "GET /metrics HTTP/1.1\r\n"
	                           "Host: localhost\r\n\r\n"),
	         200);
	reply = get(world, "/debug/loops");
	CHECK_EQ(number_after(reply->body, "accepted"), before + 1);
}

TEST(admin_reports_loops_and_metrics_of_the_program)
{
	world_run(&(struct world){ .opts = { .title = "a \"title\" <" } }, play_loops);
}

static void
play_metrics(struct world *world)
{
	double apples = 3, odd = -1;
	uint64_t pears = 5;
	const struct reply *reply;

	OK(weft_admin_add_metric(world->admin,
	                         &(weft_admin_metric){ .name = "apples_total",
	                                               .help = "Eaten\\by\nme, \xc3\xa9\xff",
	                                               .type = WEFT_ADMIN_COUNTER,
	                                               .read = read_number,
	                                               .arg = &apples }));
	OK(weft_admin_add_metric(
		world->admin,
		&(weft_admin_metric){ .name = "odd", .read = read_number, .arg = &odd }));
	OK(weft_admin_add_metric(world->admin,
	                         &(weft_admin_metric){ .name = "pears", .value = &pears }));
	reply = get(world, "/metrics");
	CHECK_EQ(reply->status, 200);
	CHECK_STR(reply->type, "text/plain; version=0.0.4; charset=utf-8");
	CHECK(strstr(reply->body, "\n# TYPE apples_total counter\n"
	                          "apples_total 3\n"));
	CHECK(strstr(reply->body, "\n# HELP apples_total Eaten by me, \xc3\xa9\xef\xbf\xbd\n"));
	CHECK(strstr(reply->body, "\n# TYPE odd gauge\nodd -1\n"));
	CHECK(strstr(reply->body, "\n# HELP pears pears\n# TYPE pears gauge\npears 5\n"));
	CHECK(strstr(reply->body, "\n# TYPE weft_loop_turns_total counter\n"));
	CHECK(strstr(reply->body, "weft_loop_turns_total{loop=\""));
	CHECK(number_after(reply->body, "process_resident_memory_bytes") > 0);
	CHECK(number_after(reply->body, "process_start_time_seconds") > 1e9);
	CHECK(number_after(reply->body, "process_open_fds") >= 3);
}

TEST(admin_has_metrics_for_prometheus)
{
	world_run(&(struct world){ 0 }, play_metrics);
}

/* The lines of /metrics that begin with `begin`, in their order. */
static void
lines_with(const char *text, const char *begin, char *out, size_t room)
{
	size_t used = 0;

	out[0] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0)
		if (strncmp(line, begin, strlen(begin)) == 0) {
			used += (size_t)snprintf(out + used, room - used, "%.*s\n",
			                         (int)strcspn(line, "\n"), line);
			CHECK(used < room);
		}
}

static void
play_histograms(struct world *world)
{
	weft_histogram *seconds = weft_histogram_new(), *sizes = weft_histogram_new();
	const struct reply *reply;
	char lines[4096];

	weft_histogram_record(seconds, 900); /* below the first bucket */
	weft_histogram_record(seconds, 1500 * WEFT_US);
	weft_histogram_record(seconds, 3 * WEFT_MS);
	weft_histogram_record(seconds, 500 * WEFT_S); /* above the last bucket */
	weft_histogram_record(sizes, 0);
	weft_histogram_record(sizes, 700);
	OK(weft_admin_add_metric(world->admin, &(weft_admin_metric){ .name = "took_seconds",
	                                                             .help = "Time.",
	                                                             .type = WEFT_ADMIN_HISTOGRAM,
	                                                             .unit = WEFT_ADMIN_SECONDS,
	                                                             .histogram = seconds }));
	OK(weft_admin_add_metric(world->admin, &(weft_admin_metric){ .name = "sizes",
	                                                             .type = WEFT_ADMIN_HISTOGRAM,
	                                                             .histogram = sizes }));
	reply = get(world, "/metrics");
	CHECK(strstr(reply->body, "\n# HELP took_seconds Time.\n# TYPE took_seconds histogram\n"
	                          "took_seconds_bucket{le=\"1e-06\"} 1\n"));
	lines_with(reply->body, "took_seconds", lines, sizeof(lines));
	CHECK_EQ(times_in(lines, "_bucket{"), 26);
	CHECK(strstr(lines, "took_seconds_bucket{le=\"0.001\"} 1\n"
	                    "took_seconds_bucket{le=\"0.002\"} 2\n"
	                    "took_seconds_bucket{le=\"0.005\"} 3\n"));
	CHECK(strstr(lines, "took_seconds_bucket{le=\"100\"} 3\n"
	                    "took_seconds_bucket{le=\"+Inf\"} 4\n"
	                    "took_seconds_sum 500.0045009\n"
	                    "took_seconds_count 4\n"));
	lines_with(reply->body, "sizes", lines, sizeof(lines));
	CHECK_EQ(times_in(lines, "_bucket{"), 29);
	CHECK(strstr(lines, "sizes_bucket{le=\"1\"} 1\n"));
	CHECK(strstr(lines, "sizes_bucket{le=\"500\"} 1\nsizes_bucket{le=\"1000\"} 2\n"));
	CHECK(strstr(lines, "sizes_bucket{le=\"1000000000\"} 2\n"
	                    "sizes_bucket{le=\"+Inf\"} 2\nsizes_sum 700\nsizes_count 2\n"));
	reply = get(world, "/debug/loops");
	CHECK(is_json(reply->body));
	CHECK(strstr(reply->body, "\"type\":\"histogram\",\"unit\":\"seconds\",\"value\":4,"
	                          "\"quantiles\":{\"count\":4,\"mean\":"));
	weft_admin_close(world->admin);
	world->admin = NULL;
	weft_histogram_free(seconds);
	weft_histogram_free(sizes);
}

TEST(admin_shows_histograms_of_the_program)
{
	world_run(&(struct world){ 0 }, play_histograms);
}

/* A description and what adding it returns, in this order.  The text is part of the message. */
static const uint64_t x;
#define ANY ((const weft_histogram *)(const void *)&x) /* is not read */
static const struct {
	weft_admin_metric metric;
	int rc;
	const char *text;
} metrics[] = {
	{ { .name = "x_1", .value = &x }, 0, "" },
	{ { .name = "x_1", .value = &x }, WEFT_EEXIST, "x_1: a metric of this name already" },
	{ { .name = "weft_loop_posts", .value = &x }, WEFT_EEXIST, "already exists" },
	{ { .name = "process_open_fds", .value = &x }, WEFT_EEXIST, "already exists" },
	{ { .value = &x }, WEFT_EINVAL, "a name has letters" },
	{ { .name = "", .value = &x }, WEFT_EINVAL, "a name has letters" },
	{ { .name = "1x", .value = &x }, WEFT_EINVAL, "1x: a name has letters" },
	{ { .name = "x y", .value = &x }, WEFT_EINVAL, "a name has letters" },
	{ { .name = "y" }, WEFT_EINVAL, "y: set one of read, value" },
	{ { .name = "y", .value = &x, .read = read_number }, WEFT_EINVAL, "set one of" },
	{ { .name = "y_total", .value = &x }, WEFT_EINVAL, "a counter ends in _total" },
	{ { .name = "y", .value = &x, .type = WEFT_ADMIN_COUNTER }, WEFT_EINVAL, "ends in _total" },
	{ { .name = "_total", .value = &x, .type = WEFT_ADMIN_COUNTER }, WEFT_EINVAL, "_total" },
	{ { .name = "y_total", .value = &x, .type = WEFT_ADMIN_COUNTER }, 0, "" },
	{ { .name = "y", .value = &x, .histogram = ANY }, WEFT_EINVAL, "set one of" },
	{ { .name = "y", .histogram = ANY }, WEFT_EINVAL, "is WEFT_ADMIN_HISTOGRAM" },
	{ { .name = "y", .value = &x, .type = WEFT_ADMIN_HISTOGRAM }, WEFT_EINVAL, "the type" },
	{ { .name = "h_sum", .value = &x }, 0, "" },
	{ { .name = "h", .histogram = ANY, .type = WEFT_ADMIN_HISTOGRAM }, WEFT_EEXIST, "h: a" },
	{ { .name = "h_s", .histogram = ANY, .type = WEFT_ADMIN_HISTOGRAM }, 0, "" },
	{ { .name = "h_s", .value = &x }, WEFT_EEXIST, "h_s: a" },
	{ { .name = "h_s_bucket", .value = &x }, WEFT_EEXIST, "h_s_bucket: a" },
	{ { .name = "h_s_count", .value = &x }, WEFT_EEXIST, "h_s_count: a" },
	{ { .name = "h_s_counts", .value = &x }, 0, "" },
	{ { .name = "y", .value = &x, .type = (weft_admin_type)9 }, WEFT_EINVAL, "the type" },
	{ { .name = "y", .value = &x, .unit = (weft_admin_unit)9 }, WEFT_EINVAL, "the unit" },
};

static void
play_names(struct world *world)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		CHECK_EQ(weft_admin_add_metric(world->admin, &metrics[i].metric), metrics[i].rc);
		if (metrics[i].rc < 0)
			CHECK(strstr(weft_detail(), "weft_admin_add_metric ")
			      && strstr(weft_detail(), metrics[i].text));
	}
	CHECK_EQ(weft_admin_add_metric(world->admin, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_admin_add_metric(NULL, &metrics[0].metric), WEFT_EINVAL);
}

TEST(admin_accepts_only_valid_and_unique_metrics)
{
	world_run(&(struct world){ 0 }, play_names);
}

/* --- the page --------------------------------------------------------------------------- */

static void
nonce_of(const struct reply *reply, char *out)
{
	const char *at = strstr(reply->policy, "script-src 'nonce-");

	CHECK(at);
	(void)snprintf(out, 40, "%.32s", at + strlen("script-src 'nonce-"));
	CHECK_EQ(strspn(out, "0123456789abcdef"), 32);
}

static void
play_page(struct world *world)
{
	char first[40], second[40], tag[80];
	const struct reply *reply;

	OK(weft_admin_add_panel(world->admin, "One & <two>",
	                        "<style>p { color: red }</style><p id=own>x</p>",
	                        "globalThis.own = 1;"));
	OK(weft_admin_add_panel(world->admin, "Three", "<p>3</p>", NULL));
	reply = get(world, "/");
	CHECK_EQ(reply->status, 200);
	CHECK_STR(reply->type, "text/html; charset=utf-8");
	CHECK(strstr(reply->policy, "default-src 'none'"));
	CHECK(strstr(reply->policy, "frame-ancestors 'none'"));
	nonce_of(reply, first);
	CHECK(strstr(reply->body, "<title>&lt;b>&amp;</title>"));
	CHECK(strstr(reply->body, "One &amp; &lt;two>"));
	CHECK(strstr(reply->body, "<p id=own>x</p>"));
	CHECK(strstr(reply->body, "globalThis.own = 1;"));
	CHECK(strstr(reply->body, "Three") > strstr(reply->body, "One &amp;"));
	CHECK_EQ(times_in(reply->body, "{{"), 0);
	CHECK_EQ(times_in(reply->body, "http://") - times_in(reply->body, "http://www.w3.org/"), 0);
	(void)snprintf(tag, sizeof(tag), "<style nonce=\"%s\"", first);
	CHECK_EQ(times_in(reply->body, tag), 2);
	(void)snprintf(tag, sizeof(tag), "<script nonce=\"%s\"", first);
	CHECK_EQ(times_in(reply->body, tag), 2);
	nonce_of(get(world, "/"), second);
	CHECK(strcmp(first, second) != 0);
}

TEST(admin_page_is_one_document_with_panels_and_a_nonce)
{
	world_run(&(struct world){ .opts = { .title = "<b>&" } }, play_page);
}

/* --- addresses --------------------------------------------------------------------------- */

static int
on_own(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, NULL, weft_text("own"), WEFT_NEVER);
}

static void
play_mount(struct world *world)
{
	struct house house;
	weft_scope scope;

	open_house(&house);
	OK(weft_http_route(house.server, "GET /", on_own, NULL));
	CHECK_EQ(weft_admin_mount(world->admin, house.server, "admin"), WEFT_EINVAL);
	CHECK_EQ(weft_admin_mount(world->admin, house.server, "/admin/"), WEFT_EINVAL);
	CHECK_EQ(weft_admin_mount(world->admin, house.server, "/{x}"), WEFT_EINVAL);
	OK(weft_admin_mount(world->admin, house.server, "/admin"));
	CHECK_EQ(weft_admin_mount(world->admin, house.server, "/admin"), WEFT_EEXIST);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, serve_house, &house) > 0);

	CHECK_STR(get_at(world, house.url, "/")->body, "own");
	CHECK_EQ(get_at(world, house.url, "/admin")->status, 308);
	CHECK_STR(get_at(world, house.url, "/admin")->location, "/admin/");
	CHECK_EQ(get_at(world, house.url, "/admin/")->status, 200);
	CHECK_EQ(get_at(world, house.url, "/admin/metrics")->status, 200);
	CHECK_EQ(get_at(world, house.url, "/admin/debug/loops")->status, 200);
	CHECK_EQ(get_at(world, house.url, "/metrics")->status, 404);
	CHECK_EQ(weft_admin_mount(world->admin, house.server, "/late"), WEFT_EBUSY);
	weft_listener_close(house.listener);
	OK(weft_scope_close(&scope));
	OK(weft_http_server_free(house.server));
}

TEST(admin_can_be_mounted_below_a_prefix_of_another_server)
{
	world_run(&(struct world){ 0 }, play_mount);
}

static void
play_unix(struct world *world)
{
	char url[256] = "http+unix://";
	weft_admin *other;

	for (const char *at = world->address + 5; *at; at++)
		(void)snprintf(url + strlen(url), sizeof(url) - strlen(url),
		               *at == '/' ? "%%2F" : "%c", *at);
	CHECK_EQ(get_at(world, url, "/metrics")->status, 200);
	CHECK_EQ(raw(world->address, "GET /metrics HTTP/1.1\r\n"
	                             "Host: whatever.example\r\n\r\n"),
	         200);
	CHECK_EQ(weft_admin_open(world->address, NULL, &other), WEFT_EADDRINUSE);
}

TEST(admin_on_a_unix_socket_accepts_any_host_name)
{
	char folder[] = "/tmp/weft-admin-XXXXXX", address[128];

	CHECK(mkdtemp(folder));
	(void)snprintf(address, sizeof(address), "unix:%s/socket", folder);
	world_run(&(struct world){ .address = address }, play_unix);
	CHECK_EQ(rmdir(folder), 0); /* the socket is gone, too */
}

static int
open_nowhere(void *arg)
{
	weft_admin *admin;
	weft_addr addr;

	(void)arg;
	OK(weft_admin_open(NULL, NULL, &admin));
	CHECK_EQ(weft_admin_local(admin, &addr), WEFT_ENOENT);
	weft_admin_close(admin);
	weft_admin_close(NULL);
	OK(weft_admin_open("tcp://127.0.0.1:0", NULL, &admin));
	weft_admin_close(admin); /* before it has served a request */
	return 0;
}

TEST(admin_can_be_closed_unused_and_needs_no_address)
{
	run_threadlet(open_nowhere, NULL);
}

static void
close_by_callback(void *arg)
{
	weft_admin_close(arg);
}

TEST(admin_without_a_threadlet_does_not_keep_the_loop_alive)
{
	weft_loop *loop = make();
	weft_admin_opts opts = { .loop = loop };
	weft_admin *admin;

	OK(weft_admin_open("tcp://127.0.0.1:0", &opts, &admin));
	OK(weft_loop_run(loop));
	OK(weft_loop_post(loop, close_by_callback, admin));
	OK(weft_loop_run(loop));
	weft_loop_shutdown(loop);
	if (weft_loop_state(loop) != WEFT_STOPPED)
		OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

struct ending {
	weft_loop *loop;
	weft_admin *admin; /* NULL: closed */
	char place[WEFT_ADDR_TEXT_MAX];
	int late; /* calls after that */
};

static double
read_late(void *arg)
{
	struct ending *ending = arg;

	ending->late += !ending->admin;
	return 0;
}

static void
close_ending(void *arg)
{
	struct ending *ending = arg;

	weft_admin_close(ending->admin);
	ending->admin = NULL;
}

/* The client connects, the admin endpoint closes, and then the client sends a request.  The
 * drain still answers it. */
static int
ask_late(void *arg)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	struct ending *ending = arg;
	struct weft_loop_stats stats = { 0 };
	weft_stream *stream;
	char byte;

	OK(weft_stream_connect(ending->place, NULL, &stream, weft_after(HOUR)));
	while (stats.accepted == 0) {
		OK(weft_sleep_until(weft_after(WEFT_US)));
		OK(weft_loop_stats(ending->loop, &stats));
	}
	OK(weft_loop_post(ending->loop, close_ending, ending));
	UNTIL(!ending->admin);
	(void)weft_stream_write(stream, request, sizeof(request) - 1, weft_after(HOUR));
	(void)weft_stream_read(stream, &byte, 1, weft_after(HOUR));
	weft_stream_close(stream);
	return 0;
}

TEST(admin_closed_by_a_callback_no_longer_reads_metrics)
{
	struct ending ending = { .loop = make() };
	weft_admin_opts opts = { .loop = ending.loop };
	weft_addr addr;

	OK(weft_admin_open("tcp://127.0.0.1:0", &opts, &ending.admin));
	OK(weft_admin_add_metric(
		ending.admin,
		&(weft_admin_metric){ .name = "late", .read = read_late, .arg = &ending }));
	OK(weft_admin_local(ending.admin, &addr));
	CHECK(weft_addr_format(&addr, ending.place, sizeof(ending.place)) > 0);
	(void)go_on(ending.loop, ask_late, &ending);
	OK(weft_loop_run(ending.loop));
	CHECK_EQ(ending.late, 0);
	OK(weft_loop_free(ending.loop));
}

/* --- a reader that stops --------------------------------------------------------------- */

#define MUCH    (7u << 20) /* more than the kernel buffers */
#define LIMIT_S 5          /* upper limit of replies after close */

static const struct weft__sys *real_sys;
static uint64_t clock_ns; /* advances only in pass() */

static uint64_t
now_still(void)
{
	return clock_ns;
}

static void
on_turn(void *turned)
{
	OK(weft_event_set(turned));
}

/* Advance the clock, and let the loop run some iterations to notice it. */
static void
pass(uint64_t ns)
{
	clock_ns += ns;
	for (int i = 0; i < 4; i++) {
		weft_event turned = WEFT_INIT;

		OK(weft_loop_post(weft_loop_current(), on_turn, &turned));
		OK(weft_event_wait(&turned, WEFT_NEVER));
	}
}

static int
close_admin(void *arg)
{
	struct world *world = arg;

	weft_admin_close(world->admin);
	world->admin = NULL;
	return 0;
}

static void
play_stopped_reader(struct world *world)
{
	static const char request[] = "GET / HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	static char html[MUCH];
	weft_stream *stream;
	const void *seen;
	int seconds = 0;

	memset(html, 'x', sizeof(html) - 1);
	OK(weft_admin_add_panel(world->admin, "Much", html, NULL));
	OK(weft_stream_connect(world->place, NULL, &stream, WEFT_NEVER));
	OK(weft_stream_set(stream, "rcvbuf", 65536));
	CHECK_EQ(weft_stream_write(stream, request, sizeof(request) - 1, WEFT_NEVER),
	         (ssize_t)sizeof(request) - 1);
	CHECK(weft_stream_peek(stream, 1, &seen, WEFT_NEVER) >= 1);
	CHECK(weft_go(close_admin, world) > 0);
	pass(0);
	for (; seconds <= LIMIT_S && world->admin; seconds++)
		pass(WEFT_S);
	CHECK(!world->admin);
	CHECK(seconds >= LIMIT_S);
	weft_stream_reset(stream);
}

TEST(admin_close_cuts_a_reply_that_its_reader_does_not_take)
{
	static struct weft__sys still;

	real_sys = weft__sys;
	still = *real_sys;
	still.now = now_still;
	clock_ns = real_sys->now();
	weft__sys = &still;
	world_run(&(struct world){ 0 }, play_stopped_reader);
	weft__sys = real_sys;
}

static int
close_elsewhere(void *arg)
{
	weft_admin_close(arg);
	CHECK(strstr(weft_detail(), "another loop"));
	return 0;
}

static void *
run_elsewhere(void *arg)
{
	weft_loop *loop = make();

	(void)go_on(loop, close_elsewhere, arg);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
	return NULL;
}

/* The thread has nothing to wait for here. */
static void
play_elsewhere(struct world *world)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, run_elsewhere, world->admin), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(get(world, "/metrics")->status, 200);
}

TEST(admin_is_not_closed_by_another_loop)
{
	world_run(&(struct world){ 0 }, play_elsewhere);
}

/* --- several loops ------------------------------------------------------------------------ */

struct tally {
	weft_loop *owner;
	int calls, strays; /* of the metric; and those on another loop */
};

static double
read_at_home(void *arg)
{
	struct tally *tally = arg;

	tally->calls++;
	tally->strays += weft_loop_current() != tally->owner;
	return 7;
}

#define VISITS 16

static int
visit_many(void *arg)
{
	struct tally tally = { .owner = weft_loop_current() };
	struct world world = { .client = weft_http_client_new(NULL) };
	char text[WEFT_ADDR_TEXT_MAX];
	const struct reply *reply;
	weft_addr addr;

	(void)arg;
	OK(weft_admin_open("tcp://127.0.0.1:0", NULL, &world.admin));
	OK(weft_admin_add_metric(
		world.admin,
		&(weft_admin_metric){ .name = "seven", .read = read_at_home, .arg = &tally }));
	OK(weft_admin_local(world.admin, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(world.url, sizeof(world.url), "http://%s", text + 6);
	world.field = (weft_http_field){ "Accept", "*/*" };
	for (int i = 0; i < VISITS; i++) {
		reply = get(&world, "/debug/loops");
		CHECK_EQ(reply->status, 200);
		CHECK(is_json(reply->body));
		CHECK(strstr(reply->body, "\"value\":7}"));
		CHECK(times_in(reply->body, "\"id\":") >= 2);
		reply = get(&world, "/metrics");
		CHECK(strstr(reply->body, "\nseven 7\n"));
		/* a new connection, which goes to another loop */
		OK(weft_http_client_free(world.client));
		world.client = weft_http_client_new(NULL);
	}
	CHECK_EQ(tally.calls, 2 * VISITS);
	CHECK_EQ(tally.strays, 0);
	OK(weft_http_client_free(world.client));
	weft_admin_close(world.admin);
	return 0;
}

TEST(admin_reads_metrics_on_its_owner_loop)
{
	const weft_runtime_opts opts = { .loops = 2 };

	OK(weft_main(&opts, visit_many, NULL));
}
