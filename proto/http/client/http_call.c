/* http_call.c - one attempt of a request: its connection, its head and body, the reply's head.
 *
 *   1. The peer may close a kept connection while a request is on its way.  If no byte of a
 *      reply has arrived and the method is idempotent, the request is sent again, once, on a
 *      new connection of the same slot.
 *   2. The reply is read even if the request could not be sent completely: it may say why.
 *   3. A connection is kept only if the request was sent completely and the reply was read to
 *      its end.
 */
#include "http/client/http_client.h"
#include <errno.h>

#define QUEUE_ROOM (64 << 10) /* default read_max of a stream */

/* --- the request --------------------------------------------------------------- */

bool
weft__http_is_ours(const char *name)
{
	static const char *const ours[] = {
		"Connection",        "Content-Length",   "Expect", "Host",
		"Keep-Alive",        "Proxy-Connection", "TE",     "Trailer",
		"Transfer-Encoding", "Upgrade",          NULL,
	};

	return weft__http_is_one_of((struct text){ name, strlen(name) }, ours);
}

static int
add_fields(struct weft__http_call *call)
{
	const weft_http_request *request = call->request;
	bool named = false;
	int rc = weft__http_add_field(call->http, "Host", call->url.host);

	for (size_t i = 0; i < request->field_count && rc == 0; i++) {
		const weft_http_field *field = &request->fields[i];
		struct text name = { field->name, strlen(field->name) };

		named |= weft__http_same(name, "User-Agent");
		if (weft__http_may_send(call, field->name))
			rc = weft__http_add_field(call->http, field->name, field->value);
	}
	if (rc == 0 && !named)
		rc = weft__http_add_field(call->http, "User-Agent", "weft");
	return rc;
}

/* POST, PUT and PATCH get a Content-Length even if the body is empty. */
static int
add_length(struct weft__http_call *call, uint64_t length)
{
	const char *method = call->method;

	if (length > 0
	    || (strcmp(method, "POST") != 0 && strcmp(method, "PUT") != 0
	        && strcmp(method, "PATCH") != 0))
		return 0;
	return weft__http_add_field(call->http, "Content-Length", "0");
}

static uint64_t
length_of(const struct weft__http_call *call)
{
	if (call->streamed)
		return WEFT__HTTP_UNKNOWN;
	return call->with_body ? call->request->body.size : 0;
}

static int
send_head(struct weft__http_call *call, uint64_t deadline_ns)
{
	size_t method = strlen(call->method), target = strlen(call->url.target);
	size_t size = method + target + sizeof("  HTTP/1.1\r\n") - 1;
	char *line = weft__http_arena_take(&call->http->arena, size), *at;
	int rc = add_fields(call);

	if (rc == 0)
		rc = add_length(call, length_of(call));
	if (rc < 0)
		return rc;
	if (!line)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	at = weft__http_put_text(line, (struct text){ call->method, method });
	*at++ = ' ';
	at = weft__http_put_text(at, (struct text){ call->url.target, target });
	(void)weft__http_put_text(at, WEFT__HTTP_LITERAL(" HTTP/1.1\r\n"));
	return weft__http_begin_request(call->http, (struct text){ line, size }, length_of(call),
	                                deadline_ns);
}

/* Send the whole request; only the head if the body is streamed. */
static int
send_request(struct weft__http_call *call, uint64_t deadline_ns)
{
	weft_span body = call->request->body;
	int rc = send_head(call, deadline_ns);

	if (rc == 0 && call->with_body && !call->streamed && body.size > 0)
		rc = (int)weft_http_write(call->http, body.data, body.size, deadline_ns);
	rc = rc > 0 ? 0 : rc;
	if (rc == 0 && !call->streamed)
		rc = weft__http_finish_message(call->http, deadline_ns);
	if (rc == 0)
		rc = weft__http_io_flush(&call->io, deadline_ns);
	if (rc == 0 && !call->streamed)
		call->sent = true;
	return rc;
}

/* --- the reply ---------------------------------------------------------------- */

/* Whether the connection is unusable, as opposed to a wait that failed. */
static bool
is_broken(int rc)
{
	return rc == WEFT_EPIPE || rc == WEFT_ECONNRESET || rc == WEFT_ETRUNCATED;
}

