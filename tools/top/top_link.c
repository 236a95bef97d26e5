/* top_link.c - HTTP requests to the program's admin endpoint.
 *
 * One request stays open: the program sends the state of its loops as server-sent events.  The
 * threadlets are requested separately, at most once a second, because there may be many.  If the
 * connection fails, it is retried every second.
 */
#include <stdio.h>
#include <string.h>
#include "top_events.h"
#include "top.h"

#define REQUEST_NS (10 * WEFT_S) /* for the response headers, and between two parts of a body */
#define AGAIN_NS   WEFT_S        /* before the next attempt */
#define FEW_ROWS   100           /* threadlets to show below the loops */
#define MANY_ROWS  2000          /* threadlets in a table of their own */
#define PIECE      16384u

/* --- requests ----------------------------------------------------------------- */

static int
refused(const struct top *top, int status)
{
	if (status == 401 || status == 403)
		return weft_fail(WEFT_EPERM, "the program answered %d: %s", status,
		                 top->opts->token ? "the token is wrong"
		                                  : "a token is required; pass --token");
	if (status == 404)
		return weft_fail(WEFT_ENOENT, "the program answered 404: it has no such page");
	if (status == 409)
		return weft_fail(WEFT_EBUSY,
		                 "the program answered 409: another client is already doing this");
	return weft_fail(WEFT_EPROTO, "the program answered %d", status);
}

/* Drops the URL from the text, since it is on the screen already.  Name resolution and
 * certificate errors keep their full text. */
static int
shortened(int rc)
{
	if (rc == WEFT_ENONAME || rc == WEFT_ECERT)
		return rc;
	return weft_fail(rc, "%s", weft_strerror(rc));
}

int
link_request(struct top *top, const char *path, weft_http **out, uint64_t deadline_ns)
{
	const weft_http_field fields[] = { { "Authorization", top->bearer } };
	char url[TARGET_MAX + 512];
	weft_http_request request = {
		.url = url,
		.fields = fields,
		.field_count = top->opts->token ? 1 : 0,
		.no_redirect = true, /* a redirect would send the token elsewhere */
	};
	weft_http *http;
	int rc;

	(void)snprintf(url, sizeof(url), "%s%s", top->opts->base, path);
	rc = weft_http_fetch(top->client, &request, &http, deadline_ns);
	if (rc < 0)
		return shortened(rc);
	if (weft_http_status(http) != 200) {
		rc = refused(top, weft_http_status(http));
		weft_http_close(http);
		return rc;
	}
	*out = http;
	return 0;
}

/* --- loops -------------------------------------------------------------------- */

static int
on_event(const char *name, const char *data, size_t size, void *arg)
{
	struct top *top = arg;
	bool first = !top->connected;
	int rc;

	if (strcmp(name, "loops") != 0 || top->view.paused)
		return 0;
	rc = model_read_loops(&top->model, data, size);
	if (rc < 0)
		return rc;
	top->connected = true;
	top->trouble[0] = '\0';
	if (first)
		(void)weft_event_set(&top->refresh);
	draw_show(top);
	return top->opts->once && top->model.readings > 1 ? WEFT_ESHUTDOWN : 0;
}

/* A program that is stopped or blocked sends nothing.  After a while this fails, and the caller
 * reports it and reconnects. */
static int
read_events(struct top *top, weft_http *http)
{
	struct events events = { .fn = on_event, .arg = top };
	uint64_t silence_ns = top->period_ms * WEFT_MS * 3 + 5 * WEFT_S;
	char piece[PIECE];
	int rc = 0;

	while (rc == 0) {
		ssize_t n = weft_http_read(http, piece, sizeof(piece), weft_after(silence_ns));

		if (n > 0)
			rc = events_read(&events, piece, (size_t)n);
		else if (n == 0)
			rc = weft_fail(WEFT_EPIPE, "the program closed the connection");
		else if (n == WEFT_ETIMEDOUT)
			rc = weft_fail(WEFT_ETIMEDOUT, "the program has sent nothing for %.0f s",
			               (double)silence_ns / 1e9);
		else
			rc = shortened((int)n);
	}
	events_free(&events);
	return rc;
}

