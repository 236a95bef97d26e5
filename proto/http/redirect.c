/* redirect.c - where a reply sends the client, and what it takes along.
 *
 *   1. 303 makes a request a GET, unless it is a HEAD; 301 and 302 do that with a POST.  A
 *      request that has become a GET has no body, and nothing that describes one.
 *   2. All others, and 307 and 308, keep method and body.  A streamed request cannot be
 *      said again: whatever it is answered is the caller's.
 *   3. What proves who the caller is stays at the origin that it was given for, also if
 *      the way leads back there.
 *   4. Nobody is led from https to http, nor to a Unix socket of this machine: these are
 *      errors, since a caller who takes 302 for an answer would go on without them.
 */
#include <errno.h>
#include "client.h"

static bool
is_one_of(const char *name, const char *const *names)
{
	struct text text = { name, strlen(name) };

	for (; *names; names++)
		if (weft__http_same(text, *names))
			return true;
	return false;
}

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

	if (!call->with_secrets && is_one_of(name, secrets))
		return false;
	return call->with_body || !is_one_of(name, of_body);
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
		why = "leaves https";
	else if (to->local && strcmp(from->address, to->address) != 0)
		why = "leads to a socket of this machine";
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
	if (rc == WEFT_EINVAL) /* not the caller's mistake */
		rc = weft_fail(WEFT_EPROTO, "redirect to no proper URL");
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
