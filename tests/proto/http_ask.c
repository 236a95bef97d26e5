/* http_ask.c - the HTTP client against a real server, for run_nginx.py.
 *
 *     http_ask CA-FILE BASE-URL
 *
 * Exits with 0 if every reply was as expected; otherwise prints the requests that failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http.h>
#include <weft/weft.h>

#define PATIENCE_NS (60 * WEFT_S)
#define BIG         ((size_t)3 << 20) /* as in run_nginx.py */

static struct {
	weft_http_client *client;
	const char *base;
	char *big;
	int failures;
} all;

static void
check(bool good, const char *what)
{
	if (good)
		return;
	printf("%s%s: not as it should be (%s)\n", all.base, what, weft_detail());
	all.failures++;
}

static int
fetch(const char *path, weft_http_request request, weft_http **out)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "%s%s", all.base, path);
	request.url = url;
	return weft_http_fetch(all.client, &request, out, weft_after(PATIENCE_NS));
}

/* Whether the body is exactly `want`. */
static bool
is_body(weft_http *http, const char *want, size_t size)
{
	char buf[8192];
	size_t got = 0;
	ssize_t n;

	while ((n = weft_http_read(http, buf, sizeof(buf), weft_after(PATIENCE_NS))) > 0) {
		if (got + (size_t)n > size || memcmp(buf, want + got, (size_t)n) != 0)
			return false;
		got += (size_t)n;
	}
	return n == 0 && got == size;
}

static void
ask(const char *path, weft_http_request request, int status, weft_span body)
{
	weft_http *http = NULL;
	int rc = fetch(path, request, &http);

	check(rc == 0 && weft_http_status(http) == status
	              && (!body.data || is_body(http, body.data, body.size)),
	      path);
	weft_http_close(http);
}

static void
ask_kinds(void)
{
	weft_http_field range = { "Range", "bytes=1-3" };
	weft_span any = { NULL, 0 };
	weft_http_request ranged = { .fields = &range, .field_count = 1 };
	weft_http_request head = { .method = "HEAD" };
	weft_http_request manual = { .no_redirect = true };
	weft_http_request none = { 0 };

	ask("/a.txt", none, 200, weft_text("hello\n"));
	ask("/a.txt", ranged, 206, weft_text("ell"));
	ask("/a.txt", head, 200, weft_text(""));
	ask("/nowhere", none, 404, any);
	ask("/moved", none, 200, weft_text("hello\n"));
	ask("/moved", manual, 301, any);
	ask("/empty", none, 204, weft_text(""));
	ask("/parts.shtml", none, 200, weft_text("one hello\n two\n"));
	ask("/big", none, 200, (weft_span){ all.big, BIG });
}

/* --- bodies ----------------------------------------------------------------- */

static void
send_bodies(void)
{
	weft_span any = { NULL, 0 };
	weft_http_request put = { .method = "PUT", .body = { all.big, BIG } };
	weft_http_request none = { 0 };

	ask("/put/whole", put, 201, any);
	ask("/put/whole", none, 200, (weft_span){ all.big, BIG });
	ask("/tight/x", put, 413, any);
	put.body.size = 10;
	ask("/put/small", put, 201, any);
	ask("/put/small", none, 200, (weft_span){ all.big, 10 });
}

static void
stream_body(const char *path, int status)
{
	weft_http_request put = { .method = "PUT", .streamed = true };
	weft_http *http = NULL;
	ssize_t n = fetch(path, put, &http);

	for (size_t at = 0; n >= 0 && at < BIG; at += (size_t)n)
		n = weft_http_write(http, all.big + at, BIG - at < 10000 ? BIG - at : 10000,
		                    weft_after(PATIENCE_NS));
	if (http)
		n = weft_http_finish(http, weft_after(PATIENCE_NS));
	check(n == 0 && weft_http_status(http) == status, path);
	weft_http_close(http);
}

/* --- concurrent requests ---------------------------------------------------- */

static int
ask_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		ask("/a.txt", (weft_http_request){ 0 }, 200, weft_text("hello\n"));
	ask("/big", (weft_http_request){ 0 }, 200, (weft_span){ all.big, BIG });
	return 0;
}

static void
ask_at_once(void)
{
	weft_scope scope;

	if (weft_scope_open(&scope, 0, WEFT_NEVER) < 0)
		return;
	for (int i = 0; i < 30; i++)
		check(weft_scope_go(&scope, ask_often, NULL) > 0, " a threadlet");
	(void)weft_scope_close(&scope);
}

static int
run(void *arg)
{
	char **words = arg;
	weft_tls_opts trust = { .ca_file = words[0] };
	weft_http_client_opts opts = { .per_host_max = 8 };

	all.base = words[1];
	all.big = malloc(BIG);
	if (!all.big || weft_tls_open(&trust, &opts.tls) < 0
	    || !(all.client = weft_http_client_new(&opts)))
		return WEFT_ENOMEM;
	for (size_t i = 0; i < BIG; i++)
		all.big[i] = (char)('a' + i * 7 % 26);
	ask_kinds();
	send_bodies();
	stream_body("/put/streamed", 201);
	ask("/put/streamed", (weft_http_request){ 0 }, 200, (weft_span){ all.big, BIG });
	stream_body("/tight/x", 413);
	ask_at_once();
	(void)weft_http_client_free(all.client);
	weft_tls_close(opts.tls);
	free(all.big);
	return all.failures ? WEFT_EPROTO : 0;
}

int
main(int argc, char **argv)
{
	return argc != 3 ? 2 : weft_main(NULL, run, argv + 1);
}
