/* http_slow_test.c - transfers that take longer than any time limit, and peers that stop.
 *
 * The test controls the clock, which advances only in pass().  So a download of minutes takes
 * no longer than moving its bytes.  The sockets are real, with all kernel buffers.
 */
#include <fcntl.h>
#include <unistd.h>
#include "base/sys.h"
#include "proto/http_site.h"

#define SIZE    (12u << 20) /* more than the kernel buffers on both sides */
#define PIECE   10240u      /* per half second: 20 KiB/s */
#define STEP_NS (WEFT_S / 2)

static const struct weft__sys *real_sys;
static struct weft__sys slow_sys;
static uint64_t clock_ns;
static char body[SIZE];
static int handler_rc;

static uint64_t
now_slow(void)
{
	return __atomic_load_n(&clock_ns, __ATOMIC_RELAXED);
}

/* Advance the clock, and let the server notice it. */
static void
pass(uint64_t ns)
{
	while (ns > 0) {
		uint64_t step = ns < STEP_NS ? ns : STEP_NS;

		__atomic_fetch_add(&clock_ns, step, __ATOMIC_RELAXED);
		ns -= step;
		turn_often();
	}
}

static void
run_slowly(void (*prepare)(struct site *site), void (*visit)(struct site *site))
{
	real_sys = weft__sys;
	slow_sys = *real_sys;
	slow_sys.now = now_slow;
	clock_ns = real_sys->now();
	handler_rc = 1;
	weft__sys = &slow_sys;
	site_run(NULL, prepare, visit);
	weft__sys = real_sys;
}

/* --- handlers --------------------------------------------------------------- */

static int
end_handler(int rc)
{
	handler_rc = rc;
	return rc;
}

static int
reply_whole(weft_http *http, void *arg)
{
	(void)arg;
	return end_handler(weft_http_reply(http, 200, NULL, (weft_span){ body, SIZE }, WEFT_NEVER));
}

static int
reply_pieces(weft_http *http, void *arg)
{
	const size_t piece = 64u << 10;
	ssize_t n = 0;

	(void)arg;
	for (size_t at = 0; at < SIZE && n >= 0; at += piece)
		n = weft_http_write(http, body + at, piece, WEFT_NEVER);
	return end_handler(n < 0 ? (int)n : 0);
}

static int
reply_file(weft_http *http, void *arg)
{
	return end_handler(weft_http_reply_file(http, "/tmp", arg, WEFT_NEVER));
}

static int
reply_little(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, NULL, weft_text("little"), WEFT_NEVER);
}

static int
take_body(weft_http *http, void *arg)
{
	static char buf[PIECE];
	size_t size = 0;
	ssize_t n;

	(void)arg;
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0)
		size += (size_t)n;
	CHECK(n < 0 || size == SIZE / 4);
	if (end_handler((int)n) < 0)
		return (int)n;
	return weft_http_reply(http, 200, NULL, weft_text("all"), WEFT_NEVER);
}

static void
prepare(struct site *site)
{
	OK(weft_http_route(site->server, "/whole", reply_whole, NULL));
	OK(weft_http_route(site->server, "/pieces", reply_pieces, NULL));
	OK(weft_http_route(site->server, "/little", reply_little, NULL));
	OK(weft_http_route(site->server, "/body", take_body, NULL));
}

/* --- clients that continue -------------------------------------------------- */

