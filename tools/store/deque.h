/* deque.h - a list of texts: a ring of pointers, open at both ends. */
#ifndef STORE_DEQUE_H
#define STORE_DEQUE_H

#include "text.h"

struct deque {
	struct heap  *heap;
	struct text **ring;
	size_t        mask;  /* of the ring; its size is a power of two */
	size_t        first; /* where the list begins */
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

/* Put a text before `index`, or at the end.  Takes it. */
void deque_insert(struct deque *deque, size_t index, struct text *text);

/* Take the text at `index` out.  Returns it, which is the caller's. */
struct text *deque_remove(struct deque *deque, size_t index);

/* Keep those from `begin` to before `end` only. */
void deque_trim(struct deque *deque, size_t begin, size_t end);

#endif
