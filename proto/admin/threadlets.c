/* threadlets.c - list all threadlets of all loops, a slice at a time.
 *
 *   1. A loop lists at most 64 threadlets at once.  The requesting threadlet yields before the
 *      next slice is requested or written.  So neither loop is blocked for longer than a slice
 *      takes, however many threadlets there are.
 *   2. Output is sent as it is produced.  Only sorting needs memory, for as many as are to be
 *      shown.
 *   3. A loop that does not answer within a second is reported and left out.
 */
#include "look.h"
#include <string.h>
#include <weft/loop.h>

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
read_query(struct weft__admin_look *look)
{
	weft_http *http = look->http;
	const char *format = weft_http_param(http, "format");

	look->query = weft_http_param(http, "q");
	look->json = format && strcmp(format, "json") == 0;
	look->max = look->json ? MAX_SHOWN : MAX_EVER;
	if (format && !look->json && strcmp(format, "text") != 0)
		return "format is text or json";
	if (look->query && strlen(look->query) > QUERY_MAX)
		return "q has at most 200 bytes";
	if (!read_order(weft_http_param(http, "sort"), &look->kept.order))
		return "sort is since, stack or name";
	if (!weft__admin_query(http, "max", (uint64_t[2]){ 1, MAX_EVER }, &look->max))
		return "max is a number from 1 to 20000";
	if (!weft__admin_query(http, "loop", (uint64_t[2]){ 1, UINT64_MAX }, &look->loop))
		return "loop is the ID of a loop";
	return NULL;
}

/* --- the results ------------------------------------------------------------------ */

static void
write_head(struct weft__admin_look *look, const weft_loop_info *info, int rc)
{
	static const char *const states[] = { "idle",     "starting", "running",
		                              "sleeping", "stopping", "stopped" };
	struct weft__admin_text *text = &look->text;

	if (rc < 0 && look->json)
		weft__json_number(&look->silent, info->number);
	if (look->json || (rc == 0 && look->kept.order))
		return;
	weft__admin_puts(text, "loop ");
	weft__admin_put_number(text, info->number);
	weft__admin_puts(text, info->name[0] ? " (" : "");
	weft__admin_put_name(text, info->name);
	weft__admin_puts(text, info->name[0] ? ")" : "");
	weft__admin_puts(text, rc < 0 ? " does not answer: " : " was ");
	weft__admin_puts(text, rc < 0 ? weft_strerror(rc) : states[(unsigned)info->state % 6]);
	weft__admin_puts(text, "\n");
}

static void
threadlets_take(struct weft__admin_look *look, uint64_t loop, const weft_threadlet_info *info)
{
	struct weft__admin_found found = { loop, *info };

	look->total++;
	if (!weft__admin_matches(look, info))
		return;
	look->matched++;
	if (look->kept.order)
		weft__admin_keep(&look->kept, &found);
	else if (look->shown < look->max)
		weft__admin_write_found(look, &found);
}

/* Rule 1: between two slices. */
static int
pause(struct weft__admin_look *look)
{
	int rc = weft__admin_flush(look->http, &look->text, PIECE_BYTES);

	if (rc == 0)
		rc = weft_yield();
	if (rc == 0 && weft__admin_is_closing(look->admin))
		rc = WEFT_ESHUTDOWN;
	return rc;
}

/* Whether everything that is to be shown was written; then the rest need not be listed. */
static bool
is_full(const struct weft__admin_look *look)
{
	return !look->kept.order && !look->query && look->shown >= look->max;
}

static int
walk_loop(struct weft__admin_look *look, const weft_loop_info *info)
{
	uint64_t cursor = 0;
	int rc = 0, n;

	do {
		n = weft_threadlet_list_of(info->number, &cursor, look->slice, WEFT__ADMIN_SLICE,
		                           weft_after(ANSWER_NS));
		if (n < 0 && n != WEFT_ETIMEDOUT)
			return n == WEFT_ENOENT || n == WEFT_ESHUTDOWN ? 0 : n;
		if (n < 0)
			write_head(look, info, n); /* rule 3 */
		for (int i = 0; i < n; i++)
			threadlets_take(look, info->number, &look->slice[i]);
		rc = pause(look);
	} while (rc == 0 && n > 0 && !is_full(look));
	return rc;
}

