/* deque.c - a list of texts: a ring buffer of pointers, with two ends. */
#include <assert.h>
#include "deque.h"

#define RING_MIN 4u

struct deque *
deque_new(struct heap *heap)
{
	struct deque *deque = heap_new(heap, sizeof(*deque));

	deque->heap = heap;
	return deque;
}

static size_t
ring_bytes(const struct deque *deque)
{
	return deque->has_ring ? (deque->mask + 1) * sizeof(*deque->ring) : 0;
}

void
deque_free(struct deque *deque)
{
	for (size_t i = 0; i < deque->count; i++)
		text_free(deque->heap, *deque_at(deque, i));
	heap_give(deque->heap, deque->ring, ring_bytes(deque));
	heap_give(deque->heap, deque, sizeof(*deque));
}

static void
set_ring(struct deque *deque, size_t size)
{
	struct text **ring = heap_take(deque->heap, size * sizeof(*ring));

	assert(deque->count <= size);
	for (size_t i = 0; i < deque->count; i++)
		ring[i] = *deque_at(deque, i);
	heap_give(deque->heap, deque->ring, ring_bytes(deque));
	deque->ring = ring;
	deque->mask = size - 1;
	deque->first = 0;
	deque->has_ring = true;
}

/* Moves the elements on the shorter side. */
void
deque_insert(struct deque *deque, size_t index, struct text *text)
{
	assert(index <= deque->count);
	if (!deque->has_ring)
		set_ring(deque, RING_MIN);
	else if (deque->count > deque->mask)
		set_ring(deque, (deque->mask + 1) * 2);
	if (index < deque->count - index) {
		deque->first--;
		for (size_t i = 0; i < index; i++)
			*deque_at(deque, i) = *deque_at(deque, i + 1);
	} else {
		for (size_t i = deque->count; i > index; i--)
			*deque_at(deque, i) = *deque_at(deque, i - 1);
	}
	deque->count++;
	*deque_at(deque, index) = text;
}

static void
shrink(struct deque *deque)
{
	if (deque->mask >= RING_MIN * 2 && deque->count < deque->mask / 8)
		set_ring(deque, (deque->mask + 1) / 2);
}

struct text *
deque_remove(struct deque *deque, size_t index)
{
	struct text *text = *deque_at(deque, index);

	assert(index < deque->count);
	if (index < deque->count - index) {
		for (size_t i = index; i > 0; i--)
			*deque_at(deque, i) = *deque_at(deque, i - 1);
		deque->first++;
	} else {
		for (size_t i = index; i + 1 < deque->count; i++)
			*deque_at(deque, i) = *deque_at(deque, i + 1);
	}
	deque->count--;
	shrink(deque);
	return text;
}

void
deque_trim(struct deque *deque, size_t begin, size_t end)
{
	assert(begin <= end && end <= deque->count);
	for (size_t i = 0; i < deque->count; i++)
		if (i < begin || i >= end)
			text_free(deque->heap, *deque_at(deque, i));
	deque->first += begin;
	deque->count = end - begin;
	shrink(deque);
}
