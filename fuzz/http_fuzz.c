/* http_fuzz.c - the HTTP parser, for any input and any split of it.
 *
 * The first byte of an input selects the kind of the rest: Q a request, R a response, H a response
 * to HEAD, T a response to CONNECT, C a chunked body, V the value of a header, P a path; a
 * lower-case letter sets tight limits.  The second byte selects where the input is split.  The
 * rules:
 *
 *   1. The result is the same for the input at once, byte by byte, in two pieces and in many.
 *   2. An accepted header section, written out in the simplest form, is parsed to the same result.
 *   3. A decoded path has no dot segments and no NUL; a range is within its body; a parsed date is
 *      formatted and parsed again to the same date.
 */
#include <ctype.h>
#include <string.h>
#include "fuzz.h"
#include "http/parse/uri.h"
#include "http/parse/http_values.h"
#include "proto/feed.h"

#define SMALL 700 /* up to this size also byte by byte, which takes quadratic time */

static struct outcome whole, other;

static void
compare(const struct feed *feed, const char *data, size_t size, struct feed_cut cut)
{
	const char *what;

	feed_run(feed, data, size, cut, &other);
	what = feed_difference(&whole, &other);
	ORACLE(!what, "cut %d at %llu: %s differs: %d, %d", (int)cut.how,
	       (unsigned long long)cut.number, what, whole.rc, other.rc);
}

/* --- rule 2 -------------------------------------------------------------------- */

struct writer {
	char text[1 << 16];
	size_t size;
};

static void
put(struct writer *w, const char *data, size_t size)
{
	if (size > sizeof(w->text) - w->size)
		abort();
	memcpy(w->text + w->size, data, size);
	w->size += size;
}

static void
put_part(struct writer *w, const char *data, struct weft__http_part part)
{
	ORACLE(part.at + part.size <= whole.head.size, "part beyond its head");
	for (uint32_t i = 0; i < part.size; i++)
		ORACLE(!strchr("\r\n", data[part.at + i]), "line end in a part");
	put(w, data + part.at, part.size);
}

static void
write_head(struct writer *w, const char *data, bool is_response)
{
	const struct weft__http_head *head = &whole.head;
	char version[] = "HTTP/1.0", status[8];

	version[7] = (char)('0' + head->minor);
	if (is_response) {
		put(w, version, 8);
		put(w, status, (size_t)snprintf(status, sizeof(status), " %d ", head->status));
		put_part(w, data, head->reason);
	} else {
		put_part(w, data, head->method);
		put(w, " ", 1);
		put_part(w, data, head->target);
		put(w, " ", 1);
		put(w, version, 8);
	}
	put(w, "\r\n", 2);
	for (uint32_t i = 0; i < head->lines.count; i++) {
		put_part(w, data, head->lines.fields[i].name);
		put(w, ":", 1);
		put_part(w, data, head->lines.fields[i].value);
		put(w, "\r\n", 2);
	}
	put(w, "\r\n", 2);
}

static void
write_again(const struct feed *feed, const char *data)
{
	static struct writer w;
	struct feed free_feed = *feed;
	const struct weft__http_head *a = &whole.head, *b = &other.head;

	if (feed->kind == FEED_CHUNKED || !whole.has_head)
		return;
	w.size = 0;
	write_head(&w, data, feed->kind == FEED_RESPONSE);
	/* The output may be longer, by the space before an empty reason phrase. */
	free_feed.limits.head_max = sizeof(w.text);
	feed_run(&free_feed, w.text, w.size, (struct feed_cut){ .how = FEED_WHOLE }, &other);
	ORACLE(other.has_head, "refused when written again: %s", other.fault.text);
	ORACLE(a->framing == b->framing && a->length == b->length && a->flags == b->flags
	               && a->status == b->status && a->form == b->form
	               && a->lines.count == b->lines.count && a->path.size == b->path.size
	               && a->host.size == b->host.size,
	       "means something else when written again");
}

/* --- rule 3 -------------------------------------------------------------------- */

