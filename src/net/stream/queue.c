/* queue.c - received bytes that were not read yet. */
#include <string.h>
#include <weft/base.h>
#include "net/stream/queue.h"

static struct weft__chunk *
take_chunk(struct weft__chunks *spare, size_t size)
{
	struct weft__chunk *chunk = spare->first;

	if (size <= WEFT__CHUNK_SIZE && chunk) {
		spare->first = chunk->next;
		spare->count--;
	} else {
		size = size < WEFT__CHUNK_SIZE ? WEFT__CHUNK_SIZE : size;
		chunk = weft__sys->alloc(sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		chunk->size = (uint32_t)size;
	}
	chunk->next = NULL;
	chunk->start = chunk->end = 0;
	return chunk;
}

static void
give_chunk(struct weft__chunks *spare, struct weft__chunk *chunk)
{
	if (chunk->size != WEFT__CHUNK_SIZE || spare->count == WEFT__CHUNKS_SPARE) {
		weft__sys->release(chunk);
		return;
	}
	chunk->next = spare->first;
	spare->first = chunk;
	spare->count++;
}

void
weft__chunks_fini(struct weft__chunks *spare)
{
	while (spare->first) {
		struct weft__chunk *chunk = spare->first;

		spare->first = chunk->next;
		weft__sys->release(chunk);
	}
}

static size_t
size_of(const struct weft__chunk *chunk)
{
	return chunk->end - chunk->start;
}

static size_t
room_in(const struct weft__chunk *chunk)
{
	return chunk ? chunk->size - chunk->end : 0;
}

static void
stream_queue_append(struct weft__queue *queue, struct weft__chunk *chunk)
{
	if (queue->last)
		queue->last->next = chunk;
	else
		queue->first = chunk;
	queue->last = chunk;
}

static void
stream_queue_fill(struct weft__chunk *chunk, const char *bytes, size_t size)
{
	memcpy(chunk->data + chunk->end, bytes, size);
	chunk->end += (uint32_t)size;
}

int
weft__queue_add(struct weft__queue *queue, struct weft__chunks *spare, const void *bytes,
                size_t size)
{
	struct weft__chunk *chunk = NULL;
	size_t here = room_in(queue->last);

	here = size < here ? size : here;
	if (size > here) {
		chunk = take_chunk(spare, size - here);
		if (!chunk)
			return WEFT_ENOMEM;
	}
	if (here > 0)
		stream_queue_fill(queue->last, bytes, here);
	if (chunk) {
		stream_queue_fill(chunk, (const char *)bytes + here, size - here);
		stream_queue_append(queue, chunk);
	}
	queue->size += size;
	return 0;
}

/* Drop the first chunk if it is empty. */
static void
drop_empty(struct weft__queue *queue, struct weft__chunks *spare)
{
	struct weft__chunk *chunk = queue->first;

	if (size_of(chunk) > 0)
		return;
	queue->first = chunk->next;
	if (!queue->first)
		queue->last = NULL;
	give_chunk(spare, chunk);
}

size_t
weft__queue_take(struct weft__queue *queue, struct weft__chunks *spare, void *buf, size_t size)
{
	size_t all = size < queue->size ? size : queue->size;
	char *at = buf;

	for (size_t left = all; left > 0;) {
		struct weft__chunk *chunk = queue->first;
		size_t n = size_of(chunk) < left ? size_of(chunk) : left;

		if (at) {
			memcpy(at, chunk->data + chunk->start, n);
			at += n;
		}
		chunk->start += (uint32_t)n;
		left -= n;
		drop_empty(queue, spare);
	}
	queue->size -= all;
	return all;
}

void
weft__queue_skip(struct weft__queue *queue, struct weft__chunks *spare, size_t size)
{
	(void)weft__queue_take(queue, spare, NULL, size);
}

void
weft__queue_clear(struct weft__queue *queue, struct weft__chunks *spare)
{
	weft__queue_skip(queue, spare, queue->size);
}

/* Allocates twice the size, so that growing in small steps does not copy each time. */
bool
weft__queue_join(struct weft__queue *queue, struct weft__chunks *spare, size_t min)
{
	struct weft__chunk *whole;
	size_t size = queue->size;

	if (min == 0 || size_of(queue->first) >= min)
		return true;
	whole = take_chunk(spare, 2 * size);
	if (!whole)
		return false;
	whole->end = (uint32_t)weft__queue_take(queue, spare, whole->data, size);
	stream_queue_append(queue, whole);
	queue->size = size;
	return true;
}

/* Whether `what` is at offset `at` of `chunk`, perhaps continued in the next chunks. */
static bool
is_at(const struct weft__chunk *chunk, size_t at, const char *what, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		while (chunk && at == size_of(chunk)) {
			chunk = chunk->next;
			at = 0;
		}
		if (!chunk || chunk->data[chunk->start + at++] != what[i])
			return false;
	}
	return true;
}

int64_t
weft__queue_find(const struct weft__queue *queue, const char *what, size_t length, size_t from,
                 size_t size)
{
	const struct weft__chunk *chunk = queue->first;
	size_t base = 0;

	for (; chunk && base < size; base += size_of(chunk), chunk = chunk->next) {
		const char *bytes = chunk->data + chunk->start;
		size_t at = from > base ? from - base : 0;

		while (at < size_of(chunk)) {
			const char *found = memchr(bytes + at, what[0], size_of(chunk) - at);

			if (!found)
				break;
			at = (size_t)(found - bytes);
			if (base + at + length > size)
				return -1;
			if (is_at(chunk, at, what, length))
				return (int64_t)(base + at);
			at++;
		}
	}
	return -1;
}