int
link_listen(struct top *top)
{
	weft_http *http;
	char path[64];
	int rc;

	(void)snprintf(path, sizeof(path), "/events?ms=%u", top->period_ms);
	rc = link_request(top, path, &http, weft_after(REQUEST_NS));
	if (rc < 0)
		return rc;
	rc = read_events(top, http);
	weft_http_close(http);
	return rc;
}

/* weft_interrupt() means that the period has changed. */
int
link_feed(void *arg)
{
	struct top *top = arg;
	int rc = 0;

	while (rc != WEFT_ECANCELED) {
		rc = link_listen(top);
		if (rc == WEFT_ECANCELED || rc == WEFT_EINTR)
			continue;
		(void)snprintf(top->trouble, sizeof(top->trouble), "%.200s; trying again  (%.200s)",
		               weft_detail(), top->opts->name);
		top->connected = false;
		draw_show(top);
		rc = weft_sleep(AGAIN_NS);
	}
	return 0;
}

/* --- threadlets ----------------------------------------------------------------- */

/* Reads a whole body. */
static int
read_body(weft_http *http, struct bytes *out)
{
	char piece[PIECE];
	ssize_t n;
	int rc = 0;

	do {
		n = weft_http_read(http, piece, sizeof(piece), weft_after(REQUEST_NS));
		if (n > 0)
			rc = bytes_add(out, piece, (size_t)n);
		if (out->size > JSON_BYTES_MAX)
			return weft_fail(WEFT_EMSGSIZE, "the reply is too large");
	} while (n > 0 && rc == 0);
	return n < 0 ? (int)n : rc;
}

/* If the program has more threadlets than one reply holds, it must apply the filter itself. */
static bool
requests_some(const struct top *top)
{
	return top->has_more && top->view.tab == TAB_THREADLETS
	       && *top->view.tabs[TAB_THREADLETS].filter;
}

/* Many rows are requested only if they will be shown. */
static void
write_path(const struct top *top, char *out, size_t room)
{
	const char *filter = top->view.tabs[TAB_THREADLETS].filter;
	bool many = top->opts->once || top->view.tab == TAB_THREADLETS;
	size_t size = (size_t)snprintf(out, room, "/debug/threadlets?format=json&sort=since&max=%d",
	                               many ? MANY_ROWS : FEW_ROWS);

	if (!requests_some(top))
		return;
	size += (size_t)snprintf(out + size, room - size, "&q=");
	for (; *filter && size + 4 < room; filter++)
		size += (size_t)snprintf(out + size, room - size, "%%%02X", (unsigned char)*filter);
}

int
link_read_threadlets(struct top *top)
{
	bool some = requests_some(top);
	weft_http *http;
	struct bytes body = { 0 };
	char path[512];
	int rc;

	write_path(top, path, sizeof(path));
	rc = link_request(top, path, &http, weft_after(REQUEST_NS));
	if (rc < 0)
		return rc;
	rc = read_body(http, &body);
	weft_http_close(http);
	if (rc == 0)
		rc = model_read_threadlets(&top->model, body.data ? body.data : "", body.size);
	bytes_free(&body);
	if (rc == 0 && !some)
		top->has_more = top->model.threadlet_total > (double)top->model.threadlet_count;
	return rc;
}

int
link_refresh(void *arg)
{
	struct top *top = arg;
	int rc = 0;

	while (rc != WEFT_ECANCELED) {
		uint64_t wait_ns = top->period_ms * WEFT_MS;

		(void)weft_event_reset(&top->refresh);
		rc = top->connected && !top->view.paused ? link_read_threadlets(top) : 0;
		if (rc == WEFT_ECANCELED)
			break;
		if (rc < 0 && top->connected)
			draw_message(top, "threadlets: %s", weft_detail());
		else
			draw_show(top);
		rc = weft_event_wait(&top->refresh,
		                     weft_after(wait_ns > WEFT_S ? wait_ns : WEFT_S));
	}
	return 0;
}