static void
check_path(const char *data, size_t size)
{
	static char out[1 << 16];
	ssize_t rc = weft__http_path_decode(data, size, out, size + 1);

	if (rc < 0) {
		ORACLE(rc == WEFT_EINVAL, "no room for a path");
		return;
	}
	ORACLE(strlen(out) == (size_t)rc && out[0] == '/', "NUL in a path");
	for (const char *at = out; at; at = strchr(at + 1, '/')) {
		size_t dots = strspn(at + 1, ".");

		ORACLE(dots < 1 || dots > 2 || (at[1 + dots] && at[1 + dots] != '/'),
		       "dots in a path");
	}
}

static void
check_query(const char *data, size_t size)
{
	struct weft__http_query query = { data, size };
	struct weft__http_pair pair;
	char out[256];

	while (weft__http_query_next(&query, &pair)) {
		ORACLE(pair.name >= data && pair.value + pair.value_size <= data + size,
		       "pair outside of its query");
		(void)weft__http_query_decode(pair.value, pair.value_size, out, sizeof(out));
	}
}

static void
check_date(const char *data, size_t size)
{
	char text[WEFT__HTTP_DATE_SIZE];
	int64_t date, again;

	if (weft__http_date_parse(data, size, 1800000000, &date) < 0
	    || weft__http_date_format(date, text) < 0) /* a leap second at the end of year 9999 */
		return;
	ORACLE(weft__http_date_parse(text, strlen(text), 0, &again) == 0 && again == date,
	       "another date when written again");
}

static void
check_value(const char *data, size_t size, uint64_t total)
{
	struct weft__http_range ranges[8];
	int count = weft__http_range_parse(data, size, total, ranges, 8);

	for (int i = 0; i < count; i++)
		ORACLE(ranges[i].size > 0 && ranges[i].first < total
		               && ranges[i].size <= total - ranges[i].first,
		       "range outside of its body");
	ORACLE(!weft__http_etag_match(data, size, "\"a\"", false)
	               || weft__http_etag_match(data, size, "\"a\"", true),
	       "a strong match that is no weak one");
	check_date(data, size);
}

/* -------------------------------------------------------------------------------- */

/* Check the message at the start of the data.  Returns its size if another may follow. */
static size_t
check_message(const struct feed *feed, const char *data, size_t size, unsigned seed)
{
	feed_run(feed, data, size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
	if (size <= SMALL)
		compare(feed, data, size, (struct feed_cut){ FEED_BYTES, 0 });
	if (size > 0)
		compare(feed, data, size, (struct feed_cut){ FEED_TWO, seed % size });
	compare(feed, data, size, (struct feed_cut){ FEED_RANDOM, seed });
	write_again(feed, data);
	if (feed->kind == FEED_REQUEST && whole.head.path.size > 0)
		check_path(data + whole.head.path.at, whole.head.path.size);
	if (whole.rc != WEFT__HTTP_DONE || !(whole.head.flags & WEFT__HTTP_KEEP_ALIVE))
		return 0;
	return whole.used;
}

static void
check_messages(struct feed *feed, const char *data, size_t size, unsigned seed)
{
	for (int i = 0; i < 4 && size > 0; i++) {
		size_t used = check_message(feed, data, size, seed);

		if (used == 0)
			break;
		data += used;
		size -= used;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct feed feed = { .kind = FEED_REQUEST };
	const char *data = (const char *)input + 2;
	int kind;

	if (size < 2 || size > (1 << 15))
		return 0;
	size -= 2;
	kind = toupper(input[0]);
	if (islower(input[0])) {
		feed.limits = (struct weft__http_limits){ 120, 20, 16 };
		feed.room = 3;
	}
	if (kind == 'V') {
		check_value(data, size, input[1]);
		return 0;
	}
	if (kind == 'P') {
		check_path(data, size);
		check_query(data, size);
		return 0;
	}
	if (kind == 'R' || kind == 'H' || kind == 'T')
		feed.kind = FEED_RESPONSE;
	if (kind == 'C')
		feed.kind = FEED_CHUNKED;
	feed.asked = kind == 'H'   ? WEFT__HTTP_REPLY_TO_HEAD
	             : kind == 'T' ? WEFT__HTTP_REPLY_TO_CONNECT
	                           : WEFT__HTTP_REPLY_TO_OTHER;
	check_messages(&feed, data, size, input[1] * 3u);
	return 0;
}
