/* http_file_test.c - static files: lookup, ranges, conditions, slow clients. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "proto/http_site.h"

#define BIG 200000

static char root[64];

static void
write_file(const char *name, const char *text, size_t size)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, size), size);
	OK(close(fd));
}

static char
big_byte(size_t at)
{
	return (char)('a' + at % 23);
}

/* A file from the current second may be newer than the server's cached date. */
static void
make_old(const char *name)
{
	const struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	OK(utimensat(AT_FDCWD, path, times, 0));
}

static void
make_tree(void)
{
	static char big[BIG];
	char path[256];

	for (size_t i = 0; i < BIG; i++)
		big[i] = big_byte(i);
	(void)snprintf(root, sizeof(root),
	               "/tmp/weft-http-XX"
	               "XXXX");
	CHECK(mkdtemp(root));
	write_file("index.html", "<p>", 3);
	write_file("a.txt", "0123456789", 10);
	make_old("a.txt");
	write_file("empty", "", 0);
	write_file("big.JS", big, sizeof(big));
	write_file("secret", "x", 1);
	(void)snprintf(path, sizeof(path), "%s/sub", root);
	OK(mkdir(path, 0755));
	write_file("sub/index.html", "sub", 3);
	(void)snprintf(path, sizeof(path), "%s/bare", root);
	OK(mkdir(path, 0755));
	(void)snprintf(path, sizeof(path), "%s/fifo", root);
	OK(mkfifo(path, 0644));
	(void)snprintf(path, sizeof(path), "%s/out", root);
	OK(symlink("/etc/passwd", path));
	(void)snprintf(path, sizeof(path), "%s/sub/up", root);
	OK(symlink("../../../etc/passwd", path));
}

static void
remove_tree(void)
{
	static const char *const names[] = { "index.html", "a.txt",  "empty",
		                             "big.JS",     "secret", "fifo",
		                             "out",        "sub/up", "sub/index.html" };
	char path[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", root, names[i]);
		OK(unlink(path));
	}
	(void)snprintf(path, sizeof(path), "%s/sub", root);
	OK(rmdir(path));
	(void)snprintf(path, sizeof(path), "%s/bare", root);
	OK(rmdir(path));
	OK(rmdir(root));
}

static int
send_file(weft_http *http, void *arg)
{
	const char *type = weft_http_param(http, "type");
	int rc;

	(void)arg;
	if (type)
		OK(weft_http_set_header(http, "Content-Type", type));
	OK(weft_http_set_header(http, "ETag", "\"mine\""));
	rc = weft_http_reply_file(http, root, weft_http_param(http, "path"), WEFT_NEVER);
	CHECK(rc != 0 || weft_http_reply_file(http, root, "x", WEFT_NEVER) == WEFT_EALREADY);
	return rc;
}

/* Uses a path that no client can send. */
static int
send_other(weft_http *http, void *arg)
{
	return weft_http_reply_file(http, root, arg, WEFT_NEVER);
}

static void
prepare(struct site *site)
{
	OK(weft_http_route(site->server, "/f/{path...}", send_file, NULL));
	OK(weft_http_route(site->server, "/up", send_other, (void *)(uintptr_t) "../etc/passwd"));
	OK(weft_http_route(site->server, "/deep", send_other,
	                   (void *)(uintptr_t) "sub/../../etc/passwd"));
	OK(weft_http_route(site->server, "/dots", send_other,
	                   (void *)(uintptr_t) "//./sub/.//index.html"));
}

static const char *
get(struct site *site, const char *path, const char *fields)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST "%s" END, path, fields);

	return ask(site, text, (size_t)n);
}