static void
expect_reply(struct weft__http_call *call)
{
	struct weft__http_limits limits = {
		.head_max = call->client->header_max,
		.body_max = UINT64_MAX,
	};
	enum weft__http_reply_to reply_to = strcmp(call->method, "HEAD") == 0
	                                            ? WEFT__HTTP_REPLY_TO_HEAD
	                                            : WEFT__HTTP_REPLY_TO_OTHER;

	call->http->in = (struct weft__http_in){ 0 };
	weft__http_response_init(&call->http->in.head, call->http->fields, WEFT__HTTP_FIELDS_MAX,
	                         &limits, reply_to);
	call->prepared = true;
}

/* Do not send the rest of the request.  The error of the output is cleared, so that the reply
 * can be read; the message stays incomplete. */
static void
give_up_sending(struct weft__http_call *call)
{
	call->http->out.stage = WEFT__HTTP_ENDED;
	call->http->out.cut = true;
	call->io.out_size = 0;
	call->io.error = 0;
}

/* Why no final reply can follow a head with this status, which is below 200; or NULL. */
static const char *
why_unfit(struct weft__http_call *call, int status)
{
	if (status == 101)
		return "the server switched protocols without being asked";
	if (status < 200 && ++call->interim > WEFT__HTTP_INTERIM)
		return "too many 1xx replies";
	return NULL;
}

/* Only a final head stays in http->in: a head that is there counts as the reply. */
static int
receive_final(struct weft__http_call *call, uint64_t deadline_ns)
{
	weft_http *http = call->http;

	while (!call->unfit) {
		int rc, status;

		if (!call->prepared)
			expect_reply(call);
		rc = weft__http_receive(http, deadline_ns);
		if (rc < 0)
			return rc;
		call->replied = true;
		status = http->in.head.status;
		if (status >= 200)
			return 0;
		call->unfit = why_unfit(call, status);
		http->in = (struct weft__http_in){ 0 };
		call->prepared = false;
	}
	return weft_fail(WEFT_EPROTO, "%s", call->unfit);
}

int
weft__http_call_reply(struct weft__http_call *call, uint64_t deadline_ns)
{
	int rc;

	if (!call->sent)
		give_up_sending(call);
	rc = receive_final(call, deadline_ns);
	if (rc == WEFT_EPIPE)
		return weft_fail(WEFT_ETRUNCATED, "the connection was closed without a reply");
	return rc;
}

/* --- an attempt --------------------------------------------------------------- */

/* A head stays in the stream's queue until it is complete, so it must fit there; plus one byte,
 * to detect a head that is too long. */
static int
http_call_make_room(const struct weft__http_call *call)
{
	int64_t room = (int64_t)call->client->header_max + 1;

	if (room <= QUEUE_ROOM)
		return 0;
	return weft_stream_set(call->io.stream, "read_max", room);
}

static int
open_try(struct weft__http_call *call)
{
	int rc = weft__http_io_init(&call->io, call->slot.conn->stream);

	if (rc == 0)
		rc = http_call_make_room(call);
	if (rc < 0)
		return rc;
	call->io.wait = weft__http_call_wait;
	call->io.owner = call;
	call->http = weft__http_new(&call->io, call);
	if (!call->http)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	call->sent = call->refused = call->prepared = call->replied = false;
	call->interim = 0;
	call->unfit = NULL;
	return 0;
}

static void
end_try(struct weft__http_call *call)
{
	if (call->http)
		weft__http_end(call->http);
	if (call->io.local)
		weft__http_io_fini(&call->io);
	call->http = NULL;
	call->io = (struct weft__http_io){ 0 };
}

static int
try_once(struct weft__http_call *call, uint64_t deadline_ns)
{
	int rc = open_try(call), reply;

	if (rc == 0)
		rc = send_request(call, deadline_ns);
	if (rc < 0 && !is_broken(rc))
		return rc;
	if (rc == 0 && call->streamed)
		return 0;
	reply = weft__http_call_reply(call, deadline_ns);
	/* The send error is more informative than the missing reply. */
	return rc < 0 && !call->refused && is_broken(reply) ? rc : reply;
}

static bool
is_idempotent(const char *method)
{
	static const char *const methods[] = { "GET",     "HEAD",  "PUT", "DELETE",
		                               "OPTIONS", "TRACE", NULL };

	for (const char *const *at = methods; *at; at++)
		if (strcmp(method, *at) == 0)
			return true;
	return false;
}

