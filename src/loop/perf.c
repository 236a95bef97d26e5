/* perf.c - a timeline with marks and measures.
 *
 * Entries are in the order of their start, and entries with the same start in the order in
 * which they were made: a mark is simply the last, a measure is inserted.  There are at most
 * `max` entries; a new one replaces the oldest.
 */
#include <string.h>
#include <weft/schedule.h>
#include "base/thread.h"

#define MAX_DEFAULT 1000u
#define ROOM_FIRST  16u

struct weft_perf {
	uint64_t began_ns;  /* on the monotonic clock, */
	uint64_t origin_ns; /* and the same moment since 1970 */
	size_t max, count, room;
	weft_perf_entry *entries; /* their names are owned */
};

weft_perf *
weft_perf_new(size_t max)
{
	weft_perf *perf = weft__alloc_zero(sizeof(*perf));

	if (!perf) {
		(void)weft__fail(WEFT_ENOMEM, "weft_perf_new: out of memory");
		return NULL;
	}
	perf->max = max > 0 ? max : MAX_DEFAULT;
	perf->began_ns = weft__sys->now();
	perf->origin_ns = weft__sys->date();
	return perf;
}

static void
remove_entry(weft_perf *perf, size_t index)
{
	weft_perf_entry *entry = &perf->entries[index];

	weft__sys->release((void *)(uintptr_t)entry->name);
	perf->count--;
	memmove(entry, entry + 1, (perf->count - index) * sizeof(*entry));
}

void
weft_perf_clear(weft_perf *perf, const char *name)
{
	size_t kept = 0;

	if (!perf)
		return;
	for (size_t i = 0; i < perf->count; i++) {
		weft_perf_entry entry = perf->entries[i];

		if (name && strcmp(entry.name, name) != 0)
			perf->entries[kept++] = entry;
		else
			weft__sys->release((void *)(uintptr_t)entry.name);
	}
	perf->count = kept;
}

void
weft_perf_free(weft_perf *perf)
{
	if (!perf)
		return;
	weft_perf_clear(perf, NULL);
	weft__sys->release(perf->entries);
	weft__sys->release(perf);
}

uint64_t
weft_perf_now(const weft_perf *perf)
{
	return perf ? weft__sys->now() - perf->began_ns : 0;
}

uint64_t
weft_perf_origin(const weft_perf *perf)
{
	return perf ? perf->origin_ns : 0;
}

/* Make room for one more.  0, WEFT_ENOMEM. */
static int
loop_perf_make_room(weft_perf *perf)
{
	size_t room = perf->room ? 2 * perf->room : ROOM_FIRST;
	weft_perf_entry *entries;

	if (perf->count == perf->max)
		remove_entry(perf, 0);
	if (perf->count < perf->room)
		return 0;
	if (room > perf->max)
		room = perf->max;
	entries = weft__sys->resize(perf->entries, room * sizeof(*entries));
	if (!entries)
		return WEFT_ENOMEM;
	perf->entries = entries;
	perf->room = room;
	return 0;
}

static int
loop_perf_add(weft_perf *perf, const char *name, weft_perf_entry entry)
{
	size_t size = strlen(name) + 1, index;
	char *copy = weft__sys->alloc(size);

	if (!copy || loop_perf_make_room(perf) < 0) {
		weft__sys->release(copy);
		return weft__fail(WEFT_ENOMEM, "weft_perf: out of memory");
	}
	memcpy(copy, name, size);
	entry.name = copy;
	for (index = perf->count; index > 0; index--)
		if (perf->entries[index - 1].start_ns <= entry.start_ns)
			break;
	memmove(&perf->entries[index + 1], &perf->entries[index],
	        (perf->count - index) * sizeof(entry));
	perf->entries[index] = entry;
	perf->count++;
	return 0;
}

int
weft_perf_mark(weft_perf *perf, const char *name)
{
	weft_perf_entry entry = { .start_ns = weft_perf_now(perf) };

	if (!perf || !name)
		return weft__misuse(WEFT_EINVAL, "weft_perf_mark: perf or name is NULL");
	return loop_perf_add(perf, name, entry);
}

/* When the latest mark of that name was made.  0, WEFT_ENOENT. */
static int
find_mark(const weft_perf *perf, const char *name, uint64_t *out)
{
	for (size_t i = perf->count; i > 0; i--) {
		const weft_perf_entry *entry = &perf->entries[i - 1];

		if (!entry->is_measure && strcmp(entry->name, name) == 0) {
			*out = entry->start_ns;
			return 0;
		}
	}
	return weft_fail(WEFT_ENOENT, "weft_perf_measure: there is no mark named %s", name);
}

int
weft_perf_measure(weft_perf *perf, const char *name, const char *from, const char *to)
{
	weft_perf_entry entry = { .is_measure = true };
	uint64_t end_ns = weft_perf_now(perf);
	int rc = 0;

	if (!perf || !name)
		return weft__misuse(WEFT_EINVAL, "weft_perf_measure: perf or name is NULL");
	if (from)
		rc = find_mark(perf, from, &entry.start_ns);
	if (rc == 0 && to)
		rc = find_mark(perf, to, &end_ns);
	if (rc < 0)
		return rc;
	if (end_ns > entry.start_ns) /* marks may be in reverse order */
		entry.duration_ns = end_ns - entry.start_ns;
	return loop_perf_add(perf, name, entry);
}

int
weft_perf_get(const weft_perf *perf, size_t index, weft_perf_entry *out)
{
	if (!perf || !out)
		return weft__misuse(WEFT_EINVAL, "weft_perf_get: perf or out is NULL");
	if (index >= perf->count)
		return WEFT_ENOENT;
	*out = perf->entries[index];
	return 0;
}