static const char *
field_of(const char *reply, const char *name)
{
	static char value[128];
	char line[64];
	const char *at;

	(void)snprintf(line, sizeof(line), "\r\n%s: ", name);
	at = strstr(reply, line);
	CHECK(at);
	at += strlen(line);
	(void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
	return value;
}

static const char *
body_of(const char *reply)
{
	const char *end = strstr(reply, "\r\n\r\n");

	CHECK(end);
	return end + 4;
}

/* --- paths -------------------------------------------------------------------- */

static void
check_found(struct site *site, const char *path, const char *type, const char *body)
{
	const char *reply = get(site, path, "");

	if (status_of(reply) != 200)
		test_fail(__FILE__, __LINE__, "%s gives %s", path, reply);
	CHECK_STR(body_of(reply), body);
	CHECK_STR(field_of(reply, "Content-Type"), type);
}

static void
visit_names(struct site *site)
{
	static const char *const lost[] = { "/f/none", "/f/a.txt/x", "/f/bare/",
		                            "/f/fifo", "/f/out",     "/f/sub/up",
		                            "/up",     "/deep",      "/f/secret/" };
	const char *html = "text/html; charset=utf-8";

	check_found(site, "/f/", html, "<p>");
	check_found(site, "/f/index.html", html, "<p>");
	check_found(site, "/f/sub/", html, "sub");
	check_found(site, "/f/x/../a.txt", "text/plain; charset=utf-8", "0123456789");
	check_found(site, "/f/a.txt?type=x/y", "x/y", "0123456789");
	check_found(site, "/f/empty", "application/octet-stream", "");
	check_found(site, "/dots", html, "sub");
	for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++)
		if (status_of(get(site, lost[i], "")) != 404)
			test_fail(__FILE__, __LINE__, "%s was found", lost[i]);
	CHECK_EQ(status_of(get(site, "/f/../../etc/passwd", "")), 400);
	CHECK_EQ(status_of(get(site, "/f/%2e%2e/%2e%2e/etc/passwd", "")), 400);
	CHECK_EQ(status_of(get(site, "/f/..%2f..%2fetc/passwd", "")), 400);
}

TEST(files_are_found_only_below_their_root)
{
	make_tree();
	site_run(NULL, prepare, visit_names);
	remove_tree();
}

static void
visit_folders(struct site *site)
{
	const char *reply = get(site, "/f/sub?a=b", "");

	CHECK_EQ(status_of(reply), 301);
	CHECK_STR(field_of(reply, "Location"), "/f/sub/?a=b");
	reply = ASK(site, "POST /f/a.txt HTTP/1.1\r\n" HOST END);
	CHECK_EQ(status_of(reply), 405);
	CHECK_STR(field_of(reply, "Allow"), "GET, HEAD");
}

TEST(folder_is_redirected_to_its_slash_and_post_is_refused)
{
	make_tree();
	site_run(NULL, prepare, visit_folders);
	remove_tree();
}

/* --- ranges ----------------------------------------------------------------------- */

static void
check_big(struct site *site, size_t from, size_t to)
{
	char range[64];
	const char *reply, *body;

	(void)snprintf(range, sizeof(range), "Range: bytes=%zu-%zu\r\n", from, to);
	reply = get(site, "/f/big.JS", range);
	CHECK_EQ(status_of(reply), 206);
	body = body_of(reply);
	CHECK_EQ(strlen(body), to - from + 1);
	for (size_t i = 0; i < strlen(body); i++)
		CHECK(body[i] == big_byte(from + i));
}

static void
check_part(struct site *site, const char *range, const char *part, const char *body)
{
	char field[64];
	const char *reply;

	(void)snprintf(field, sizeof(field), "Range: %s\r\n", range);
	reply = get(site, "/f/a.txt", field);
	CHECK_EQ(status_of(reply), part ? 206 : 200);
	CHECK_STR(body_of(reply), body);
	if (part)
		CHECK_STR(field_of(reply, "Content-Range"), part);
}

