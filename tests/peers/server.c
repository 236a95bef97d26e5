/* server.c - the server for third-party peers: one path for each of its features.
 *
 *     peer_server ADDRESS FOLDER [CHAIN KEY]
 *
 * It prints its address, serves until SIGTERM, and fails if it does not end cleanly.  It uses
 * only the installed API.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <weft/http.h>
#include <weft/weft.h>

#define PIECE      16384
#define BODY_MAX   (UINT64_C(256) << 20)
#define MIRROR_MAX ((size_t)32 << 20)
#define PATIENCE   weft_after(120 * WEFT_S)

static weft_http_server *server;

static uint64_t
number(weft_http *http, const char *name, uint64_t otherwise)
{
	const char *text = weft_http_param(http, name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static int
reply_text(weft_http *http, int status, const char *text)
{
	return weft_http_reply(http, status, "text/plain", weft_text(text), PATIENCE);
}

static int
hello(weft_http *http, void *arg)
{
	(void)arg;
	return reply_text(http, 200, "hello\n");
}

/* --- bodies --------------------------------------------------------------- */

/* Returns the body while it still arrives. */
static int
echo(weft_http *http, void *arg)
{
	const char *type = weft_http_header(http, "content-type");
	char buf[PIECE];
	ssize_t n = weft_http_read(http, buf, sizeof buf, PATIENCE);
	int rc = n < 0 ? (int)n : weft_http_begin(http, 200, type, PATIENCE);

	(void)arg;
	while (rc >= 0 && n > 0) {
		rc = (int)weft_http_write(http, buf, (size_t)n, PATIENCE);
		if (rc >= 0)
			n = weft_http_read(http, buf, sizeof buf, PATIENCE);
	}
	return rc < 0 ? rc : (int)n;
}

/* Returns the body after all of it has arrived: proxies stop sending once a response has
 * begun. */
static int
mirror(weft_http *http, void *arg)
{
	char *all = malloc(MIRROR_MAX);
	ssize_t n = all ? weft_http_read_all(http, all, MIRROR_MAX, PATIENCE) : WEFT_ENOMEM;

	(void)arg;
	if (n >= 0)
		n = weft_http_reply(http, 200, NULL, (weft_span){ all, (size_t)n }, PATIENCE);
	free(all);
	return (int)n;
}

/* Returns the value of a header or trailer by name; the last one with that name. */
static const char *
last_field(weft_http *http, const char *name)
{
	weft_http_field field;
	const char *value = NULL;

	for (size_t i = 0; weft_http_header_at(http, i, &field); i++)
		if (strcasecmp(field.name, name) == 0)
			value = field.value;
	return value;
}

/* Replies with the size of the body, the sum of its bytes, and the trailer sent with it. */
static int
count(weft_http *http, void *arg)
{
	char buf[PIECE], text[200];
	uint64_t size = 0, sum = 0;
	const char *trailer;
	ssize_t n;

	(void)arg;
	while ((n = weft_http_read(http, buf, sizeof buf, PATIENCE)) > 0) {
		size += (uint64_t)n;
		for (ssize_t i = 0; i < n; i++)
			sum += (unsigned char)buf[i];
	}
	if (n < 0)
		return (int)n;
	trailer = last_field(http, "x-trailer");
	snprintf(text, sizeof text, "%llu %llu %.99s\n", (unsigned long long)size,
	         (unsigned long long)sum, trailer ? trailer : "-");
	return reply_text(http, 200, text);
}

static void
fill(char *buf, size_t size, uint64_t from)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = (char)('a' + (from + i) % 26);
}

/* Sends `size` letters with a Content-Length, or with `chunked` in chunks and a trailer. */
static int
letters(weft_http *http, void *chunked)
{
	uint64_t size = number(http, "size", 100), sent = 0;
	char buf[PIECE];
	int rc = 0;

	if (!chunked) {
		snprintf(buf, sizeof buf, "%llu", (unsigned long long)size);
		rc = weft_http_set_header(http, "Content-Length", buf);
	}
	if (rc == 0)
		rc = weft_http_begin(http, 200, "text/plain", PATIENCE);
	while (rc >= 0 && sent < size) {
		size_t n = size - sent < PIECE ? (size_t)(size - sent) : PIECE;

		fill(buf, n, sent);
		sent += n;
		rc = (int)weft_http_write(http, buf, n, PATIENCE);
	}
	return rc >= 0 && chunked ? weft_http_set_header(http, "X-Letters", "all") : rc;
}

/* Sends pieces one by one, with a delay after each. */
static int
slow(weft_http *http, void *arg)
{
	uint64_t pieces = number(http, "pieces", 5);
	uint64_t between = number(http, "ms", 20) * WEFT_MS;
	int rc = 0;

	(void)arg;
	for (uint64_t i = 0; rc >= 0 && i < pieces; i++) {
		rc = (int)weft_http_write(http, "piece\n", 6, PATIENCE);
		if (rc >= 0)
			rc = weft_sleep_until(weft_after(between));
	}
	return rc;
}

/* Sends numbered events, then nothing until the peer leaves; with `end` the response ends. */
static int
events(weft_http *http, void *arg)
{
	uint64_t count = number(http, "count", 3);
	char text[40];
	int rc = 0;

	(void)arg;
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)i);
		rc = weft_http_send_event(http, "number", text, PATIENCE);
	}
	if (rc == 0 && !weft_http_param(http, "end"))
		rc = weft_sleep_until(WEFT_NEVER);
	return rc;
}

/* --- upgrade to another protocol --------------------------------------------- */

