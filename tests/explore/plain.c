/* plain.c - plain memory: finds two accesses that race, in any schedule.
 *
 * weft__get() and weft__put() report an access; the caller then does it.  The memory is tracked
 * in cells of at most 8 bytes.  Each cell has its last write and, for each thread, that
 * thread's last read since then.  A read races with a write by another thread that did not
 * happen before it; a write also races with such a read.  "Happened before" is decided by
 * vector clocks (memory.c), not by the schedule: a race is found even if the two accesses are
 * far apart.  Therefore plain accesses are not choice points: without a race their order is
 * fixed, and with a race the model fails.
 *
 *   1. Cells do not overlap.  Where accesses differ in size, a cell is split.  Both halves
 *      keep the history of the whole, so no access is lost or invented.
 *   2. A cell keeps the bytes it had before the execution, to restore them.
 */
#include <string.h>
#include "internal.h"

enum { CELL_BYTES = 8, CELLS_MAX = 512, TABLE = 2048 };

struct cell {
	uintptr_t addr;
	uint8_t size;
	uint8_t writer;
	int16_t wrote; /* clock of the writer; 0: not written */
	struct explore__place write;
	int16_t did_read[EXPLORE__SLOTS];
	struct explore__place read[EXPLORE__SLOTS];
	uint8_t first[CELL_BYTES]; /* rule 2 */
};

struct entry {
	uintptr_t addr;
	uint32_t turn; /* the execution that wrote it */
	int16_t index;
};

static struct {
	struct cell cells[CELLS_MAX];
	struct entry table[TABLE];
	uint32_t turn;
	int count;
} plain;

void
explore__plain_begin(void)
{
	plain.turn++;
	plain.count = 0;
}

static struct entry *
entry_find(uintptr_t addr)
{
	size_t at = addr * 0x9e3779b1u % TABLE;

	while (plain.table[at].turn == plain.turn && plain.table[at].addr != addr)
		at = (at + 1) % TABLE;
	return &plain.table[at];
}

static struct cell *
cell_find(uintptr_t addr)
{
	struct entry *entry = entry_find(addr);

	if (entry->turn != plain.turn || entry->index < 0)
		return NULL;
	return &plain.cells[entry->index];
}

static struct cell *
cell_new(uintptr_t addr, size_t size)
{
	struct cell *cell;

	if (plain.count == CELLS_MAX)
		explore_fail("the model has too much plain memory");
	*entry_find(addr) = (struct entry){ addr, plain.turn, (int16_t)plain.count };
	cell = &plain.cells[plain.count++];
	memset(cell, 0, sizeof *cell);
	cell->addr = addr;
	cell->size = (uint8_t)size;
	memcpy(cell->first, (const void *)addr, size);
	return cell;
}

/* Rule 1: afterwards `addr` is not inside a cell, only at the start of one. */
static void
cells_split(uintptr_t addr)
{
	for (uintptr_t back = 1; back < CELL_BYTES; back++) {
		struct cell *cell = cell_find(addr - back), *upper;
		size_t rest;

		if (!cell || cell->size <= back)
			continue;
		rest = cell->size - back;
		upper = cell_new(addr, rest);
		*upper = *cell;
		upper->addr = addr;
		upper->size = (uint8_t)rest;
		memcpy(upper->first, cell->first + back, rest);
		cell->size = (uint8_t)back;
		return;
	}
}

/* The cell at `addr`, created if needed and then at most `size` bytes long. */
static struct cell *
cell_at(uintptr_t addr, size_t size)
{
	struct cell *cell = cell_find(addr);
	size_t room = 1;

	if (cell)
		return cell;
	while (room < size && room < CELL_BYTES && !cell_find(addr + room))
		room++;
	return cell_new(addr, room);
}

static _Noreturn void
fail_race(const struct cell *cell, const char *what, int slot, struct explore__place there)
{
	const struct explore__slot *self = explore__self();
	char label[64];

	explore__label(cell->addr, label, sizeof label);
	explore_fail("data race on %s: %s at %s:%d with the %s by %s at %s:%d", label,
	             explore__slot_name(explore__run.current), explore__base_name(self->last.file),
	             self->last.line, what, explore__slot_name(slot),
	             explore__base_name(there.file), there.line);
}

/* Check the cell's history for accesses that race with a write now. */
static void
check_write(const struct cell *cell)
{
	const struct explore__slot *self = explore__self();

	if (cell->wrote > self->view.clock[cell->writer])
		fail_race(cell, "write", cell->writer, cell->write);
	for (int slot = 0; slot < EXPLORE__SLOTS; slot++)
		if (cell->did_read[slot] > self->view.clock[slot])
			fail_race(cell, "read", slot, cell->read[slot]);
}

static void
cell_touch(struct cell *cell, bool write, struct explore__place place)
{
	const struct explore__slot *self = explore__self();
	int slot = explore__run.current;

	if (!write) {
		if (cell->wrote > self->view.clock[cell->writer])
			fail_race(cell, "write", cell->writer, cell->write);
		cell->did_read[slot] = self->view.clock[slot];
		cell->read[slot] = place;
		return;
	}
	check_write(cell);
	memset(cell->did_read, 0, sizeof cell->did_read);
	cell->writer = (uint8_t)slot;
	cell->wrote = self->view.clock[slot];
	cell->write = place;
}

void
explore__plain(const struct weft__atomic_call *call)
{
	struct explore__place place = { call->file, call->line };
	bool write = call->kind == WEFT__WRITE;
	uintptr_t addr = (uintptr_t)call->addr, end = addr + call->size;
	struct cell *cell = cell_find(addr);
	char label[64];

	explore__heap_check(addr, call->size, place);
	if (explore__run.tracing) {
		explore__label(addr, label, sizeof label);
		explore__trace(call->kind, place, "%s", label);
	}
	if (cell && cell->size == call->size) {
		cell_touch(cell, write, place);
		return;
	}
	cells_split(addr);
	cells_split(end);
	while (addr < end) {
		cell = cell_at(addr, end - addr);
		cell_touch(cell, write, place);
		addr += cell->size;
	}
}

void
explore__plain_restore(void)
{
	for (int i = plain.count; i-- > 0;) {
		const struct cell *cell = &plain.cells[i];

		if (!explore__heap_owns(cell->addr) && !explore__on_stack(cell->addr, NULL))
			memcpy((void *)cell->addr, cell->first, cell->size);
	}
}

/* Freeing counts as a write to the whole block; then its cells are forgotten. */
void
explore__plain_released(uintptr_t addr, size_t size)
{
	for (int i = 0; i < plain.count; i++) {
		const struct cell *cell = &plain.cells[i];

		if (cell->addr - addr >= size)
			continue;
		check_write(cell);
		entry_find(cell->addr)->index = -1;
	}
}
