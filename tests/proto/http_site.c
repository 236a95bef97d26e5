/* http_site.c - an HTTP server on loopback, and a visitor that exchanges raw bytes with it. */
#include "proto/http_site.h"

static char heard[1 << 20];

static int
serve(void *arg)
{
	struct site *site = arg;

	site->serving = weft_self();
	site->served = weft_http_serve(site->server, site->listener, site->until_ns);
	return 0;
}

void
site_close(struct site *site)
{
	weft_listener *listener = site->listener;

	site->listener = NULL;
	weft_listener_close(listener);
}

static int
visit(void *arg)
{
	struct site *site = arg;

	site->visit(site);
	site_close(site);
	return 0;
}

static void
open_site(struct site *site, const weft_http_server_opts *opts)
{
	weft_listener_opts listen = { .tls = site->tls, .handshake_ns = HOUR };
	weft_addr addr;

	OK(weft_listener_open(site->tls ? "tls://127.0.0.1:0" : "tcp://127.0.0.1:0", &listen,
	                      &site->listener));
	OK(weft_listener_local(site->listener, &addr));
	CHECK(weft_addr_format(&addr, site->address, sizeof(site->address)) > 0);
	site->server = weft_http_server_new(opts);
	CHECK(site->server);
}

static void
end_site(struct site *site)
{
	CHECK(site->served < 0);
	CHECK_EQ(stats_of(site).open, 0);
	CHECK_EQ(stats_of(site).active, 0);
	OK(weft_http_server_free(site->server));
}

static void
run(struct site site, const weft_http_server_opts *opts, void (*prepare)(struct site *site))
{
	weft_loop *loop = make();

	open_site(&site, opts);
	prepare(&site);
	(void)go_on(loop, serve, &site);
	(void)go_on(loop, visit, &site);
	OK(weft_loop_run(loop));
	end_site(&site);
	OK(weft_loop_free(loop));
}

void
site_run(const weft_http_server_opts *opts, void (*prepare)(struct site *site),
         void (*visiting)(struct site *site))
{
	run((struct site){ .visit = visiting, .served = 1, .until_ns = WEFT_NEVER }, opts, prepare);
}

void
site_run_tls(weft_tls *tls, void (*prepare)(struct site *site), void (*visiting)(struct site *site))
{
	run((struct site){ .visit = visiting, .served = 1, .until_ns = WEFT_NEVER, .tls = tls },
	    NULL, prepare);
}

static int
serve_beside(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, visit, arg) > 0);
	(void)serve(arg);
	return weft_scope_close(&scope);
}

void
site_run_loops(uint32_t loops, void (*prepare)(struct site *site),
               void (*visiting)(struct site *site))
{
	const weft_runtime_opts opts = { .loops = loops };
	/* The visitor has many connections, and reads from one after the other. */
	const weft_http_server_opts patient = { .grace_ns = HOUR, .request_ns = HOUR };
	struct site site = { .visit = visiting, .served = 1, .until_ns = WEFT_NEVER };

	open_site(&site, &patient);
	prepare(&site);
	OK(weft_main(&opts, serve_beside, &site));
	end_site(&site);
}

static void
on_turn(void *turned)
{
	OK(weft_event_set(turned));
}

void
turn_often(void)
{
	for (int i = 0; i < 4; i++) {
		weft_event turned = WEFT_INIT;

		OK(weft_loop_post(weft_loop_current(), on_turn, &turned));
		OK(weft_event_wait(&turned, WEFT_NEVER));
	}
}

/* --- visitors ------------------------------------------------------------- */

weft_stream *
site_enter(struct site *site)
{
	weft_stream *stream;

	OK(weft_stream_connect(site->address, NULL, &stream, weft_after(HOUR)));
	return stream;
}

void
say(weft_stream *stream, const char *text, size_t size)
{
	CHECK_EQ(weft_stream_write(stream, text, size, weft_after(HOUR)), size);
}

static const char *
without_dates(char *text)
{
	char *at = text;

	while ((at = strstr(at, "Date: "))) {
		char *end = strstr(at, "\r\n");

		CHECK_EQ(end - at, 35);
		memmove(at, end + 2, strlen(end + 2) + 1);
	}
	return text;
}

const char *
hear(weft_stream *stream, const char *end)
{
	ssize_t n = weft_stream_read_until(stream, end, heard, sizeof(heard) - 1, weft_after(HOUR));

	if (n <= 0)
		test_fail(__FILE__, __LINE__, "no \"%s\" was heard: %s", end,
		          weft_strerror((int)n));
	heard[n] = '\0';
	return without_dates(heard);
}

const char *
hear_all(weft_stream *stream)
{
	size_t size = 0;
	ssize_t n;

	while ((n = weft_stream_read(stream, heard + size, sizeof(heard) - 1 - size,
	                             weft_after(HOUR)))
	       > 0)
		size += (size_t)n;
	heard[size] = '\0';
	if (n < 0)
		test_fail(__FILE__, __LINE__, "no end was heard: %s", weft_strerror((int)n));
	return without_dates(heard);
}

bool
hear_break(weft_stream *stream)
{
	ssize_t n;

	while ((n = weft_stream_read(stream, heard, sizeof(heard), weft_after(HOUR))) > 0)
		;
	return n < 0;
}

const char *
ask(struct site *site, const char *text, size_t size)
{
	weft_stream *stream = site_enter(site);
	const char *reply;

	say(stream, text, size);
	OK(weft_stream_shutdown(stream, weft_after(HOUR)));
	reply = hear_all(stream);
	weft_stream_close(stream);
	return reply;
}

int
status_of(const char *reply)
{
	int status = 0;

	(void)sscanf(reply, "HTTP/1.1 %d", &status);
	return status;
}

int
count_of(const char *text, const char *part)
{
	int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

struct weft_http_server_stats
stats_of(struct site *site)
{
	struct weft_http_server_stats stats;

	weft_http_server_stats(site->server, &stats);
	return stats;
}