static int
upgrade(weft_http *http, void *arg)
{
	weft_stream *stream;
	char buf[PIECE];
	ssize_t n = weft_http_upgrade(http, "echo", &stream, PATIENCE);

	(void)arg;
	if (n == WEFT_EINVAL)
		return reply_text(http, 426, "only to echo\n");
	if (n < 0)
		return (int)n;
	while ((n = weft_stream_read(stream, buf, sizeof buf, PATIENCE)) > 0)
		if (weft_stream_write(stream, buf, (size_t)n, PATIENCE) < 0)
			break;
	weft_stream_close(stream);
	return 0;
}

/* --- headers, statuses, failures and counters -------------------------------------- */

static int
fields(weft_http *http, void *arg)
{
	weft_http_field field;
	char line[1000];
	ssize_t rc = weft_http_begin(http, 200, "text/plain", PATIENCE);

	(void)arg;
	for (size_t i = 0; rc >= 0 && weft_http_header_at(http, i, &field); i++) {
		int n = snprintf(line, sizeof line, "%.99s: %.800s\n", field.name, field.value);

		rc = weft_http_write(http, line, (size_t)n, PATIENCE);
	}
	return rc < 0 ? (int)rc : 0;
}

static int
status(weft_http *http, void *arg)
{
	(void)arg;
	return reply_text(http, (int)number(http, "code", 200), "as told\n");
}

/* Redirects to the URL in `to`. */
static int
moved(weft_http *http, void *arg)
{
	int rc = weft_http_set_header(http, "Location", weft_http_param(http, "to"));

	(void)arg;
	return rc < 0 ? rc : reply_text(http, 302, "there\n");
}

/* Returns a header value that is not ASCII unchanged. */
static int
bytes(weft_http *http, void *arg)
{
	const char *value = weft_http_header(http, "x-bytes");
	int rc = value ? weft_http_set_header(http, "X-Bytes", value) : 0;

	(void)arg;
	return rc < 0 ? rc : reply_text(http, 200, "there\n");
}

/* Fails before the response, or with `halfway` in the middle of it. */
static int
fail(weft_http *http, void *halfway)
{
	ssize_t rc = 0;

	if (halfway)
		rc = weft_http_write(http, "half", 4, PATIENCE);
	return rc < 0 ? (int)rc : WEFT_EINVAL;
}

static int
stats(weft_http *http, void *arg)
{
	struct weft_http_server_stats seen;
	char text[400];

	(void)arg;
	weft_http_server_stats(server, &seen);
	snprintf(text, sizeof text,
	         "{\"connections\": %llu, \"requests\": %llu, \"bad_requests\": %llu, "
	         "\"rejected_503\": %llu, \"timed_out\": %llu, \"failed\": %llu, "
	         "\"open\": %u, \"active\": %u}\n",
	         (unsigned long long)seen.connections, (unsigned long long)seen.requests,
	         (unsigned long long)seen.bad_requests, (unsigned long long)seen.rejected_503,
	         (unsigned long long)seen.timed_out, (unsigned long long)seen.failed, seen.open,
	         seen.active);
	return weft_http_reply(http, 200, "application/json", weft_text(text), PATIENCE);
}

static int
files(weft_http *http, void *folder)
{
	return weft_http_reply_file(http, folder, weft_http_param(http, "path"), PATIENCE);
}

/* --- the program ------------------------------------------------------------- */

static int
route_all(char *folder)
{
	static char yes[] = "yes";
	const struct {
		const char *pattern;
		weft_http_fn fn;
		void *arg;
	} routes[] = {
		{ "GET /hello", hello, NULL },
		{ "/echo", echo, NULL },
		{ "/mirror", mirror, NULL },
		{ "/count", count, NULL },
		{ "GET /letters", letters, NULL },
		{ "GET /chunks", letters, yes },
		{ "GET /slow", slow, NULL },
		{ "GET /events", events, NULL },
		{ "GET /upgrade", upgrade, NULL },
		{ "/fields", fields, NULL },
		{ "/status/{code}", status, NULL },
		{ "/moved", moved, NULL },
		{ "/bytes", bytes, NULL },
		{ "/fail", fail, NULL },
		{ "/half", fail, yes },
		{ "GET /stats", stats, NULL },
		{ "GET /files/{path...}", files, folder },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof routes / sizeof *routes; i++)
		rc = weft_http_route(server, routes[i].pattern, routes[i].fn, routes[i].arg);
	return rc;
}

static int
serve(weft_listener *listener)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;
	int rc = weft_listener_local(listener, &addr);

	if (rc == 0)
		rc = weft_addr_format(&addr, text, sizeof text);
	if (rc < 0)
		return rc;
	printf("listening on %s\n", text);
	fflush(stdout);
	return weft_http_serve(server, listener, WEFT_NEVER);
}

static int
run(void *arg)
{
	char **words = arg; /* address, folder, chain or NULL, key */
	const weft_http_server_opts limits = { .body_max = BODY_MAX };
	weft_listener_opts opts = { 0 };
	weft_listener *listener;
	int rc = 0;

	if (words[2])
		rc = weft_tls_open(
			&(weft_tls_opts){ .certs = &(weft_tls_cert){ NULL, words[2], words[3] },
		                          .cert_count = 1 },
			&opts.tls);
	server = weft_http_server_new(&limits);
	if (rc == 0)
		rc = route_all(words[1]);
	if (rc == 0)
		rc = weft_listener_open(words[0], &opts, &listener);
	if (rc == 0) {
		rc = serve(listener);
		weft_listener_close(listener);
	}
	weft_tls_close(opts.tls);
	if (weft_http_server_free(server) < 0)
		return WEFT_EBUSY;
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
main(int argc, char **argv)
{
	if (argc != 3 && argc != 5) {
		fprintf(stderr, "usage: %s ADDRESS FOLDER [CHAIN KEY]\n", argv[0]);
		return 2;
	}
	return weft_main(NULL, run, argv + 1);
}
