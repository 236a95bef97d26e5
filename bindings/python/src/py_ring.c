/* py_ring.c - the queue of items that a loop is to call.
 *
 *   1. head and tail only grow; item i is ring[i & (ring_size - 1)].
 *   2. ring_size >= count + reserved: a timer that is due always finds a slot.
 *   3. All threads push with the GIL held.  A thread that does not run the loop wakes it after
 *      the push; weft combines the wakes of a burst into one.
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

void
weftpy_ring_clear(struct loop_core *core)
{
	while (weftpy_ring_count(core) > 0)
		Py_DECREF(weftpy_ring_pop(core));
}
