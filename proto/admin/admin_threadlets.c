/* admin_threadlets.c - list all threadlets of all loops, a slice at a time.
 *
 *   1. A loop lists at most 64 threadlets at once.  The requesting threadlet yields before the
 *      next slice is requested or written.  So neither loop is blocked for longer than a slice
 *      takes, however many threadlets there are.
 *   2. Output is sent as it is produced.  Only sorting needs memory, for as many as are to be
 *      shown.
 *   3. A loop that does not answer within a second is reported and left out.
 */
#include "admin_listing.h"
#include <string.h>
#include <weft/debug.h>
#include <weft/loop.h>
#include <weft/metrics.h>

#define MAX_SHOWN   UINT64_C(1000)
#define MAX_EVER    UINT64_C(20000)
#define QUERY_MAX   ((size_t)200)
#define DUMPS_MAX   4u /* at once: each may use megabytes */
#define ANSWER_NS   WEFT_S
#define PIECE_BYTES ((size_t)32 << 10)

/* --- the query -------------------------------------------------------------------- */

static bool
read_order(const char *text, enum weft__admin_order *out)
{
	static const char *const names[] = { "", "since", "stack", "name" };

	*out = WEFT__ADMIN_AS_FOUND;
	for (int i = 0; text && i < 4; i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (enum weft__admin_order)i;
			return true;
		}
	return !text;
}

/* Returns NULL, or what is wrong with the query. */
static const char *
read_query(struct weft__admin_listing *listing)
{
	weft_http *http = listing->http;
	const char *format = weft_http_param(http, "format");

	listing->query = weft_http_param(http, "q");
	listing->json = format && strcmp(format, "json") == 0;
	listing->max = listing->json ? MAX_SHOWN : MAX_EVER;
	if (format && !listing->json && strcmp(format, "text") != 0)
		return "format is text or json";
	if (listing->query && strlen(listing->query) > QUERY_MAX)
		return "q has at most 200 bytes";
	if (!read_order(weft_http_param(http, "sort"), &listing->top.order))
		return "sort is since, stack or name";
	if (!weft__admin_query(http, "max", (uint64_t[2]){ 1, MAX_EVER }, &listing->max))
		return "max is a number from 1 to 20000";
	if (!weft__admin_query(http, "loop", (uint64_t[2]){ 1, UINT64_MAX }, &listing->loop))
		return "loop is the ID of a loop";
	return NULL;
}

/* --- the results ------------------------------------------------------------------ */

static void
write_head(struct weft__admin_listing *listing, const weft_loop_info *info, int rc)
{
	static const char *const states[] = { "idle",     "starting", "running",
		                              "sleeping", "stopping", "stopped" };
	struct weft__admin_text *text = &listing->text;

	if (rc < 0 && listing->json)
		weft__json_number(&listing->silent, info->id);
	if (listing->json || (rc == 0 && listing->top.order))
		return;
	weft__admin_puts(text, "loop ");
	weft__admin_put_number(text, info->id);
	weft__admin_puts(text, info->name[0] ? " (" : "");
	weft__admin_put_name(text, info->name);
	weft__admin_puts(text, info->name[0] ? ")" : "");
	weft__admin_puts(text, rc < 0 ? " does not answer: " : " was ");
	weft__admin_puts(text, rc < 0 ? weft_strerror(rc) : states[(unsigned)info->state % 6]);
	weft__admin_puts(text, "\n");
}

static void
threadlets_take(struct weft__admin_listing *listing, uint64_t loop, const weft_threadlet_info *info)
{
	struct weft__admin_entry entry = { loop, *info };

	listing->total++;
	if (!weft__admin_matches(listing, info))
		return;
	listing->matched++;
	if (listing->top.order)
		weft__admin_top_add(&listing->top, &entry);
	else if (listing->shown < listing->max)
		weft__admin_write_entry(listing, &entry);
}

/* Rule 1: between two slices. */
static int
pause(struct weft__admin_listing *listing)
{
	int rc = weft__admin_flush(listing->http, &listing->text, PIECE_BYTES);

	if (rc == 0)
		rc = weft_yield();
	if (rc == 0 && weft__admin_is_closing(listing->admin))
		rc = WEFT_ESHUTDOWN;
	return rc;
}

/* Whether everything that is to be shown was written, so that the rest need not be listed. */
static bool
is_full(const struct weft__admin_listing *listing)
{
	return !listing->top.order && !listing->query && listing->shown >= listing->max;
}

