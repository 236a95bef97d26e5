/* shrink.c - delta debugging of a list of faults.
 *
 * The list is cut into pieces; each piece that is not needed is taken away.
 * When no piece can be, pieces are halved, until they are single faults or the
 * runs are used up.  First of all no faults at all are tried: then the list has
 * nothing to do with it.
 *
 *   1. What is in the list always fails, so stopping early only makes it longer
 *      than it need be.
 */
#include <stdlib.h>
#include <string.h>
#include "sim/run/shrink.h"

/* keys[] without `size` of them from `at` on, in `room`. */
static void
without(const uint64_t *keys, size_t count, size_t at, size_t size, uint64_t *room)
{
	memcpy(room, keys, at * sizeof(*keys));
	memcpy(room + at, keys + at + size, (count - at - size) * sizeof(*keys));
}

/* One pass over all pieces; returns how many keys are left. */
static size_t
pass(const struct sim_shrink *how, uint64_t *keys, size_t count, size_t size, uint64_t *room,
     int *runs)
{
	size_t at = 0;

	while (at < count && *runs < how->runs_max) {
		size_t piece = size < count - at ? size : count - at;

		without(keys, count, at, piece, room);
		++*runs;
		if (how->fails(how->arg, room, count - piece)) {
			count -= piece;
			memcpy(keys, room, count * sizeof(*keys));
		} else {
			at += piece;
		}
	}
	return count;
}

size_t
sim_shrink(const struct sim_shrink *how, uint64_t *keys, size_t count)
{
	uint64_t *room = malloc((count + 1) * sizeof(*room));
	size_t size = (count + 1) / 2;
	int runs = 1;

	if (!room)
		abort();
	if (how->fails(how->arg, keys, 0))
		count = 0;
	while (count > 0 && runs < how->runs_max) {
		size_t before = count;

		count = pass(how, keys, count, size, room, &runs);
		if (size == 1 && count == before)
			break;
		size = size > 1 ? (size + 1) / 2 : 1;
	}
	free(room);
	return count;
}
