/* shrink.c - delta debugging of a list of faults.
 *
 * The list is cut into pieces; each piece that is not needed is removed.  When no piece can be
 * removed, the pieces are halved, until they are single faults or the run limit is reached.
 * The first attempt is the empty list: if it fails, too, the faults are irrelevant.
 *
 *   1. The current list always fails, so stopping early only leaves it longer than necessary.
 */
#include <stdlib.h>
#include <string.h>
#include "sim/run/shrink.h"

/* Copy keys[] to `room`, without the `size` keys that begin at `at`. */
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
