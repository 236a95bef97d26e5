/* query.c - parameters: from the pattern, then from the query.
 *
 * The query is decoded when a parameter is first requested, into "name NUL value NUL" and so
 * on.  A pair that cannot be decoded is skipped.
 */
#include "http/message/exchange.h"
#include "http/parse/uri.h"

/* Decode one pair to `at`.  Returns where the next one goes, or NULL if it cannot be decoded. */
static char *
decode_pair(const struct weft__http_pair *pair, char *at, const char *end)
{
	ssize_t n = weft__http_query_decode(pair->name, pair->name_size, at, (size_t)(end - at));

	if (n < 0)
		return NULL;
	at += n + 1;
	n = weft__http_query_decode(pair->value, pair->value_size, at, (size_t)(end - at));
	return n < 0 ? NULL : at + n + 1;
}

static bool
decode_query(weft_http *http)
{
	struct weft__http_in *in = &http->in;
	struct text text = part_text(in->text, in->head.query);
	struct weft__http_query query = { text.data, text.size };
	struct weft__http_pair pair;
	size_t room = 2 * text.size + 2; /* "a&" becomes "a", NUL, NUL */
	char *at, *next;

	if (in->query)
		return true;
	in->query = at = weft__http_arena_take(&http->arena, room);
	if (!at)
		return false;
	while (weft__http_query_next(&query, &pair)) {
		next = decode_pair(&pair, at, in->query + room);
		at = next ? next : at;
	}
	in->query_size = (size_t)(at - in->query);
	return true;
}

static const char *
of_query(weft_http *http, const char *name)
{
	const char *at, *end;

	if (http->in.head.query.size == 0 || !decode_query(http))
		return NULL;
	end = http->in.query + http->in.query_size;
	for (at = http->in.query; at < end;) {
		const char *value = at + strlen(at) + 1;

		if (strcmp(at, name) == 0)
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

const char *
weft_http_param(weft_http *http, const char *name)
{
	if (!http || !name || !http->in.text || http->in.head.is_response)
		return NULL;
	for (uint32_t i = 0; i < http->param_count; i++) {
		struct weft__http_param *param = &http->params[i];

		if (strcmp(param->name, name) != 0)
			continue;
		if (!param->text)
			param->text = weft__http_arena_copy(&http->arena, param->value,
			                                    param->size);
		return param->text;
	}
	return of_query(http, name);
}