static void
visit_parts(struct site *site)
{
	const char *reply, *whole = "0123456789";

	check_part(site, "bytes=0-0", "bytes 0-0/10", "0");
	check_part(site, "bytes=2-4", "bytes 2-4/10", "234");
	check_part(site, "bytes=7-", "bytes 7-9/10", "789");
	check_part(site, "bytes=-3", "bytes 7-9/10", "789");
	check_part(site, "bytes=5-100", "bytes 5-9/10", "56789");
	check_part(site, "bytes=0-1,4-5", NULL, whole);
	check_part(site, "lines=0-1", NULL, whole);
	check_part(site, "bytes=x", NULL, whole);
	reply = get(site, "/f/a.txt", "Range: bytes=10-\r\n");
	CHECK_EQ(status_of(reply), 416);
	CHECK_STR(field_of(reply, "Content-Range"), "bytes */10");
	reply = ASK(site, "HEAD /f/a.txt HTTP/1.1\r\n" HOST "Range: bytes=0-1\r\n" END);
	CHECK_EQ(status_of(reply), 200);
	CHECK_STR(body_of(reply), "");
	CHECK_STR(field_of(reply, "Content-Length"), "10");
	CHECK_STR(field_of(reply, "Accept-Ranges"), "bytes");
	check_big(site, 0, BIG - 1);
	check_big(site, 1, 150000);
	reply = get(site, "/f/big.JS", "");
	CHECK_EQ(strlen(body_of(reply)), BIG);
	CHECK_STR(field_of(reply, "Content-Type"), "text/javascript; charset=utf-8");
}

TEST(range_request_gets_a_partial_reply)
{
	make_tree();
	site_run(NULL, prepare, visit_parts);
	remove_tree();
}

/* --- conditions ----------------------------------------------------------------- */

static int
get_if(struct site *site, const char *name, const char *value)
{
	char field[256];

	(void)snprintf(field, sizeof(field), "Range: bytes=1-2\r\n%s: %s\r\n", name, value);
	return status_of(get(site, "/f/a.txt", field));
}

static void
visit_conditions(struct site *site)
{
	char etag[64], date[64];
	const char *reply = get(site, "/f/a.txt", "");

	(void)snprintf(etag, sizeof(etag), "%s", field_of(reply, "ETag"));
	(void)snprintf(date, sizeof(date), "%s", field_of(reply, "Last-Modified"));
	CHECK_EQ(get_if(site, "If-None-Match", etag), 304);
	CHECK_EQ(get_if(site, "If-None-Match", "*"), 304);
	CHECK_EQ(get_if(site, "If-None-Match", "\"x\""), 206);
	CHECK_EQ(get_if(site, "If-Modified-Since", date), 304);
	CHECK_EQ(get_if(site, "If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"), 206);
	CHECK_EQ(get_if(site, "If-Range", etag), 206);
	CHECK_EQ(get_if(site, "If-Range", date), 206);
	CHECK_EQ(get_if(site, "If-Range", "\"x\""), 200);
	CHECK_EQ(get_if(site, "If-Range", "Thu, 01 Jan 1970 00:00:00 GMT"), 200);
	CHECK_EQ(get_if(site, "If-None-Match: \"x\"\r\nIf-None-Match", etag), 304);
	CHECK_EQ(get_if(site, "If-Match", etag), 206);
	CHECK_EQ(get_if(site, "If-Match", "*"), 206);
	CHECK_EQ(get_if(site, "If-Match", "\"x\""), 412);
	CHECK_EQ(get_if(site, "If-Match: \"x\"\r\nIf-Match", etag), 206);
	CHECK_EQ(get_if(site, "If-Unmodified-Since", date), 206);
	CHECK_EQ(get_if(site, "If-Unmodified-Since", "nonsense"), 206);
	CHECK_EQ(get_if(site, "If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"), 412);
	reply = get(site, "/f/a.txt", "If-None-Match: *\r\n");
	CHECK_STR(body_of(reply), "");
	CHECK(!strstr(reply, "Content-Length"));
	CHECK_STR(field_of(reply, "ETag"), etag);
	CHECK_EQ(count_of(reply, "ETag"), 1);
}

TEST(conditional_request_gets_304_for_an_unchanged_file)
{
	make_tree();
	site_run(NULL, prepare, visit_conditions);
	remove_tree();
}