static int
walk(struct weft__admin_look *look)
{
	weft_loop_info info;
	uint64_t cursor = look->loop ? look->loop - 1 : 0, all = 0;
	int rc = 0;

	while (rc == 0 && weft_loop_list(&cursor, &info) > 0) {
		if (look->loop && info.number != look->loop)
			break;
		write_head(look, &info, 0);
		all = look->total + info.threadlets;
		if (!is_full(look))
			rc = walk_loop(look, &info);
		look->total = look->total > all ? look->total : all;
	}
	if (!look->query)
		look->matched = look->total;
	return rc;
}

/* Sort and write the kept ones, with pauses. */
static int
write_kept(struct weft__admin_look *look)
{
	size_t left = look->kept.count;
	int rc = 0;

	while (rc == 0 && weft__admin_sort_step(&look->kept, &left))
		if (left % WEFT__ADMIN_SLICE == 0)
			rc = pause(look);
	for (size_t i = 0; i < look->kept.count && rc == 0; i++) {
		weft__admin_write_found(look, &look->kept.items[i]);
		if (i % WEFT__ADMIN_SLICE == WEFT__ADMIN_SLICE - 1)
			rc = pause(look);
	}
	return rc;
}

/* --- the reply ---------------------------------------------------------------------- */

static void
write_end(struct weft__admin_look *look)
{
	struct weft__admin_text *text = &look->text;

	if (!look->json) {
		weft__admin_put_number(text, look->shown);
		weft__admin_puts(text, " of ");
		weft__admin_put_number(text, look->total);
		weft__admin_puts(text, " threadlets\n");
		return;
	}
	weft__json_close(text, ']');
	weft__json_key(text, "silent");
	weft__json_open(text, '[');
	if (look->silent.size > 0)
		weft__admin_put(text, look->silent.data, look->silent.size);
	weft__json_close(text, ']');
	weft__json_key(text, "total");
	weft__json_number(text, look->total);
	weft__json_key(text, "matched");
	weft__json_number(text, look->matched);
	weft__json_key(text, "shown");
	weft__json_number(text, look->shown);
	weft__json_close(text, '}');
}

static int
write_all(struct weft__admin_look *look)
{
	int rc = weft__admin_headers(look->http, NULL);

	if (rc == 0)
		rc = weft_http_begin(look->http, 200,
		                     look->json ? "application/json" : "text/plain; charset=utf-8",
		                     WEFT_NEVER);
	if (look->json) {
		weft__json_open(&look->text, '{');
		weft__json_key(&look->text, "threadlets");
		weft__json_open(&look->text, '[');
	}
	if (rc == 0)
		rc = walk(look);
	if (rc == 0)
		rc = write_kept(look);
	write_end(look);
	return rc < 0 ? rc : weft__admin_flush(look->http, &look->text, 1);
}

static int
threadlets_list(weft_http *http, weft_admin *admin)
{
	struct weft__admin_look *look = weft_alloc(sizeof(*look));
	const char *wrong;
	int rc = WEFT_ENOMEM;

	if (!look)
		return rc;
	memset(look, 0, sizeof(*look));
	look->http = http;
	look->admin = admin;
	wrong = read_query(look);
	look->kept.max = look->max;
	if (look->kept.order && !wrong)
		look->kept.items = weft_alloc(look->max * sizeof(*look->kept.items));
	if (wrong)
		rc = weft__admin_say(http, 400, wrong);
	else if (!look->kept.order || look->kept.items)
		rc = write_all(look);
	weft_release(look->kept.items);
	weft__admin_text_fini(&look->text);
	weft__admin_text_fini(&look->silent);
	weft_release(look);
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
		rc = weft__admin_say(http, 503, "too many requests are listing threadlets now");
	}
	(void)__atomic_sub_fetch(&admin->dumps, 1, __ATOMIC_RELAXED);
	return rc;
}
