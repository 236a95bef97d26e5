/* tunnel.c - reach a TCP service through an HTTP server: "Upgrade: tcp".
 *
 *     tunnel ADDRESS TARGET
 *
 * Any client of the server can reach the target: listen on a local
 * address, or check a token of the request in tunnel().
 */
#include <stdio.h>
#include <weft/http.h>
#include <weft/weft.h>

struct way {
	weft_stream *from, *to;
};

static int
pump(void *arg)
{
	struct way *way = arg;
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(way->from, 1, &data, WEFT_NEVER)) > 0) {
		n = weft_stream_write(way->to, data, (size_t)n,
		                      weft_after(30 * WEFT_S));
		if (n < 0)
			return (int)n;
		weft_stream_skip(way->from, (size_t)n);
	}
	return n < 0 ? (int)n
	             : weft_stream_shutdown(way->to, weft_after(WEFT_S));
}

static int
join(weft_stream *client, weft_stream *target)
{
	struct way up = { client, target }, down = { target, client };
	weft_scope scope;

	weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);
	if (weft_scope_go(&scope, pump, &up) < 0
	    || weft_scope_go(&scope, pump, &down) < 0)
		weft_scope_cancel(&scope);
	return weft_scope_close(&scope);
}

static int
tunnel(weft_http *http, void *address)
{
	weft_stream *client, *target;
	int rc = weft_stream_connect(address, NULL, &target,
	                             weft_after(5 * WEFT_S));

	if (rc < 0) /* the client may know why */
		return weft_http_reply(http, 502, "text/plain",
		                       weft_text(weft_detail()),
		                       weft_after(5 * WEFT_S));
	rc = weft_http_upgrade(http, "tcp", &client, weft_after(5 * WEFT_S));
	if (rc == WEFT_EINVAL) {
		weft_http_set_header(http, "Upgrade", "tcp");
		rc = weft_http_reply(http, 426, "text/plain",
		                     weft_text("upgrade to tcp\n"),
		                     weft_after(5 * WEFT_S));
	} else if (rc == 0) {
		rc = join(client, target); /* now both are plain streams */
		weft_stream_close(client);
	}
	weft_stream_close(target);
	return rc;
}

static int
run(void *arg)
{
	char **words = arg; /* addresses of the server and of the target */
	weft_http_server *server = weft_http_server_new(NULL);
	weft_listener *listener;
	int rc = weft_listener_open(words[0], NULL, &listener);

	if (rc < 0)
		return rc;
	weft_http_route(server, "GET /tunnel", tunnel, words[1]);
	weft_http_serve(server, listener, WEFT_NEVER);
	weft_listener_close(listener);
	return weft_http_server_free(server);
}

int
main(int argc, char **argv)
{
	return argc != 3 ? 2 : weft_main(NULL, run, argv + 1);
}