static int
walk_loop(struct weft__admin_listing *listing, const weft_loop_info *info)
{
	uint64_t cursor = 0;
	int rc = 0, n;

	do {
		n = weft_threadlet_list(info->id, &cursor, listing->slice, WEFT__ADMIN_SLICE,
		                        weft_after(ANSWER_NS));
		if (n < 0 && n != WEFT_ETIMEDOUT)
			return n == WEFT_ENOENT || n == WEFT_ESHUTDOWN ? 0 : n;
		if (n < 0)
			write_head(listing, info, n); /* rule 3 */
		for (int i = 0; i < n; i++)
			threadlets_take(listing, info->id, &listing->slice[i]);
		rc = pause(listing);
	} while (rc == 0 && n > 0 && !is_full(listing));
	return rc;
}

static int
walk(struct weft__admin_listing *listing)
{
	weft_loop_info info;
	uint64_t cursor = listing->loop ? listing->loop - 1 : 0, all = 0;
	int rc = 0;

	while (rc == 0 && weft_loop_list(&cursor, &info) > 0) {
		if (listing->loop && info.id != listing->loop)
			break;
		write_head(listing, &info, 0);
		all = listing->total + info.threadlets;
		if (!is_full(listing))
			rc = walk_loop(listing, &info);
		listing->total = listing->total > all ? listing->total : all;
	}
	if (!listing->query)
		listing->matched = listing->total;
	return rc;
}

/* Sort the entries and write them, with pauses. */
static int
write_top(struct weft__admin_listing *listing)
{
	size_t left = listing->top.count;
	int rc = 0;

	while (rc == 0 && weft__admin_top_sort_step(&listing->top, &left))
		if (left % WEFT__ADMIN_SLICE == 0)
			rc = pause(listing);
	for (size_t i = 0; i < listing->top.count && rc == 0; i++) {
		weft__admin_write_entry(listing, &listing->top.items[i]);
		if (i % WEFT__ADMIN_SLICE == WEFT__ADMIN_SLICE - 1)
			rc = pause(listing);
	}
	return rc;
}

/* --- the reply ---------------------------------------------------------------------- */

static void
write_end(struct weft__admin_listing *listing)
{
	struct weft__admin_text *text = &listing->text;

	if (!listing->json) {
		weft__admin_put_number(text, listing->shown);
		weft__admin_puts(text, " of ");
		weft__admin_put_number(text, listing->total);
		weft__admin_puts(text, " threadlets\n");
		return;
	}
	weft__json_close(text, ']');
	weft__json_key(text, "silent");
	weft__json_open(text, '[');
	weft__admin_put(text, listing->silent.out.data, listing->silent.out.size);
	weft__json_close(text, ']');
	weft__json_key(text, "total");
	weft__json_number(text, listing->total);
	weft__json_key(text, "matched");
	weft__json_number(text, listing->matched);
	weft__json_key(text, "shown");
	weft__json_number(text, listing->shown);
	weft__json_close(text, '}');
}

static int
write_all(struct weft__admin_listing *listing)
{
	int rc = weft__admin_headers(listing->http, NULL);

	if (rc == 0)
		rc = weft_http_begin(listing->http, 200,
		                     listing->json ? "application/json"
		                                   : "text/plain; charset=utf-8",
		                     WEFT_NEVER);
	if (listing->json) {
		weft__json_open(&listing->text, '{');
		weft__json_key(&listing->text, "threadlets");
		weft__json_open(&listing->text, '[');
	}
	if (rc == 0)
		rc = walk(listing);
	if (rc == 0)
		rc = write_top(listing);
	write_end(listing);
	return rc < 0 ? rc : weft__admin_flush(listing->http, &listing->text, 1);
}

static int
threadlets_list(weft_http *http, weft_admin *admin)
{
	struct weft__admin_listing *listing = weft_alloc(sizeof(*listing));
	const char *wrong;
	int rc = WEFT_ENOMEM;

	if (!listing)
		return rc;
	memset(listing, 0, sizeof(*listing));
	listing->http = http;
	listing->admin = admin;
	wrong = read_query(listing);
	listing->top.max = listing->max;
	if (listing->top.order && !wrong)
		listing->top.items = weft_alloc(listing->max * sizeof(*listing->top.items));
	if (wrong)
		rc = weft__admin_reply_line(http, 400, wrong);
	else if (!listing->top.order || listing->top.items)
		rc = write_all(listing);
	weft_release(listing->top.items);
	weft__admin_text_fini(&listing->text);
	weft__admin_text_fini(&listing->silent);
	weft_release(listing);
	return rc;
}

int
weft__admin_threadlets(weft_http *http, weft_admin *admin)
{
	int rc;

	if (__atomic_add_fetch(&admin->dumps, 1, __ATOMIC_RELAXED) <= DUMPS_MAX) {
		rc = threadlets_list(http, admin);
	} else {
		(void)weft_http_set_header(http, "Retry-After", "1");
		rc = weft__admin_reply_line(http, 503,
		                            "too many requests are listing threadlets now");
	}
	(void)__atomic_sub_fetch(&admin->dumps, 1, __ATOMIC_RELAXED);
	return rc;
}