/* --- clients that do not read --------------------------------------------------- */

static weft_event sent;
static int sent_rc;

/* The file is larger than all buffers together; most of it is a hole. */
static int
send_huge(weft_http *http, void *arg)
{
	(void)arg;
	sent_rc = weft_http_reply_file(http, root, "huge", WEFT_NEVER);
	OK(weft_event_set(&sent));
	return sent_rc;
}

static void
prepare_huge(struct site *site)
{
	sent = (weft_event)WEFT_INIT;
	OK(weft_http_route(site->server, "/", send_huge, NULL));
}

static void
visit_and_not_read(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST END);
	OK(weft_event_wait(&sent, weft_after(HOUR)));
	CHECK_EQ(sent_rc, WEFT_ETIMEDOUT);
	weft_stream_close(stream);
	CHECK_EQ(stats_of(site).timed_out, 1);
}

TEST(client_that_does_not_read_a_file_is_dropped)
{
	weft_http_server_opts opts = { .grace_ns = 100 * WEFT_MS, .request_ns = 200 * WEFT_MS };
	char path[128];

	make_tree();
	write_file("huge", "x", 1);
	(void)snprintf(path, sizeof(path), "%s/huge", root);
	OK(truncate(path, 1 << 28));
	site_run(&opts, prepare_huge, visit_and_not_read);
	OK(unlink(path));
	remove_tree();
}

/* --- many files ------------------------------------------------------------------ */

/* More files than are kept open, twice. */
static void
visit_many(struct site *site)
{
	char path[128];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 600; i++) {
			(void)snprintf(path, sizeof(path), "n%d", i);
			if (round == 0)
				write_file(path, path, strlen(path));
			(void)snprintf(path, sizeof(path), "/f/n%d", i);
			CHECK_STR(body_of(get(site, path, "")), path + 3);
		}
	}
	for (int i = 0; i < 600; i++) {
		(void)snprintf(path, sizeof(path), "%s/n%d", root, i);
		OK(unlink(path));
	}
}

TEST(more_files_are_served_than_are_kept_open)
{
	make_tree();
	site_run(NULL, prepare, visit_many);
	remove_tree();
}

/* --- slow clients ---------------------------------------------------------------- */

#define MIB      (1 << 20)
#define HUGE     (64 * MIB)
#define GRACE_NS WEFT_S

static void
make_huge(void)
{
	char path[256];

	make_tree();
	(void)snprintf(path, sizeof(path), "%s/empty", root);
	OK(truncate(path, HUGE));
}

/* Takes longer than the grace period in total, but never without a byte for that long. */
static void
visit_and_dawdle(struct site *site)
{
	static char buf[MIB];
	weft_stream *stream = site_enter(site);
	uint64_t longest_ns = 0, since_ns = weft_now();
	size_t size = 0, dawdled = 0;
	ssize_t n;

	SAY(stream, "GET /f/empty HTTP/1.1\r\n" HOST END);
	(void)hear(stream, END END);
	while (size < HUGE && (n = weft_stream_read(stream, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		size += (size_t)n;
		for (; dawdled < size && dawdled < HUGE / 2; dawdled += MIB)
			OK(weft_sleep_until(weft_after(GRACE_NS / 16)));
		if (weft_now() - since_ns > longest_ns)
			longest_ns = weft_now() - since_ns;
		since_ns = weft_now();
	}
	/* If the machine delayed the test for that long, the result is not meaningful. */
	if (longest_ns < GRACE_NS / 4) {
		CHECK_EQ(size, HUGE);
		CHECK_EQ(stats_of(site).timed_out, 0);
	}
	weft_stream_close(stream);
}

TEST(client_that_reads_a_file_slowly_gets_all_of_it)
{
	weft_http_server_opts opts = { .grace_ns = GRACE_NS };

	make_huge();
	site_run(&opts, prepare, visit_and_dawdle);
	remove_tree();
}
