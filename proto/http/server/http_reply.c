/* http_reply.c - replies of a server: complete, piece by piece, or a switch of protocols. */
#include "http/server/http_server.h"

static int
http_reply_check(weft_http *http, const char *call)
{
	if (!http || !http->is_server)
		return weft_fail(WEFT_EINVAL, "%s: not an exchange of a server", call);
	return 0;
}

int
weft_http_reply(weft_http *http, int status, const char *type, weft_span body, uint64_t deadline_ns)
{
	int rc = http_reply_check(http, "weft_http_reply");

	if (rc == 0 && (!body.data && body.size > 0))
		rc = weft_fail(WEFT_EINVAL, "weft_http_reply: body.data is NULL");
	if (rc == 0 && status < 200)
		rc = weft_fail(WEFT_EINVAL, "weft_http_reply: the status must be 200 or above");
	if (rc == 0)
		rc = weft__http_begin_reply(http, status, type, body.size, deadline_ns);
	if (rc < 0)
		return rc;
	http->out.stage = WEFT__HTTP_ENDED;
	http->out.left = 0;
	return http->out.bodyless || body.size == 0
	               ? 0
	               : weft__http_io_send(http->io, &body, 1, false, deadline_ns);
}

int
weft_http_begin(weft_http *http, int status, const char *type, uint64_t deadline_ns)
{
	int rc = http_reply_check(http, "weft_http_begin");

	if (rc == 0 && status < 200)
		rc = weft_fail(WEFT_EINVAL, "weft_http_begin: the status must be 200 or above");
	return rc < 0 ? rc
	              : weft__http_begin_reply(http, status, type, WEFT__HTTP_UNKNOWN, deadline_ns);
}

int
weft__http_reply_status(weft_http *http, int status, uint64_t deadline_ns)
{
	char number[8], page[64], *at = page;
	bool empty = status == 204 || status == 304;

	at = weft__http_put_text(at, weft__http_phrase(status, number));
	*at++ = '\n';
	return weft_http_reply(http, status, empty ? NULL : "text/plain",
	                       (weft_span){ page, (size_t)(at - page) }, deadline_ns);
}

void
weft__http_lift_deadline(struct weft__http_conn *conn)
{
	if (conn->scoped)
		(void)weft_scope_set_deadline(&conn->scope, WEFT_NEVER);
	conn->endless = true;
	/* Requests are otherwise counted at the end of their batch, which may be far away now. */
	weft__http_count(&conn->server->counts.requests, conn->requests);
	conn->requests = 0;
}

/* --- protocol upgrades --------------------------------------------------------- */

/* Whether the client has requested the protocol.  Returns 0 or WEFT_EINVAL. */
static int
check_protocol(weft_http *http, const char *protocol)
{
	struct text list = part_text(http->in.text, http->in.head.upgrade);
	struct text element;

	if (!(http->in.head.flags & WEFT__HTTP_UPGRADE) || !http->in.over)
		return weft_fail(
			WEFT_EINVAL,
			"weft_http_upgrade: the client did not request an upgrade, or its body "
			"was not read");
	while (weft__http_list_next(&list, &element))
		if (weft__http_same(element, protocol))
			return 0;
	return weft_fail(WEFT_EINVAL,
	                 "weft_http_upgrade: the client did not request this protocol");
}

/* The stream now belongs to the caller: a drain must no longer touch it. */
static weft_stream *
http_reply_hand_over(struct weft__http_conn *conn, weft_http *http)
{
	http->out.stage = WEFT__HTTP_ENDED;
	conn->io.error = WEFT_EALREADY;
	conn->taken = true;
	weft__http_lift_deadline(conn);
	weft__http_conn_state(conn, WEFT__HTTP_TAKEN);
	if (weft__http_draining(conn))
		(void)weft_cancel(conn->self);
	return conn->io.stream;
}

int
weft_http_upgrade(weft_http *http, const char *protocol, weft_stream **out, uint64_t deadline_ns)
{
	int rc = http_reply_check(http, "weft_http_upgrade");

	if (rc == 0 && (!protocol || !out))
		rc = weft_fail(WEFT_EINVAL, "weft_http_upgrade: an argument is NULL");
	if (rc == 0)
		rc = check_protocol(http, protocol);
	if (rc == 0 && http->out.stage != WEFT__HTTP_NOT_BEGUN)
		rc = weft_fail(WEFT_EALREADY, "weft_http_upgrade: the reply has already begun");
	if (rc == 0)
		rc = weft__http_add_field(http, "Upgrade", protocol);
	if (rc == 0)
		rc = weft__http_begin_reply(http, 101, NULL, 0, deadline_ns);
	if (rc == 0)
		rc = weft__http_io_flush(http->io, deadline_ns);
	if (rc < 0)
		return rc;
	*out = http_reply_hand_over(weft__http_conn_of(http), http);
	return 0;
}
