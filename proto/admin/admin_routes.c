/* admin_routes.c - the routes of the admin endpoint, and replies. */
#include "admin_private.h"
#include <stdio.h>
#include <string.h>

#define PATTERN_MAX 320
#define PIECE_MAX   ((size_t)1 << 16)

static const char strict[] = "default-src 'none'; base-uri 'none'; "
			     "form-action 'none'; frame-ancestors 'none'";

typedef int (*answer_fn)(weft_http *http, weft_admin *admin);

/* --- replies --------------------------------------------------------------------- */

int
weft__admin_headers(weft_http *http, const char *policy)
{
	const weft_http_field fields[] = {
		{ "Cache-Control", "no-store" },
		{ "Content-Security-Policy", policy ? policy : strict },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && rc == 0; i++)
		rc = weft_http_set_header(http, fields[i].name, fields[i].value);
	return rc;
}

int
weft__admin_reply_line(weft_http *http, int status, const char *line)
{
	char text[256];
	int size = snprintf(text, sizeof(text), "%s\n", line);
	int rc = weft__admin_headers(http, NULL);

	return rc < 0 ? rc
	              : weft_http_reply(http, status, "text/plain; charset=utf-8",
	                                (weft_span){ text, (size_t)size }, WEFT_NEVER);
}

int
weft__admin_reply(weft_http *http, const char *type, struct weft__admin_text *text)
{
	weft_span body = { text->out.data, text->out.size };
	int rc = text->error;

	if (rc == 0)
		rc = weft__admin_headers(http, NULL);
	if (rc == 0)
		rc = weft_http_reply(http, 200, type, body, WEFT_NEVER);
	weft__admin_text_fini(text);
	return rc;
}

/* Piece by piece, so that at most PIECE_MAX bytes are queued in the stream. */
int
weft__admin_flush(weft_http *http, struct weft__admin_text *text, size_t min)
{
	size_t done = 0;

	if (text->error)
		return text->error;
	if (text->out.size < min)
		return 0;
	while (done < text->out.size) {
		size_t left = text->out.size - done;
		ssize_t n = weft_http_write(http, text->out.data + done,
		                            left < PIECE_MAX ? left : PIECE_MAX, WEFT_NEVER);

		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	text->out.size = 0;
	return 0;
}

bool
weft__admin_query(weft_http *http, const char *name, uint64_t range[2], uint64_t *out)
{
	const char *at = weft_http_param(http, name);
	uint64_t number = 0;

	if (!at)
		return true;
	if (!*at || strlen(at) > 18)
		return false;
	for (; *at; at++) {
		if (*at < '0' || *at > '9')
			return false;
		number = number * 10 + (uint64_t)(*at - '0');
	}
	if (number < range[0] || number > range[1])
		return false;
	*out = number;
	return true;
}

/* --- routes ---------------------------------------------------------------------- */

/* Every request goes through here.  A draining server still handles new requests, but the admin
 * endpoint does not: memory that the program has lent to it may be gone. */
static int
answer(weft_http *http, weft_admin *admin, answer_fn fn, enum weft__admin_use use)
{
	int rc;

	weft__admin_ref(admin);
	if (weft__admin_is_closing(admin)) {
		rc = weft__admin_reply_line(http, 503, "the admin endpoint is closing");
		weft__admin_unref(admin);
		return rc;
	}
	rc = weft__admin_token_login(admin, http);
	if (rc == 0)
		rc = weft__admin_guard(admin, http, use);
	if (rc == 0)
		rc = fn(http, admin);
	else if (rc == WEFT_EPERM || rc > 0)
		rc = 0;
	weft__admin_unref(admin);
	return rc;
}

static weft_admin *
admin_of(void *arg)
{
	return ((struct weft__admin_mount *)arg)->admin;
}

static int
on_page(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_page, WEFT__ADMIN_VISITS);
}

static int
on_metrics(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_metrics, WEFT__ADMIN_READS);
}

static int
on_loops(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_loops, WEFT__ADMIN_READS);
}

static int
on_threadlets(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_threadlets, WEFT__ADMIN_READS);
}

static int
on_dag(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_dag, WEFT__ADMIN_READS);
}

static int
on_trace(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_trace, WEFT__ADMIN_READS);
}

static int
on_events(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), weft__admin_events, WEFT__ADMIN_READS);
}

/* The links of the page are relative, so its path must end with a slash: redirect there. */
static int
go_behind(weft_http *http, weft_admin *admin)
{
	char location[PATTERN_MAX];
	int rc;

	(void)admin;
	(void)snprintf(location, sizeof(location), "%s/", weft_http_path(http));
	rc = weft_http_set_header(http, "Location", location);
	return rc < 0 ? rc
	              : weft__admin_reply_line(http, 308,
	                                       "the page is at this path with a slash at the end");
}

static int
on_bare(weft_http *http, void *arg)
{
	return answer(http, admin_of(arg), go_behind, WEFT__ADMIN_VISITS);
}

static int
routes_add(struct weft__admin_mount *mount, weft_http_server *server, const char *path,
           weft_http_fn fn)
{
	char pattern[PATTERN_MAX];

	(void)snprintf(pattern, sizeof(pattern), "GET %s%s", mount->prefix, path);
	return weft_http_route(server, pattern, fn, mount);
}

int
weft__admin_routes(struct weft__admin_mount *mount, weft_http_server *server)
{
	static const struct {
		const char *path;
		weft_http_fn fn;
	} routes[] = {
		{ "/", on_page },
		{ "/metrics", on_metrics },
		{ "/debug/loops", on_loops },
		{ "/debug/threadlets", on_threadlets },
		{ "/debug/dag", on_dag },
		{ "/debug/trace", on_trace },
		{ "/events", on_events },
	};
	int rc = mount->prefix[0] ? routes_add(mount, server, "", on_bare) : 0;

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]) && rc == 0; i++)
		rc = routes_add(mount, server, routes[i].path, routes[i].fn);
	return rc;
}
