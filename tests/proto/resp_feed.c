/* resp_feed.c - parse a reply in pieces, and write a parsed reply. */
#include <stdio.h>
#include <stdlib.h>
#include "proto/resp_feed.h"

static const struct weft__resp_limits loose = { 1 << 26, WEFT__RESP_DEPTH, 1 << 24 };

void
resp_add(struct resp_text *text, const void *data, size_t size)
{
	if (size > text->room - text->size) {
		text->room = (text->size + size) * 2;
		text->data = realloc(text->data, text->room);
		if (!text->data)
			abort();
	}
	if (size > 0)
		memcpy(text->data + text->size, data, size);
	text->size += size;
}

void
resp_addf(struct resp_text *text, const char *format, ...)
{
	char line[512];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (size < 0 || (size_t)size >= sizeof(line))
		abort();
	resp_add(text, line, (size_t)size);
}

/* --- writing ---------------------------------------------------------------- */

static void
write_bytes(struct resp_text *out, char type, const weft_redis_reply *reply)
{
	weft_span bytes;

	if (weft_redis_text(reply, &bytes) != 0 || ((const char *)bytes.data)[bytes.size] != '\0')
		abort();
	resp_addf(out, "%c%zu\r\n", type, bytes.size);
	resp_add(out, bytes.data, bytes.size);
	resp_add(out, "\r\n", 2);
}

static void
write_items(struct resp_text *out, char type, const weft_redis_reply *reply)
{
	size_t count = weft_redis_count(reply);

	resp_addf(out, "%c%zu\r\n", type, type == '%' ? count / 2 : count);
	for (size_t i = 0; i < count; i++)
		resp_write(out, weft_redis_item(reply, i));
	if (weft_redis_item(reply, count))
		abort();
}

void
resp_write(struct resp_text *out, const weft_redis_reply *reply)
{
	int64_t integer = 0;

	(void)weft_redis_integer(reply, &integer);
	switch (weft_redis_reply_type(reply)) {
	case WEFT_REDIS_NIL:
		resp_addf(out, "_\r\n");
		break;
	case WEFT_REDIS_TEXT:
		write_bytes(out, '$', reply);
		break;
	case WEFT_REDIS_INTEGER:
		resp_addf(out, ":%lld\r\n", (long long)integer);
		break;
	case WEFT_REDIS_NUMBER:
		if (reply->as.data[reply->size] != '\0')
			abort();
		resp_add(out, ",", 1);
		resp_add(out, reply->as.data, reply->size);
		resp_add(out, "\r\n", 2);
		break;
	case WEFT_REDIS_BOOL:
		resp_addf(out, "#%c\r\n", integer ? 't' : 'f');
		break;
	case WEFT_REDIS_ERROR:
		write_bytes(out, '!', reply);
		break;
	case WEFT_REDIS_LIST:
		write_items(out, '*', reply);
		break;
	case WEFT_REDIS_MAP:
		write_items(out, '%', reply);
		break;
	case WEFT_REDIS_SET:
		write_items(out, '~', reply);
		break;
	case WEFT_REDIS_PUSH:
		write_items(out, '>', reply);
		break;
	default:
		abort();
	}
}

/* --- parsing ------------------------------------------------------------------ */

static char *
copy_of(const char *data, size_t size)
{
	char *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	return copy;
}

static uint64_t
draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *state >> 33;
}

/* How much has arrived after the next piece. */
static size_t
next_size(struct resp_cut *cut, size_t now, size_t size)
{
	if (cut->how == RESP_BYTES)
		return now + 1;
	if (cut->how == RESP_TWO && now < cut->number && cut->number < size)
		return cut->number;
	if (cut->how == RESP_RANDOM) {
		size_t next = now + 1 + draw(&cut->number) % 20;

		return next < size ? next : size;
	}
	return size;
}

static weft_redis_reply *
build(const struct weft__resp_scan *scan, const char *data, size_t size, bool taking)
{
	weft_redis_reply *reply = NULL;
	char *copy;

	if (!taking) {
		copy = copy_of(data, size);
		if (weft__resp_build(scan, copy, size, &reply) < 0)
			abort();
		free(copy); /* before the reply is accessed */
		return reply;
	}
	copy = weft_alloc(size);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (weft__resp_build_taking(scan, copy, size, &reply) < 0)
		abort();
	return reply;
}

void
resp_feed(const struct weft__resp_limits *limits, const char *data, size_t size,
          struct resp_cut cut, struct resp_outcome *out)
{
	struct weft__resp_scan scan;
	weft_redis_reply *reply;
	size_t now = 0;

	memset(&scan, 0xa5, sizeof(scan)); /* the parser must not depend on zeroed memory */
	weft__resp_restart(&scan);
	memset(out, 0, sizeof(*out));
	while (out->rc == 0 && now < size) {
		char *copy;

		now = next_size(&cut, now, size);
		copy = copy_of(data, now);
		out->rc = weft__resp_scan(&scan, limits, copy, now);
		free(copy);
	}
	if (out->rc < 0)
		resp_addf(&out->text, "%s", weft_detail());
	if (out->rc <= 0)
		return;
	reply = build(&scan, data, (size_t)out->rc, cut.how == RESP_BYTES);
	resp_write(&out->text, reply);
	if (weft__resp_bytes(reply) == 0)
		abort();
	weft_redis_reply_free(reply);
}

void
resp_outcome_drop(struct resp_outcome *outcome)
{
	free(outcome->text.data);
}

bool
resp_same(const struct resp_outcome *a, const struct resp_outcome *b)
{
	return a->rc == b->rc && a->text.size == b->text.size
	       && (a->text.size == 0 || memcmp(a->text.data, b->text.data, a->text.size) == 0);
}

weft_redis_reply *
resp_read(const char *data, size_t size, bool taking)
{
	struct weft__resp_scan scan = { 0 };

	if (weft__resp_scan(&scan, &loose, data, size) != (ssize_t)size)
		return NULL;
	return build(&scan, data, size, taking);
}
