/* http_event.c - server-sent events, and detecting that the peer is gone.
 *
 * A handler that sends events mostly waits for something else, so it would notice only at its
 * next event that the peer is gone.  Therefore an op watches for the end of the connection.
 * When the connection ends, or the server drains, the callback of that op cancels the handler's
 * scope.  The rest of the incoming body is dropped as it arrives.  A peer may send at most
 * AHEAD_MAX bytes of later requests; with more, the handler is canceled too, since the end of
 * the connection would not be seen behind bytes that are not read.
 */
#include "http/server/http_server.h"

#define AHEAD_MAX 4096 /* bytes */
#define ON_STACK  512

/* --- watching --------------------------------------------------------------- */

struct weft__http_watch {
	weft_op op;
	struct weft__http_conn *conn; /* NULL: the watch ends when `op` finishes */
	weft_op *ended;               /* the op to finish then, or NULL */
	weft_http *http;              /* while its body is not at its end, else NULL */
	size_t min;                   /* bytes to wait for; fewer means the end */
};

static void
drop_watch(struct weft__http_watch *watch)
{
	watch->conn->watch = NULL;
	weft_release(watch);
}

/* No op watches: a drain has to cancel the threadlet itself. */
static void
watch_none(struct weft__http_conn *conn)
{
	weft__http_conn_state(conn, WEFT__HTTP_TAKEN);
	if (weft__http_draining(conn))
		weft_scope_cancel(&conn->scope);
}

/* End the handler. */
static void
watch_end(struct weft__http_watch *watch)
{
	struct weft__http_conn *conn = watch->conn;

	conn->gone = true;
	drop_watch(watch);
	weft_scope_cancel(&conn->scope);
}

/* Wait for `min` bytes; if that is refused, stop watching. */
static void
watch_on(struct weft__http_watch *watch, size_t min)
{
	struct weft__http_conn *conn = watch->conn;

	watch->min = min;
	if (weft_stream_peek_op(conn->io.stream, min, &watch->op, WEFT_NEVER) == 0)
		return;
	drop_watch(watch);
	watch_none(conn);
}

/* `size` bytes are available: wait for more. */
static void
watch_behind(struct weft__http_watch *watch, size_t size)
{
	ssize_t min = 0;

	if (watch->http) {
		min = weft__http_drop_here(watch->http);
		size = 0;
	}
	if (min > 0) {
		watch_on(watch, (size_t)min);
		return;
	}
	watch->http = NULL;
	if (min < 0 || size >= AHEAD_MAX)
		watch_end(watch);
	else
		watch_on(watch, size + 1);
}

static void
on_watched(weft_op *op, int64_t result, void *arg)
{
	struct weft__http_watch *watch = arg;
	struct weft__http_conn *conn = watch->conn;

	(void)op;
	if (!conn) {
		if (watch->ended)
			(void)weft_op_finish(watch->ended, 0);
		weft_release(watch);
		return;
	}
	if (result == WEFT_EINTR && !weft__http_draining(conn)) {
		watch_on(watch, watch->min);
		return;
	}
	if (result >= (int64_t)watch->min)
		watch_behind(watch, (size_t)result);
	else
		watch_end(watch);
}

int
weft__http_watch_start(struct weft__http_conn *conn, weft_http *http)
{
	struct weft__http_watch *watch = weft_alloc(sizeof(*watch));

	if (!watch)
		return weft_fail(WEFT_ENOMEM, "weft_http_serve: out of memory");
	watch->conn = conn;
	watch->ended = NULL;
	watch->http = http->in.over || http->in.expects ? NULL : http;
	conn->watch = watch;
	conn->gone = false; /* of an earlier request, behind which too much has arrived */
	(void)weft_op_init(&watch->op, NULL, on_watched, watch);
	weft__http_conn_state(conn, WEFT__HTTP_IDLE);
	watch_behind(watch, 0);
	if (weft__http_draining(conn))
		weft_scope_cancel(&conn->scope);
	return 0;
}

/* Nothing to do: on_watched() finishes the op. */
static void
on_cancel(weft_op *op, int why, void *arg)
{
	(void)op, (void)why, (void)arg;
}

