/* http_client.c - the calls of an HTTP client: fetch, finish, close.
 *
 * A request is checked before anything is sent.  Then it is attempted, and attempted again with
 * another URL after each redirect (redirect.c).  The caller gets the exchange of the last
 * attempt.  All of this runs on the caller's threadlet, within one deadline.
 */
#include "http/client/http_client.h"
#include <weft/threadlet.h>

#define PER_HOST_MAX  64u
#define QUEUE_MAX     1024u
#define IDLE_MAX      256u
#define IDLE_NS       (30 * WEFT_S)
#define REDIRECTS_MAX 10u
#define HEADER_MOST   (INT32_MAX - 1) /* a stream's queue holds this and one more byte */

static uint32_t
header_max(size_t given)
{
	if (given == 0)
		return WEFT__HTTP_HEAD_MAX;
	return given < HEADER_MOST ? (uint32_t)given : HEADER_MOST;
}

weft_http_client *
weft_http_client_new(const weft_http_client_opts *opts)
{
	static const weft_http_client_opts none = { 0 };
	const weft_http_client_opts *x = opts ? opts : &none;
	weft_loop *loop = x->loop ? x->loop : weft_loop_current();
	weft_http_client *client;

	if (!loop) {
		(void)weft_fail(
			WEFT_EINVAL,
			"weft_http_client_new: no loop was given and none runs on this thread");
		return NULL;
	}
	client = weft_alloc(sizeof(*client));
	if (!client)
		return NULL;
	*client = (weft_http_client){
		.redirects_max = x->redirects_max ? x->redirects_max
		                                  : REDIRECTS_MAX,
		.header_max = header_max(x->header_max),
		.pool = {
			.loop = weft_loop_ref(loop),
			.connect = { .tls = x->tls },
			.per_host_max = x->per_host_max ? x->per_host_max
			                                : PER_HOST_MAX,
			.queue_max = x->queue_max ? x->queue_max : QUEUE_MAX,
			.idle_max = x->idle_max ? x->idle_max : IDLE_MAX,
			.idle_ns = x->idle_ns ? x->idle_ns : IDLE_NS,
		},
	};
	weft__http_pool_init(&client->pool);
	return client;
}

int
weft_http_client_free(weft_http_client *client)
{
	if (!client)
		return 0;
	if (client->open > 0)
		return weft_fail(WEFT_EBUSY, "weft_http_client_free: %u exchanges are still open",
		                 (unsigned)client->open);
	weft__http_pool_fini(&client->pool);
	(void)weft_loop_unref(client->pool.loop);
	weft_release(client);
	return 0;
}

/* --- requests ----------------------------------------------------------------- */

static int
check_method(const char *method)
{
	struct text text = { method, strlen(method) };

	if (text.size > WEFT__HTTP_METHOD_MAX || !weft__http_is_token(text))
		return weft_fail(WEFT_EINVAL, "weft_http_fetch: the method is malformed");
	if (strcmp(method, "CONNECT") == 0)
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_fetch: the method CONNECT is not supported");
	return 0;
}

static int
check_field(const weft_http_field *field)
{
	struct text name = { field->name, field->name ? strlen(field->name) : 0 };
	struct text value = { field->value, field->value ? strlen(field->value) : 0 };

	if (!field->name || !weft__http_is_token(name))
		return weft_fail(WEFT_EINVAL, "weft_http_fetch: malformed header name");
	if (!field->value || !weft__http_is_value(value))
		return weft_fail(WEFT_EINVAL, "weft_http_fetch: malformed value of header %.40s",
		                 field->name);
	if (weft__http_is_ours(field->name))
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_fetch: header %s cannot be set; the client manages it",
		                 field->name);
	return 0;
}

static int
check_request(const weft_http_request *request)
{
	int rc;

	if (!request->url)
		return weft_fail(WEFT_EINVAL, "weft_http_fetch: the request has no URL");
	if (request->streamed && request->body.size > 0)
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_fetch: a streamed request must not have a body");
	rc = request->method ? check_method(request->method) : 0;
	for (size_t i = 0; i < request->field_count && rc == 0; i++)
		rc = check_field(&request->fields[i]);
	return rc;
}

static int
make_call(weft_http_client *client, const weft_http_request *request, struct weft__http_call **out)
{
	struct weft__http_call *call = weft_alloc(sizeof(*call));
	const char *method = request->method ? request->method : "GET";
	int rc;

	if (!call)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	*call = (struct weft__http_call){
		.client = client,
		.request = request,
		.streamed = request->streamed,
		.with_body = true,
		.with_secrets = true,
	};
	memcpy(call->method, method, strlen(method));
	rc = weft__http_url_parse(request->url, &call->url);
	if (rc < 0) {
		weft_release(call);
		return rc;
	}
	client->open++;
	*out = call;
	return 0;
}