/* Read to the end at that rate.  Returns the number of bytes. */
static size_t
read_slowly(weft_stream *stream)
{
	static char buf[PIECE];
	size_t size = 0;
	ssize_t n;

	while ((n = weft_stream_read(stream, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		size += (size_t)n;
		pass((uint64_t)n * STEP_NS / PIECE);
	}
	if (n < 0)
		test_fail(__FILE__, __LINE__, "cut after %zu bytes: %s", size,
		          weft_strerror((int)n));
	return size;
}

static void
download(struct site *site, const char *request, int64_t buffer)
{
	weft_stream *stream = site_enter(site);
	uint64_t since_ns = weft_now();

	if (buffer)
		OK(weft_stream_set(stream, "rcvbuf", buffer));
	say(stream, request, strlen(request));
	CHECK(read_slowly(stream) > SIZE);
	CHECK(weft_now() - since_ns > 300 * WEFT_S);
	CHECK_EQ(stats_of(site).timed_out, 0);
	CHECK_EQ(stats_of(site).failed, 0);
	weft_stream_close(stream);
}

#define LAST "Connection: close\r\n" END

static void
visit_whole(struct site *site)
{
	download(site, "GET /whole HTTP/1.1\r\n" HOST LAST, 0);
}

TEST(slow_download_finishes_however_long_it_takes)
{
	run_slowly(prepare, visit_whole);
}

/* Acknowledgements arrive in bursts of a sixteenth of the buffer. */
static void
visit_with_buffer(struct site *site)
{
	download(site, "GET /whole HTTP/1.1\r\n" HOST LAST, 4 << 20);
}

TEST(slow_download_finishes_with_a_large_receive_buffer)
{
	run_slowly(prepare, visit_with_buffer);
}

static void
visit_pieces(struct site *site)
{
	download(site, "GET /pieces HTTP/1.1\r\n" HOST LAST, 0);
}

TEST(slow_download_written_in_pieces_finishes)
{
	run_slowly(prepare, visit_pieces);
}

static char file_name[] = "weft-http-slow-XXXXXX";

static void
prepare_file(struct site *site)
{
	OK(weft_http_route(site->server, "/file", reply_file, file_name));
}

static void
visit_file(struct site *site)
{
	download(site, "GET /file HTTP/1.1\r\n" HOST LAST, 0);
}

TEST(slow_download_of_a_file_finishes)
{
	char path[64];
	int fd;

	if (!weft__sys->sendfile) {
		printf("left out: threads read the file, and this clock does not wait for them\n");
		return;
	}
	(void)snprintf(path, sizeof(path), "/tmp/%s", file_name);
	fd = mkstemp(path);
	CHECK(fd >= 0);
	OK(ftruncate(fd, SIZE));
	OK(close(fd));
	memcpy(file_name, path + 5, sizeof(file_name));
	run_slowly(prepare_file, visit_file);
	OK(unlink(path));
}

/* The second reply is in the server's buffer when the server wants to close the connection. */
static void
visit_twice(struct site *site)
{
	download(site, "GET /whole HTTP/1.1\r\n" HOST END "GET /little HTTP/1.1\r\n" HOST LAST, 0);
}

TEST(last_reply_waits_for_a_slow_client)
{
	run_slowly(prepare, visit_twice);
}

static void
visit_upload(struct site *site)
{
	weft_stream *stream = site_enter(site);
	uint64_t since_ns = weft_now();
	char head[128];

	(void)snprintf(head, sizeof(head), "POST /body HTTP/1.1\r\n" HOST CL "%u\r\n" END,
	               SIZE / 4);
	say(stream, head, strlen(head));
	for (size_t left = SIZE / 4; left > 0;) {
		size_t piece = left < PIECE ? left : PIECE;

		say(stream, body, piece);
		left -= piece;
		pass(STEP_NS);
	}
	CHECK_EQ(status_of(hear(stream, "all")), 200);
	CHECK(weft_now() - since_ns > 120 * WEFT_S);
	weft_stream_close(stream);
}

TEST(slow_upload_finishes_however_long_it_takes)
{
	run_slowly(prepare, visit_upload);
}

/* --- clients that stop ------------------------------------------------------ */

static void
visit_and_stop(struct site *site)
{
	static char buf[PIECE];
	weft_stream *stream = site_enter(site);

	SAY(stream, "GET /pieces HTTP/1.1\r\n" HOST END);
	for (int i = 0; i < 500; i++) {
		CHECK(weft_stream_read(stream, buf, sizeof(buf), WEFT_NEVER) > 0);
		pass(STEP_NS);
	}
	/* Its last bytes may have been acknowledged some seconds ago. */
	pass(30 * WEFT_S);
	CHECK_EQ(handler_rc, 1);
	/* By this clock, the kernel may acknowledge late what the client has read. */
	for (int i = 0; i < 10 && handler_rc == 1; i++)
		pass(60 * WEFT_S);
	CHECK_EQ(handler_rc, WEFT_ETIMEDOUT);
	CHECK_EQ(stats_of(site).timed_out, 1);
	weft_stream_close(stream);
}

TEST(client_that_stops_reading_is_dropped_after_a_minute)
{
	run_slowly(prepare, visit_and_stop);
}

/* One byte per second: it is dropped within a minute. */
static void
visit_too_slowly(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, "POST /body HTTP/1.1\r\n" HOST CL "3145728\r\n" END);
	for (int i = 0; i < 60 && handler_rc == 1; i++) {
		SAY(stream, "x");
		pass(WEFT_S);
	}
	CHECK_EQ(handler_rc, WEFT_ETIMEDOUT);
	CHECK_EQ(status_of(hear_all(stream)), 408);
	CHECK_EQ(stats_of(site).timed_out, 1);
	weft_stream_close(stream);
}

TEST(client_that_sends_below_the_minimum_rate_is_dropped)
{
	run_slowly(prepare, visit_too_slowly);
}
