/* queue.h - received bytes that were not read yet.  Private.
 *
 * A list of chunks, so that bytes shown to a caller stay in place while more arrive.  Chunks
 * come from a cache of the loop and return to it when they are empty: an empty queue has none.
 *
 * Needs: base.  Owned by: one stream.  Thread: its loop's.
 */
#ifndef WEFT_NET_QUEUE_H
#define WEFT_NET_QUEUE_H

#include "base/sys.h"

#define WEFT__CHUNK_SIZE   4096u
#define WEFT__CHUNKS_SPARE 64u /* cached by a loop */

struct weft__chunk {
	struct weft__chunk *next;
	uint32_t start, end; /* range of the bytes in `data` */
	uint32_t size;
	char     data[];
};

struct weft__queue {
	struct weft__chunk *first, *last;
	size_t size; /* bytes */
};

/* A loop's cache of unused chunks, each of WEFT__CHUNK_SIZE. */
struct weft__chunks {
	struct weft__chunk *first;
	uint32_t count;
};

/* Append a copy.  Returns 0, or WEFT_ENOMEM with the queue unchanged. */
int weft__queue_add(struct weft__queue *queue, struct weft__chunks *spare,
                    const void *bytes, size_t size);

/* Move up to `size` bytes to `buf`; returns the count.  skip: drop `size` bytes, which must be
 * there. */
size_t weft__queue_take(struct weft__queue *queue, struct weft__chunks *spare,
                        void *buf, size_t size);
void   weft__queue_skip(struct weft__queue *queue, struct weft__chunks *spare,
                        size_t size);

/* Make the first `min` bytes contiguous; they must be there.  False if out of memory. */
bool weft__queue_join(struct weft__queue *queue, struct weft__chunks *spare, size_t min);

/* Search the first `size` bytes for `what`, starting at `from`.  Returns its offset, or -1. */
int64_t weft__queue_find(const struct weft__queue *queue, const char *what,
                         size_t length, size_t from, size_t size);

void weft__queue_clear(struct weft__queue *queue, struct weft__chunks *spare);

/* Free the cached chunks. */
void weft__chunks_fini(struct weft__chunks *spare);

/* The first contiguous piece, and its size. */
static inline size_t
weft__queue_piece(const struct weft__queue *queue, const void **out)
{
	const struct weft__chunk *first = queue->first;

	*out = first ? first->data + first->start : NULL;
	return first ? first->end - first->start : 0;
}

#endif
