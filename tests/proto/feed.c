/* feed.c - pass one HTTP message to the parser in pieces. */
#include "proto/feed.h"
#include <stdlib.h>
#include <string.h>

struct source {
	const char *data;
	size_t size, arrived;
	struct feed_cut cut;
	char *copy; /* what the parser was given last */
};

static uint64_t
draw(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* The next piece arrives.  False if none is left. */
static bool
arrive(struct source *s)
{
	size_t left = s->size - s->arrived;
	size_t piece = left;

	if (left == 0)
		return false;
	if (s->cut.how == FEED_BYTES)
		piece = 1;
	else if (s->cut.how == FEED_TWO && s->arrived < s->cut.number)
		piece = (size_t)s->cut.number - s->arrived;
	else if (s->cut.how == FEED_RANDOM)
		piece = 1 + draw(&s->cut.number) % (left < 40 ? left : 40);
	s->arrived += piece < left ? piece : left;
	return true;
}

/* A copy of the bytes that have arrived from `from` on, in its own allocation. */
static const char *
show(struct source *s, size_t from)
{
	size_t size = s->arrived - from;
	char *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, s->data + from, size);
	free(s->copy);
	s->copy = copy;
	return copy;
}

static int
feed_head(const struct feed *feed, struct source *s, struct outcome *out)
{
	uint32_t room = feed->room ? feed->room : WEFT__HTTP_FIELDS_MAX;
	int rc;

	if (feed->kind == FEED_RESPONSE)
		weft__http_response_init(&out->head, out->fields, room, &feed->limits, feed->asked);
	else
		weft__http_request_init(&out->head, out->fields, room, &feed->limits);
	while (arrive(s)) {
		rc = weft__http_head_parse(&out->head, show(s, 0), s->arrived);
		if (rc != WEFT__HTTP_MORE)
			return rc;
	}
	return WEFT__HTTP_MORE;
}

/* A parsed header section that announces a chunked body. */
static void
assume_chunked(const struct feed *feed, struct outcome *out)
{
	static const char text[] = "POST / HTTP/1.1\r\nHost: x\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";

	weft__http_request_init(&out->head, out->fields, WEFT__HTTP_FIELDS_MAX, &feed->limits);
	if (weft__http_head_parse(&out->head, text, sizeof(text) - 1) != WEFT__HTTP_DONE)
		abort();
}

static void
add_body(struct outcome *out, const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		out->body_hash = (out->body_hash ^ (unsigned char)data[i])
		                 * UINT64_C(0x100000001b3);
	out->body_size += size;
}

static int
feed_body(const struct feed *feed, struct source *s, struct outcome *out)
{
	uint32_t room = feed->room ? feed->room : WEFT__HTTP_FIELDS_MAX;
	struct weft__http_step step;
	const char *data;
	int rc;

	weft__http_body_init(&out->body, &out->head, out->trailers, room);
	for (;;) {
		data = show(s, out->used);
		rc = weft__http_body_next(&out->body, data, s->arrived - out->used, &step);
		if (rc < 0)
			break;
		if (step.used > s->arrived - out->used || step.at + step.size > step.used)
			abort();
		if (rc == WEFT__HTTP_DATA)
			add_body(out, data + step.at, step.size);
		if (rc == WEFT__HTTP_DONE)
			out->trailers_at = out->used + step.at;
		out->used += step.used;
		if (rc == WEFT__HTTP_DONE || (rc == WEFT__HTTP_MORE && !arrive(s)))
			break;
	}
	out->fault = out->body.fault;
	out->close_rc = weft__http_body_close(&out->body);
	return rc;
}

void
feed_run(const struct feed *feed, const char *data, size_t size, struct feed_cut cut,
         struct outcome *out)
{
	struct source s = { .data = data, .size = size, .cut = cut };

	memset(out, 0, sizeof(*out));
	if (feed->kind == FEED_CHUNKED) {
		assume_chunked(feed, out);
		out->rc = WEFT__HTTP_DONE;
	} else {
		out->rc = feed_head(feed, &s, out);
		out->fault = out->head.fault;
		out->used = out->head.size;
	}
	if (out->rc == WEFT__HTTP_DONE) {
		out->has_head = true;
		out->rc = feed_body(feed, &s, out);
	}
	free(s.copy);
}

/* --- comparison -------------------------------------------------------------- */

static bool
same_lines(const struct weft__http_lines *a, const struct weft__http_lines *b)
{
	return a->count == b->count
	       && (a->count == 0
	           || memcmp(a->fields, b->fields, a->count * sizeof(a->fields[0])) == 0);
}

static bool
same_part(struct weft__http_part a, struct weft__http_part b)
{
	return a.at == b.at && a.size == b.size;
}

static const char *
head_difference(const struct weft__http_head *a, const struct weft__http_head *b)
{
	if (!same_part(a->method, b->method) || !same_part(a->target, b->target)
	    || !same_part(a->path, b->path) || !same_part(a->query, b->query))
		return "request line";
	if (!same_part(a->host, b->host) || !same_part(a->upgrade, b->upgrade))
		return "host or upgrade";
	if (!same_part(a->reason, b->reason) || a->status != b->status)
		return "status line";
	if (!same_lines(&a->lines, &b->lines))
		return "fields";
	if (a->size != b->size || a->minor != b->minor || a->form != b->form
	    || a->flags != b->flags)
		return "size, version, form or flags";
	if (a->framing != b->framing || a->length != b->length)
		return "framing";
	return NULL;
}

const char *
feed_difference(const struct outcome *a, const struct outcome *b)
{
	if (a->rc != b->rc)
		return "result";
	if (a->fault.status != b->fault.status
	    || (a->fault.status && strcmp(a->fault.text, b->fault.text) != 0))
		return "fault";
	if (a->has_head != b->has_head)
		return "completeness of the head";
	if (a->body_size != b->body_size || a->body_hash != b->body_hash)
		return "body";
	if (a->rc >= 0 && (a->used != b->used || a->trailers_at != b->trailers_at))
		return "end of the message";
	if (a->has_head && a->close_rc != b->close_rc)
		return "meaning of the end of input";
	if (!same_lines(&a->body.trailers, &b->body.trailers))
		return "trailers";
	return head_difference(&a->head, &b->head);
}
