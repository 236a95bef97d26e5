/* queue.h - bytes that have arrived and were not read.  Private.
 *
 * A list of chunks, so that what was shown stays where it is while more arrives.  Chunks
 * come from a cache of the loop and go back when they are empty: a queue without bytes
 * has none.
 *
 * Needs: base.  Owned by: one stream.  Thread: its loop's.
 */
#ifndef WEFT_NET_QUEUE_H
#define WEFT_NET_QUEUE_H

#include "base/sys.h"

#define WEFT__CHUNK_SIZE   4096u
#define WEFT__CHUNKS_SPARE 64u /* kept by a loop */

struct weft__chunk {
	struct weft__chunk *next;
	uint32_t start, end; /* of the bytes in it */
	uint32_t size;
	char     data[];
};

struct weft__queue {
	struct weft__chunk *first, *last;
	size_t size; /* bytes */
};

/* Chunks of the usual size that nobody uses. */
struct weft__chunks {
	struct weft__chunk *first;
	uint32_t count;
};

/* Append a copy.  0, or WEFT_ENOMEM and nothing has changed. */
int weft__queue_add(struct weft__queue *queue, struct weft__chunks *spare,
                    const void *bytes, size_t size);

/* Take up to `size` bytes out, and at most `size`, which are there. */
size_t weft__queue_take(struct weft__queue *queue, struct weft__chunks *spare,
                        void *buf, size_t size);
void   weft__queue_skip(struct weft__queue *queue, struct weft__chunks *spare,
                        size_t size);

/* Have the first `min` bytes, which are there, in one piece: true, or false without
 * memory for that. */
bool weft__queue_join(struct weft__queue *queue, struct weft__chunks *spare, size_t min);

/* Where `what` begins in the first `size` bytes, looked for from `from`; or -1. */
int64_t weft__queue_find(const struct weft__queue *queue, const char *what,
                         size_t length, size_t from, size_t size);

void weft__queue_clear(struct weft__queue *queue, struct weft__chunks *spare);

/* Free what is kept; returns the bytes. */
size_t weft__chunks_trim(struct weft__chunks *spare);

/* The first piece: what it is and how long. */
static inline size_t
weft__queue_piece(const struct weft__queue *queue, const void **out)
{
	const struct weft__chunk *first = queue->first;

	*out = first ? first->data + first->start : NULL;
	return first ? first->end - first->start : 0;
}

#endif