/* Two readers at once are not allowed, so wait until the watch has ended before the next
 * request is read. */
int
weft__http_watch_stop(struct weft__http_conn *conn)
{
	struct weft__http_watch *watch = conn->watch;
	weft_op ended;
	int rc;

	(void)weft_op_init(&ended, NULL, NULL, NULL);
	rc = weft_op_begin(&ended, on_cancel, NULL, WEFT_NEVER);
	watch->ended = rc == 0 ? &ended : NULL;
	watch->conn = NULL;
	conn->watch = NULL;
	weft_op_cancel(&watch->op);
	if (rc == 0)
		(void)weft_op_wait(&ended, WEFT_NEVER);
	return rc;
}

/* --- events ----------------------------------------------------------------- */

/* Store the next line of `text` in *line and advance *text.  False after the last line. */
static bool
next_line(const char **text, struct text *line)
{
	const char *at = *text;

	if (!at)
		return false;
	*line = (struct text){ at, strcspn(at, "\r\n") };
	at += line->size;
	if (at[0] == '\r' && at[1] == '\n')
		at++;
	*text = *at ? at + 1 : NULL;
	return true;
}

static size_t
size_of(const char *event, const char *data)
{
	size_t size = 1;
	struct text line;

	if (event)
		size += strlen(event) + sizeof("event: \n") - 1;
	while (next_line(&data, &line))
		size += line.size + sizeof("data: \n") - 1;
	return size;
}

static void
put_event(char *at, const char *event, const char *data)
{
	struct text line;

	if (event) {
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("event: "));
		at = weft__http_put_text(at, (struct text){ event, strlen(event) });
		*at++ = '\n';
	}
	while (next_line(&data, &line)) {
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("data: "));
		at = weft__http_put_text(at, line);
		*at++ = '\n';
	}
	*at = '\n';
}

/* The first event: from now on the handler has no deadline. */
static int
event_begin(struct weft__http_conn *conn, weft_http *http, uint64_t deadline_ns)
{
	int rc = 0;

	if (http->out.stage == WEFT__HTTP_NOT_BEGUN) {
		rc = weft_http_set_header(http, "Cache-Control", "no-store");
		if (rc == 0)
			rc = weft__http_begin_reply(http, 200, "text/event-stream",
			                            WEFT__HTTP_UNKNOWN, deadline_ns);
	}
	if (rc < 0 || http->out.bodyless)
		return rc;
	rc = weft__http_watch_start(conn, http);
	if (rc == 0)
		weft__http_lift_deadline(conn);
	return rc;
}

static int
check_event(weft_http *http, const char *event, const char *data)
{
	if (!http || !http->is_server || !data || (event && event[strcspn(event, "\r\n")]))
		return weft_fail(
			WEFT_EINVAL,
			"weft_http_send_event: not an exchange of a server, data is NULL, or "
			"event has several lines");
	if (http->out.stage == WEFT__HTTP_ENDED)
		return weft_fail(WEFT_EALREADY,
		                 "weft_http_send_event: the response is already complete");
	return 0;
}

int
weft_http_send_event(weft_http *http, const char *event, const char *data, uint64_t deadline_ns)
{
	struct weft__http_conn *conn;
	char here[ON_STACK], *text = here;
	size_t size;
	ssize_t rc = check_event(http, event, data);

	if (rc < 0)
		return (int)rc;
	conn = weft__http_conn_of(http);
	if (!conn->endless)
		rc = event_begin(conn, http, deadline_ns);
	if (rc == 0 && (http->out.bodyless || conn->gone))
		rc = weft_fail(WEFT_EPIPE,
		               "weft_http_send_event: the peer is gone, or the request was a HEAD");
	if (rc == 0)
		rc = weft_check_canceled();
	size = size_of(event, data);
	if (rc == 0 && size > sizeof(here) && !(text = weft_alloc(size)))
		rc = weft_fail(WEFT_ENOMEM, "weft_http_send_event: out of memory");
	if (rc == 0) {
		put_event(text, event, data);
		rc = weft_http_write(http, text, size, deadline_ns);
	}
	if (text != here)
		weft_release(text);
	return rc < 0 ? (int)rc : 0;
}
