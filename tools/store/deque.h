/* deque.h - a list of texts: a ring buffer of pointers, with two ends. */
#ifndef STORE_DEQUE_H
#define STORE_DEQUE_H

#include "text.h"

struct deque {
	struct heap  *heap;
	struct text **ring;
	size_t        mask;  /* size of the ring - 1; the size is a power of two */
	size_t        first; /* position of the first element */
	size_t        count;
	bool          has_ring;
};

struct deque *deque_new(struct heap *heap);
void          deque_free(struct deque *deque);

/* The text at `index`, which is below count. */
static inline struct text **
deque_at(const struct deque *deque, size_t index)
{
	return &deque->ring[(deque->first + index) & deque->mask];
}

/* Insert a text before `index`, or at the end.  Takes ownership of it. */
void deque_insert(struct deque *deque, size_t index, struct text *text);

/* Remove the text at `index` and return it; the caller owns it. */
struct text *deque_remove(struct deque *deque, size_t index);

/* Keep only the elements from `begin` to `end`, exclusive. */
void deque_trim(struct deque *deque, size_t begin, size_t end);

#endif
