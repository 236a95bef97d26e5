/* ring.c - the queue of items that a loop is to call, and the inbox for other threads.
 *
 *   1. head and tail only grow; item i is ring[i & (ring_size - 1)].
 *   2. ring_size >= count + reserved: a timer that is due always finds a slot.
 *   3. The inbox is protected by its lock alone.  Its count may be read without the lock, as a
 *      hint: a thread that pushes wakes the loop afterwards, and the loop checks before it
 *      waits.
 */
#include "core.h"

#define RING_FIRST 64

/* Makes room for `places` items in addition to those queued and reserved. */
int
weftpy_ring_reserve(struct loop_core *core, size_t places)
{
	size_t count = weftpy_ring_count(core);
	size_t need = count + core->reserved + places;
	size_t size = core->ring_size ? core->ring_size : RING_FIRST;
	PyObject **ring;

	if (need <= core->ring_size)
		return 0;
	while (size < need)
		size *= 2;
	ring = PyMem_Malloc(size * sizeof *ring);
	if (!ring) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < count; i++)
		ring[i] = core->ring[(core->head + i) & (core->ring_size - 1)];
	PyMem_Free(core->ring);
	core->ring = ring;
	core->ring_size = size;
	core->head = 0;
	core->tail = count;
	return 0;
}

static inline void
py_ring_put(struct loop_core *core, PyObject *item)
{
	core->ring[core->tail++ & (core->ring_size - 1)] = item;
}

int
weftpy_ring_push(struct loop_core *core, PyObject *item)
{
	if (weftpy_ring_count(core) + core->reserved >= core->ring_size
	    && weftpy_ring_reserve(core, 1) < 0)
		return -1;
	py_ring_put(core, Py_NewRef(item));
	return 0;
}

/* Uses up one reserved slot. */
void
weftpy_ring_push_reserved(struct loop_core *core, PyObject *item)
{
	assert(core->reserved > 0);
	core->reserved--;
	py_ring_put(core, item);
}

PyObject *
weftpy_ring_pop(struct loop_core *core)
{
	return core->ring[core->head++ & (core->ring_size - 1)];
}

int
weftpy_inbox_push(struct loop_core *core, PyObject *item)
{
	struct inbox *inbox = &core->inbox;
	int rc = 0;

	pthread_mutex_lock(&inbox->lock);
	if (inbox->count == inbox->size) {
		size_t size = inbox->size ? inbox->size * 2 : RING_FIRST;
		PyObject **items = PyMem_RawRealloc(inbox->items, size * sizeof *items);

		if (items) {
			inbox->items = items;
			inbox->size = size;
		} else {
			rc = -1;
		}
	}
	if (rc == 0) {
		inbox->items[inbox->count] = Py_NewRef(item);
		__atomic_store_n(&inbox->count, inbox->count + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&inbox->lock);
	if (rc < 0)
		PyErr_NoMemory();
	return rc;
}

int
weftpy_inbox_take(struct loop_core *core)
{
	struct inbox *inbox = &core->inbox;
	int rc;

	if (__atomic_load_n(&inbox->count, __ATOMIC_ACQUIRE) == 0)
		return 0;
	pthread_mutex_lock(&inbox->lock);
	rc = weftpy_ring_reserve(core, inbox->count);
	for (size_t i = 0; rc == 0 && i < inbox->count; i++)
		py_ring_put(core, inbox->items[i]);
	if (rc == 0)
		__atomic_store_n(&inbox->count, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&inbox->lock);
	return rc;
}

void
weftpy_ring_clear(struct loop_core *core)
{
	while (weftpy_ring_count(core) > 0)
		Py_DECREF(weftpy_ring_pop(core));
	while (core->inbox.count > 0)
		Py_DECREF(core->inbox.items[--core->inbox.count]);
}
