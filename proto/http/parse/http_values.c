/* http_values.c - parse ranges and entity tags. */
#include "http/parse/http_values.h"
#include "http/parse/parse_inner.h"

/* --- ranges ----------------------------------------------------------------- */

/* Parse one "first-last", "first-" or "-count".  Returns 1, or 0 if it does not overlap the
 * body; WEFT_EINVAL if it is malformed. */
static int
range_one(struct text spec, uint64_t total, struct weft__http_range *out)
{
	const char *dash = memchr(spec.data, '-', spec.size);
	struct text left, right;
	uint64_t first, last;

	if (!dash)
		return WEFT_EINVAL;
	left = (struct text){ spec.data, (size_t)(dash - spec.data) };
	right = (struct text){ dash + 1, spec.size - left.size - 1 };
	if (left.size == 0) { /* the last bytes */
		if (!weft__http_decimal(right, &last))
			return WEFT_EINVAL;
		last = last < total ? last : total;
		*out = (struct weft__http_range){ total - last, last };
		return last > 0;
	}
	last = UINT64_MAX;
	if (!weft__http_decimal(left, &first)
	    || (right.size > 0 && !weft__http_decimal(right, &last)) || last < first)
		return WEFT_EINVAL;
	if (first >= total)
		return 0;
	last = last < total ? last : total - 1;
	*out = (struct weft__http_range){ first, last - first + 1 };
	return 1;
}

/* Parse a list of ranges.  Returns the count of those that overlap the body, or an error. */
static int
range_list(struct text list, uint64_t total, struct weft__http_range *out, int room)
{
	uint64_t sum = 0;
	struct text spec;
	int count = 0;

	while (weft__http_list_next(&list, &spec)) {
		struct weft__http_range range;
		int rc = spec.size == 0 ? 0 : range_one(spec, total, &range);

		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (count == room || range.size > total - sum)
			return WEFT_EMSGSIZE;
		sum += range.size;
		out[count++] = range;
	}
	return count;
}

int
weft__http_range_parse(const char *value, size_t size, uint64_t total, struct weft__http_range *out,
                       int room)
{
	struct text list = { value, size };
	int rc;

	if (size < 7 || !weft__http_same((struct text){ value, 6 }, "bytes="))
		return 0;
	list.data += 6;
	list.size -= 6;
	rc = range_list(list, total, out, room);
	if (rc == WEFT_EINVAL)
		return 0;
	if (rc == 0)
		return weft_fail(WEFT_ENOENT, "weft_http_*: no requested range overlaps the body");
	return rc == WEFT_EMSGSIZE
	               ? weft_fail(rc, "weft_http_*: the Range header has too many ranges")
	               : rc;
}

/* --- entity tags ------------------------------------------------------------- */

/* Remove "W/" from the front. */
static bool
strip_weak(struct text *tag)
{
	if (tag->size < 2 || tag->data[0] != 'W' || tag->data[1] != '/')
		return false;
	tag->data += 2;
	tag->size -= 2;
	return true;
}

/* The size of the tag at the front of a list; 0 if it is malformed.  A backslash has no special
 * meaning. */
static size_t
tag_size(struct text list)
{
	size_t open = list.size > 2 && list.data[0] == 'W' ? 2 : 0;
	const char *close;

	if (list.size < open + 2 || list.data[open] != '"')
		return 0;
	close = memchr(list.data + open + 1, '"', list.size - open - 1);
	return close ? (size_t)(close - list.data) + 1 : 0;
}

/* Skip commas and white space between tags. */
static void
skip_between(struct text *list)
{
	while (list->size > 0 && (*list->data == ',' || is_blank(*list->data))) {
		list->data++;
		list->size--;
	}
}

bool
weft__http_etag_match(const char *value, size_t size, const char *etag, bool weak)
{
	struct text list = { value, size }, own = { etag, strlen(etag) };
	bool own_weak = strip_weak(&own), found = false;

	if (size == 1 && *value == '*')
		return true;
	for (skip_between(&list); list.size > 0; skip_between(&list)) {
		struct text tag = { list.data, tag_size(list) };
		bool tag_weak;

		list.data += tag.size;
		list.size -= tag.size;
		if (tag.size == 0 || (list.size > 0 && *list.data != ',' && !is_blank(*list.data)))
			return false;
		tag_weak = strip_weak(&tag);
		if (text_equal(tag, own) && (weak || (!tag_weak && !own_weak)))
			found = true;
	}
	return found;
}
