/* redirect.c - where a redirect leads, and what is sent there.
 *
 *   1. A 303 turns a request into a GET, unless it is a HEAD; 301 and 302 do that to a POST.  A
 *      request turned into a GET has no body and no headers that describe one.
 *   2. All other redirects, 307 and 308 included, keep method and body.  A streamed request
 *      cannot be sent again: the caller gets its reply, whatever the status.
 *   3. Credentials are sent only to the origin they were given for.  Once a redirect has left
 *      that origin they are no longer sent, even if a later redirect leads back.
 *   4. A redirect is not followed from https to another scheme, nor to a Unix socket, except
 *      from a URL of the same socket.  Then the call fails instead of returning the reply,
 *      because a caller that ignores the status would take the 302 for the final reply.
 */
#include <errno.h>
#include "http/client/http_client.h"

bool
weft__http_may_send(const struct weft__http_call *call, const char *name)
{
	static const char *const secrets[] = { "Authorization", "Cookie", "Proxy-Authorization",
		                               NULL };
	static const char *const of_body[] = { "Content-Type",
		                               "Content-Encoding",
		                               "Content-Language",
		                               "Content-Location",
		                               "Digest",
		                               "Last-Modified",
		                               NULL };
	struct text text = { name, strlen(name) };

	if (!call->with_secrets && weft__http_is_one_of(text, secrets))
		return false;
	return call->with_body || !weft__http_is_one_of(text, of_body);
}

static bool
is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Rules 1 and 2. */
static bool
becomes_get(const struct weft__http_call *call, int status)
{
	if (status == 303)
		return strcmp(call->method, "HEAD") != 0;
	return (status == 301 || status == 302) && strcmp(call->method, "POST") == 0;
}

static int
check_next(const struct weft__http_url *from, const struct weft__http_url *to)
{
	const char *why = NULL;

	if (from->secure && !to->secure)
		why = "would leave https";
	else if (to->local && strcmp(from->address, to->address) != 0)
		why = "would lead to a Unix socket of this machine";
	if (!why)
		return 0;
	return weft_fail(WEFT_EPERM, "redirect to %.*s %s", weft__http_url_shown(to), to->text,
	                 why);
}

int
weft__http_redirect(struct weft__http_call *call, struct weft__http_url *next)
{
	int status = weft_http_status(call->http), rc;
	struct weft__http_url url;
	const char *location;

	if (!is_redirect(status) || call->streamed || call->request->no_redirect)
		return 0;
	location = weft_http_header(call->http, "Location");
	if (!location)
		return 0;
	if (call->hops >= call->client->redirects_max)
		return weft_fail(-ELOOP, "more than %u redirects",
		                 (unsigned)call->client->redirects_max);
	rc = weft__http_url_resolve(&call->url, location, &url);
	if (rc == WEFT_EINVAL) /* the server's mistake, not the caller's */
		rc = weft_fail(WEFT_EPROTO, "redirect to a malformed URL");
	if (rc < 0)
		return rc;
	rc = check_next(&call->url, &url);
	if (rc < 0) {
		weft__http_url_drop(&url);
		return rc;
	}
	call->hops++;
	if (strcmp(call->url.address, url.address) != 0)
		call->with_secrets = false;
	if (becomes_get(call, status)) {
		memcpy(call->method, "GET", 4);
		call->with_body = false;
	}
	*next = url;
	return 1;
}