static void
end_call(struct weft__http_call *call)
{
	weft__http_call_leave(call, WEFT_NOWAIT);
	weft__http_url_drop(&call->url);
	call->client->open--;
	weft_release(call);
}

/* The time until which to wait for the rest of a redirect's reply. */
static uint64_t
drain_end(uint64_t deadline_ns)
{
	uint64_t end_ns = weft_after(WEFT__HTTP_DRAIN_NS);

	return end_ns < deadline_ns ? end_ns : deadline_ns;
}

/* Clear weft_detail(), so that after an error its text is about that error. */
static void
forget_detail(void)
{
	(void)weft_fail(0, "%s", "");
}

static int
run_unguarded(struct weft__http_call *call, uint64_t deadline_ns)
{
	struct weft__http_url next;
	int rc;

	for (;;) {
		rc = weft__http_call_try(call, deadline_ns);
		if (rc < 0 || call->streamed)
			return rc;
		rc = weft__http_redirect(call, &next);
		if (rc <= 0)
			return rc;
		weft__http_call_leave(call, drain_end(deadline_ns));
		weft__http_url_drop(&call->url);
		call->url = next;
	}
}

static int
run_call(struct weft__http_call *call, uint64_t deadline_ns)
{
	struct weft__http_guard guard;
	int rc = weft__http_guard_begin(&guard, call->request->abort);

	if (rc == 0)
		rc = run_unguarded(call, deadline_ns);
	weft__http_guard_end(&guard);
	return rc;
}

int
weft_http_fetch(weft_http_client *client, const weft_http_request *request, weft_http **out,
                uint64_t deadline_ns)
{
	struct weft__http_call *call = NULL;
	int rc;

	if (!client || !request || !out)
		return weft_fail(WEFT_EINVAL, "weft_http_fetch: an argument is NULL");
	if (client->pool.loop != weft_loop_current())
		return weft_fail(WEFT_EWRONGLOOP,
		                 "weft_http_fetch: the client belongs to another loop");
	if (!weft_can_suspend())
		return weft_fail(
			WEFT_ENOSUSPEND,
			"weft_http_fetch: it suspends, so it must be called in a threadlet");
	rc = check_request(request);
	if (rc == 0)
		rc = make_call(client, request, &call);
	if (rc < 0)
		return rc;
	forget_detail();
	rc = run_call(call, deadline_ns);
	if (rc < 0) {
		rc = weft__http_call_fail(call, rc);
		end_call(call);
		return rc;
	}
	call->http->abort = weft_abort_ref(request->abort);
	call->request = NULL;
	*out = call->http;
	return 0;
}

/* End a streamed body and receive the reply. */
static int
http_client_finish(struct weft__http_call *call, uint64_t deadline_ns)
{
	struct weft__http_guard guard;
	int rc = weft__http_guard_begin(&guard, call->http->abort);

	if (rc < 0)
		return rc;
	rc = weft__http_finish_message(call->http, deadline_ns);
	if (rc == 0)
		rc = weft__http_io_flush(&call->io, deadline_ns);
	if (rc == 0 && !call->http->out.cut)
		call->sent = true;
	if (rc == 0 || rc == WEFT_EPIPE || rc == WEFT_ECONNRESET)
		rc = weft__http_call_reply(call, deadline_ns);
	weft__http_guard_end(&guard);
	return rc;
}

/* If the peer refused the request while its head was sent, fetch has received the reply already. */
int
weft_http_finish(weft_http *http, uint64_t deadline_ns)
{
	struct weft__http_call *call;
	int rc = 0;

	if (!http || http->is_server)
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_finish: http is NULL or an exchange of a server");
	call = weft__http_call_of(http);
	if (!call->streamed)
		return weft_fail(
			WEFT_EALREADY,
			"weft_http_finish: the request was not streamed, or is already finished");
	forget_detail();
	if (!http->in.text)
		rc = http_client_finish(call, deadline_ns);
	if (rc < 0)
		return weft__http_call_fail(call, rc);
	call->streamed = false;
	return 0;
}

const char *
weft_http_url(weft_http *http)
{
	if (!http || http->is_server)
		return "";
	return weft__http_call_of(http)->url.text;
}

void
weft_http_close(weft_http *http)
{
	if (http && !http->is_server)
		end_call(weft__http_call_of(http));
}