/* Rule 1, after an error on a kept connection. */
static bool
may_retry(struct weft__http_call *call, int rc)
{
	const void *data;

	return is_broken(rc) && !call->replied && is_idempotent(call->method)
	       && weft_stream_peek(call->io.stream, 0, &data, WEFT_NOWAIT) <= 0;
}

int
weft__http_call_try(struct weft__http_call *call, uint64_t deadline_ns)
{
	struct weft__http_conn_slot *slot = &call->slot;
	int rc = weft__http_pool_take(&call->client->pool, call->url.address, slot, deadline_ns);

	if (rc < 0)
		return rc;
	if (slot->conn) {
		rc = try_once(call, deadline_ns);
		if (rc == 0 || !may_retry(call, rc))
			return rc;
		end_try(call);
		weft__http_conn_slot_close(slot, false);
	}
	rc = weft__http_conn_slot_connect(slot, deadline_ns);
	return rc < 0 ? rc : try_once(call, deadline_ns);
}

/* Rule 3, provided that the reply is read to its end. */
static bool
may_keep(const struct weft__http_call *call)
{
	const struct weft__http_head *head = &call->http->in.head;

	return call->sent && head->status >= 200 && (head->flags & WEFT__HTTP_KEEP_ALIVE)
	       && head->framing != WEFT__HTTP_UNTIL_CLOSE && head->framing != WEFT__HTTP_TUNNEL;
}

/* Drop the rest of the reply.  Returns whether its end was reached.  A failure is not an error of
 * the exchange and does not change weft_detail(). */
static bool
drain(weft_http *http, uint64_t deadline_ns)
{
	char detail[1024];
	size_t size = strnlen(weft_detail(), sizeof(detail) - 1);

	if (http->in.head.framing == WEFT__HTTP_LENGTH && http->in.body.left > WEFT__HTTP_DRAIN_MAX)
		return false;
	memcpy(detail, weft_detail(), size);
	detail[size] = '\0';
	if (weft__http_drain(http, WEFT__HTTP_DRAIN_MAX, deadline_ns) == 0)
		return true;
	(void)weft_fail(0, "%s", detail);
	return false;
}

void
weft__http_call_leave(struct weft__http_call *call, uint64_t deadline_ns)
{
	bool has_head = call->http && call->http->in.text;
	bool over = has_head && call->http->in.over;
	bool keep = has_head && may_keep(call);

	if (keep && !over)
		keep = over = drain(call->http, deadline_ns);
	end_try(call);
	if (!call->slot.host)
		return;
	if (!keep)
		weft__http_conn_slot_close(&call->slot, !over);
	weft__http_conn_slot_give(&call->slot);
}

const char *
weft__http_request_method(weft_http *http)
{
	return weft__http_call_of(http)->method;
}

/* --- errors ------------------------------------------------------------------- */

static int
fail_with_url(struct weft__http_call *call, int error, const char *text)
{
	char why[512];
	size_t size = strnlen(text, sizeof(why) - 1);

	memcpy(why, text, size);
	why[size] = '\0';
	return weft_fail(error, "%s %.*s: %s", call->method, weft__http_url_shown(&call->url),
	                 call->url.text, why);
}

int
weft__http_call_fail(struct weft__http_call *call, int error)
{
	const char *text = weft_detail();

	return fail_with_url(call, error, *text ? text : weft_strerror(error));
}

/* During fetch weft__http_call_fail() adds the URL.  Errors of the stream come without a text of
 * their own.  After a refusal each write returns WEFT_EPIPE again, and by then weft_detail() may
 * be about something else. */
int
weft__http_explain(weft_http *http, int error)
{
	struct weft__http_call *call = http->owner;
	bool has_text = error == WEFT_EPROTO || error == WEFT_EMSGSIZE || error == WEFT_ETRUNCATED
	                || error == WEFT_EINVAL;

	if (http->is_server || call->request)
		return error;
	if (error == WEFT_EPIPE && call->refused)
		return fail_with_url(call, error, WEFT__HTTP_REFUSED);
	return fail_with_url(call, error, has_text ? weft_detail() : weft_strerror(error));
}
