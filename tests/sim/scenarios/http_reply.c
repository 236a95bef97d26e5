/* http_reply.c - a strict parser of replies: accepts only what the server may send. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "sim/scenarios/http_reply.h"

static bool
is_name(const char *line, const char *name, const char **value)
{
	size_t size = strlen(name);

	if (strncmp(line, name, size) != 0)
		return false;
	*value = line + size;
	return true;
}

/* "Mon, 01 Jan 2024 00:00:00 GMT" */
static void
check_date(const char *value, const char *end)
{
	if (end - value != 29 || memcmp(end - 4, " GMT", 4) != 0)
		sim_fail("a reply of the date %.*s", (int)(end - value), value);
}

static void
read_field(const char *line, const char *end, struct http_reply *out)
{
	const char *value;

	if (!memchr(line, ':', (size_t)(end - line)))
		sim_fail("a reply with the line %.*s", (int)(end - line), line);
	if (is_name(line, "Content-Length: ", &value)) {
		if (out->has_length || out->chunked)
			sim_fail("a reply of two lengths");
		out->has_length = true;
		out->length = strtoul(value, NULL, 10);
	} else if (is_name(line, "Transfer-Encoding: chunked\r", &value)) {
		if (out->has_length || out->chunked)
			sim_fail("a reply of two lengths");
		out->chunked = true;
	} else if (is_name(line, "Connection: close\r", &value)) {
		out->close = true;
	} else if (is_name(line, "X-Id: ", &value)) {
		out->id = (uint32_t)strtoul(value, NULL, 10);
	} else if (is_name(line, "Date: ", &value)) {
		check_date(value, end);
	}
}

/* The end of the line at `at`; NULL if the line is incomplete. */
static const char *
line_end(const char *at, const char *end)
{
	return memmem(at, (size_t)(end - at), "\r\n", 2);
}

static bool
read_head(const char *data, size_t size, struct http_reply *out)
{
	static const char begin[] = "HTTP/1.1 ";
	size_t known = size < sizeof(begin) - 1 ? size : sizeof(begin) - 1;
	const char *end = memmem(data, size, "\r\n\r\n", 4), *at, *next;

	if (memcmp(data, begin, known) != 0)
		sim_fail("not a reply: %.*s", (int)(size < 40 ? size : 40), data);
	if (!end)
		return false;
	out->status = (int)strtol(data + 9, NULL, 10);
	if (out->status < 100 || out->status > 599 || data[12] != ' ')
		sim_fail("a reply of status %.*s", 4, data + 9);
	at = line_end(data, end + 2) + 2;
	for (; at < end; at = next + 2) {
		next = line_end(at, end + 2);
		read_field(at, next, out);
	}
	out->head_used = out->used = (size_t)(end - data) + 4;
	return true;
}

static void
add_body(struct http_reply *out, const char *data, size_t size)
{
	if (size > HTTP_BODY_MAX - out->size)
		sim_fail("redis: the reply is too long");
	memcpy(out->body + out->size, data, size);
	out->size += size;
}

/* Trailers, and the empty line. */
static bool
read_trailers(const char *at, const char *end, const char *data, struct http_reply *out)
{
	const char *next;

	while ((next = line_end(at, end)) != NULL && next != at)
		at = next + 2;
	if (!next)
		return false;
	out->used = (size_t)(next + 2 - data);
	return true;
}

static bool
read_chunks(const char *data, size_t size, struct http_reply *out)
{
	const char *at = data + out->used, *end = data + size;

	for (;;) {
		const char *line = line_end(at, end);
		char *after;
		size_t chunk;

		if (!line)
			return false;
		chunk = strtoul(at, &after, 16);
		if (after != line || after == at)
			sim_fail("not a chunk: %.*s", (int)(line - at), at);
		at = line + 2;
		if (chunk == 0)
			return read_trailers(at, end, data, out);
		if ((size_t)(end - at) < chunk + 2)
			return false;
		if (memcmp(at + chunk, "\r\n", 2) != 0)
			sim_fail("a chunk that does not end");
		add_body(out, at, chunk);
		at += chunk + 2;
	}
}

bool
http_reply_read(const char *data, size_t size, enum http_body body, bool ended,
                struct http_reply *out)
{
	out->status = 0;
	out->close = out->chunked = out->has_length = false;
	out->length = out->size = out->used = out->head_used = 0;
	out->id = UINT32_MAX;
	if (size == 0 || !read_head(data, size, out))
		return false;
	if (body == HTTP_BODY_NONE || out->status < 200 || out->status == 204 || out->status == 304)
		return true;
	if (out->chunked)
		return read_chunks(data, size, out);
	if (!out->has_length && !ended)
		return false;
	if (!out->has_length)
		out->length = size - out->used;
	if (size - out->used < out->length)
		return false;
	add_body(out, data + out->used, out->length);
	out->used += out->length;
	return true;
}
