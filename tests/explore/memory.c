/* memory.c - the memory model: which value each atomic operation may read.
 *
 * It is an operational, view-based model of C11 atomics as C++20 repaired them.  The values of
 * an atomic are messages in modification order.  Each thread has a view: for each atomic, the
 * oldest message that the thread may still read.
 *
 *   1. A load reads any message that is not older than the view, by choice; the view advances
 *      to that message (coherence).  So a load may be stale.
 *   2. A store is inserted after any such message, by choice, not only after the newest:
 *      stores of different threads need not reach other threads in the order in which they are
 *      executed.  If the store releases, the message carries the view of its thread; a load
 *      that acquires joins the view that its message carries.
 *   3. A read-modify-write reads any such message that no other read-modify-write has read,
 *      and its own message comes directly after it; no message is ever inserted between the
 *      two.  Its message also carries the view of the message it read (release sequence), even
 *      if it is relaxed.  A plain atomic store by the same thread does not continue the
 *      sequence, as in C++20; C11 would allow it.
 *   4. A compare-exchange is strong: it succeeds as a read-modify-write if the message that it
 *      reads has the expected value; otherwise it is a load with its failure order.  That load
 *      may be stale.
 *   5. seq_cst: there is one more view, common to all threads.  A seq_cst operation on an
 *      atomic reads or follows no message older than this view has for that atomic, and
 *      advances the view to the message that it read or wrote.  It also acquires and releases.
 *      The execution order of these operations is the S of the standard: this is
 *      "coherence-ordered before implies before in S".  A seq_cst store followed by a relaxed
 *      load gives no order between the two, as in the standard.
 *   6. A system call by which threads wait for each other (park, unpark, event descriptors) is
 *      a seq_cst fence: it joins the common view and the thread's view, in both directions, for
 *      all atomics.  A wait for a descriptor also acquires what its writers released.  park
 *      acquires nothing; its caller has to recheck.
 *   7. The barrier of the sys table is a seq_cst fence in all threads at once.
 *   8. The real memory holds the newest message, so an atomic has its real value when the
 *      model first accesses it.  If the value changes without a hook, the model fails, except
 *      on a thread's stack: there it is treated as a new variable.
 *
 * The vector clock in each view says how much of each thread's past happened before; plain.c
 * and the freeing of memory check against it.
 *
 * Not covered, so not found here:  load buffering (values come from stores already executed);
 * orders S that contradict program order and reads-from, which C++20 allows in places, for
 * POWER;  weak compare-exchanges that fail spuriously;  consume;  fences (atomic.h has none);
 * accesses of different sizes to one address;  the same object accessed both as atomic and as
 * plain memory.
 */
#include <stdio.h>
#include <string.h>
#include "internal.h"

enum { TABLE = 512, MESSAGES_MAX = 8192, VIEWS_MAX = 8192, OPTIONS_MAX = 64 };

struct entry {
	uintptr_t addr;
	uint32_t turn; /* the execution that wrote it */
	int16_t index;
};

static struct {
	struct explore__atom atoms[EXPLORE__ATOMS_MAX];
	struct explore__message messages[MESSAGES_MAX];
	struct explore__view views[VIEWS_MAX];
	struct entry table[TABLE];
	struct explore__view common; /* rule 5; its clock is unused */
	uint32_t turn;
	int atoms_count;
	int messages_count;
	int views_count;
} memory;

void
explore__memory_begin(void)
{
	memory.turn++;
	memory.atoms_count = 0;
	memory.messages_count = 0;
	memory.views_count = 0;
	memset(&memory.common, 0, sizeof memory.common);
}

static uint64_t
real_read(uintptr_t addr, uint32_t size)
{
	return size == 4 ? *(volatile uint32_t *)addr : *(volatile uint64_t *)addr;
}

static void
real_write(uintptr_t addr, uint32_t size, uint64_t value)
{
	if (size == 4)
		*(volatile uint32_t *)addr = (uint32_t)value;
	else
		*(volatile uint64_t *)addr = value;
}

/* The entry for `addr`, or the free entry where it belongs. */
static struct entry *
entry_find(uintptr_t addr)
{
	size_t at = (addr >> 2) * 0x9e3779b1u % TABLE;

	while (memory.table[at].turn == memory.turn && memory.table[at].addr != addr)
		at = (at + 1) % TABLE;
	return &memory.table[at];
}

static void
seen_shift(struct explore__view *view, int16_t index, int16_t time)
{
	view->seen[index] += view->seen[index] >= time;
}

/* `message` was inserted before newer ones: increment the index of each newer message, in the
 * list and in all views. */
static void
messages_shift(struct explore__atom *atom, struct explore__message *message)
{
	struct explore__message *above = atom->newest;

	for (int i = 0; i < memory.views_count; i++)
		seen_shift(&memory.views[i], atom->index, message->time);
	for (int i = 0; i < EXPLORE__SLOTS; i++)
		seen_shift(&explore__run.slots[i].view, atom->index, message->time);
	seen_shift(&memory.common, atom->index, message->time);
	for (; above->prev != message->prev; above = above->prev)
		above->time++;
	above->time++;
	above->prev = message;
}

static struct explore__message *
message_new(struct explore__atom *atom, struct explore__message *prev, uint64_t value)
{
	struct explore__message *message;

	if (memory.messages_count == MESSAGES_MAX)
		explore_fail("the execution has too many stores");
	message = &memory.messages[memory.messages_count++];
	*message = (struct explore__message){
		.value = value,
		.prev = prev,
		.time = prev ? prev->time + 1 : 0,
		.born = atom->count++,
	};
	if (prev == atom->newest)
		atom->newest = message;
	else
		messages_shift(atom, message);
	return message;
}

static struct explore__atom *
atom_new(struct entry *entry, uintptr_t addr, uint32_t size)
{
	struct explore__atom *atom;

	if (memory.atoms_count == EXPLORE__ATOMS_MAX)
		explore_fail("the model has too many atomics");
	atom = &memory.atoms[memory.atoms_count];
	memset(atom, 0, sizeof *atom);
	*entry = (struct entry){ addr, memory.turn, (int16_t)memory.atoms_count };
	atom->addr = addr;
	atom->size = size;
	atom->index = (int16_t)memory.atoms_count++;
	atom->first = real_read(addr, size);
	message_new(atom, NULL, atom->first);
	return atom;
}

struct explore__atom *
explore__atom_get(uintptr_t addr, uint32_t size)
{
	struct entry *entry = entry_find(addr);
	struct explore__atom *atom;
	char label[64];

	if (entry->turn != memory.turn || entry->index < 0)
		return atom_new(entry, addr, size);
	atom = &memory.atoms[entry->index];
	if (atom->size == size && real_read(addr, size) == atom->newest->value)
		return atom;
	if (explore__on_stack(addr, NULL)) /* rule 8 */
		return atom_new(entry, addr, size);
	explore__label(addr, label, sizeof label);
	explore_fail("%s was changed without a hook, or is used with two sizes", label);
}

/* An atomic may be wider than 4 bytes although threads park on its first half. */
uint32_t
explore__atom_size(uintptr_t addr)
{
	struct entry *entry = entry_find(addr);

	if (entry->turn != memory.turn || entry->index < 0)
		return 4;
	return memory.atoms[entry->index].size;
}

int16_t
explore__atom_count(uintptr_t addr)
{
	struct entry *entry = entry_find(addr);

	if (entry->turn != memory.turn || entry->index < 0)
		return 1;
	return memory.atoms[entry->index].count;
}

void
explore__atom_touch(struct explore__atom *atom, struct explore__place place)
{
	int slot = explore__run.current;

	atom->stamp[slot] = explore__self()->view.clock[slot];
	atom->place[slot] = place;
}

static void
join(int16_t *into, const int16_t *from, int count)
{
	for (int i = 0; i < count; i++)
		into[i] = into[i] > from[i] ? into[i] : from[i];
}

void
explore__view_join(struct explore__view *into, const struct explore__view *from)
{
	join(into->seen, from->seen, memory.atoms_count);
	join(into->clock, from->clock, EXPLORE__SLOTS);
}

/* Rule 6. */
void
explore__fence(void)
{
	struct explore__slot *self = explore__self();

	join(self->view.seen, memory.common.seen, memory.atoms_count);
	join(memory.common.seen, self->view.seen, memory.atoms_count);
}

/* A fence in every thread, between two of its operations.  The order of these fences does not
 * matter: it is as if all were executed when the last one is.  Setup and check run alone. */
void
explore__fence_all(void)
{
	struct explore__slot *slots = explore__run.slots;
	int count = explore__run.model->threads;

	if (explore__run.current == EXPLORE__MAIN)
		return;
	for (int i = 0; i < count; i++)
		join(memory.common.seen, slots[i].view.seen, memory.atoms_count);
	for (int i = 0; i < count; i++)
		join(slots[i].view.seen, memory.common.seen, memory.atoms_count);
}

/* The view that a message of the running thread carries.  It does not include plain accesses
 * from here on, so the clock advances. */
struct explore__view *
explore__view_publish(void)
{
	struct explore__slot *self = explore__self();
	struct explore__view *view;

	if (memory.views_count == VIEWS_MAX)
		explore_fail("the execution has too many releases");
	view = &memory.views[memory.views_count++];
	*view = self->view;
	self->view.clock[explore__run.current]++;
	return view;
}

static void
common_raise(const struct explore__atom *atom, int16_t time)
{
	int16_t *common = &memory.common.seen[atom->index];

	if (*common < time)
		*common = time;
}

/* A spinning thread must eventually read the newest message.  Count its stale reads, at most
 * one per round. */
static void
stale_note(struct explore__atom *atom, bool stale)
{
	struct explore__slot *self = explore__self();
	int slot = explore__run.current;

	if (!stale) {
		atom->stale[slot] = 0;
		return;
	}
	self->was_stale = true;
	if (atom->round[slot] != self->round) {
		atom->round[slot] = self->round;
		atom->stale[slot]++;
	}
}

/* Is `call` only a load if it reads this message?  Rule 4. */
static bool
is_load(const struct weft__atomic_call *call, const struct explore__message *message)
{
	return call->kind == WEFT__LOAD
	       || (call->kind == WEFT__CAS && message->value != call->expected);
}

/* The order of `call` if it reads this message. */
static int
order_of(const struct weft__atomic_call *call, const struct explore__message *message)
{
	return call->kind == WEFT__CAS && is_load(call, message) ? call->failed : call->order;
}

/* May `call` read this message, or follow it?  Rules 1 to 5.  The caller checks that the
 * message is not older than the view. */
static bool
suits(const struct weft__atomic_call *call, const struct explore__message *message, int16_t common)
{
	if (order_of(call, message) == WEFT__SEQ_CST && message->time < common)
		return false;
	return is_load(call, message) || !message->taken;
}

/* The message that `call` reads or follows; the newest permitted one is the first choice. */
static struct explore__message *
message_choose(struct explore__atom *atom, const struct weft__atomic_call *call)
{
	struct explore__slot *self = explore__self();
	struct explore__message *options[OPTIONS_MAX], *message = atom->newest;
	int16_t oldest = self->view.seen[atom->index];
	int16_t common = memory.common.seen[atom->index];
	int count = 0;

	if (call->kind != WEFT__STORE && atom->stale[explore__run.current] >= EXPLORE__STALE_MAX)
		oldest = atom->newest->time;
	for (; message && message->time >= oldest; message = message->prev)
		if (message->born >= self->floor && count < OPTIONS_MAX
		    && suits(call, message, common))
			options[count++] = message;
	if (count == 0) /* no message is new to a thread that was in the sleep set */
		explore__stop(EXPLORE__REDUNDANT);
	return options[explore__choose(count)];
}

static void
read_message(struct explore__atom *atom, const struct explore__message *message, int order)
{
	struct explore__slot *self = explore__self();

	self->view.seen[atom->index] = message->time;
	if (atom->count > 1)
		stale_note(atom, message != atom->newest);
	if (message->view && explore__order_acquires(order))
		explore__view_join(&self->view, message->view);
	if (order == WEFT__SEQ_CST)
		common_raise(atom, message->time);
}

/* Insert a new message after `prev`.  If `prev` is taken, then by this operation (rule 3). */
static void
write_message(struct explore__atom *atom, struct explore__message *prev, int order, uint64_t value)
{
	struct explore__slot *self = explore__self();
	const struct explore__view *carried = prev->taken ? prev->view : NULL;
	struct explore__message *message = message_new(atom, prev, value);
	struct explore__view *view;

	self->view.seen[atom->index] = message->time;
	message->view = carried;
	if (explore__order_releases(order)) {
		view = explore__view_publish();
		if (carried)
			explore__view_join(view, carried);
		message->view = view;
	}
	if (order == WEFT__SEQ_CST)
		common_raise(atom, message->time);
	real_write(atom->addr, atom->size, atom->newest->value);
	if (value != prev->value) {
		self->writes++;
		explore__run.writes++;
	}
	self->mark = explore__run.writes - self->writes;
}

static uint64_t
modified(const struct weft__atomic_call *call, uint64_t old)
{
	uint64_t value = call->value;

	if (call->kind == WEFT__ADD)
		value = old + call->value;
	else if (call->kind == WEFT__OR)
		value = old | call->value;
	return call->size == 4 ? (uint32_t)value : value;
}

/* Do the operation.  Returns the message that it read or followed. */
static const struct explore__message *
perform(struct explore__atom *atom, const struct weft__atomic_call *call)
{
	struct explore__message *message = message_choose(atom, call);
	int order = order_of(call, message);

	if (call->kind != WEFT__STORE)
		read_message(atom, message, order);
	if (is_load(call, message))
		return message;
	if (call->kind != WEFT__STORE)
		message->taken = true;
	write_message(atom, message, order, modified(call, message->value));
	return message;
}

/* A line of the schedule, after the operation; `read` is the message it read or followed. */
static void
trace(const struct weft__atomic_call *call, const struct explore__atom *atom,
      const struct explore__message *read)
{
	struct explore__place place = { call->file, call->line };
	unsigned long long old = read->value, newest = atom->newest->value;
	unsigned long long value = modified(call, old);
	const char *name = explore__order_name(order_of(call, read));
	char label[64], late[64] = "";

	explore__label(atom->addr, label, sizeof label);
	if (explore__self()->view.seen[atom->index] < atom->newest->time)
		snprintf(late, sizeof late, ", NOT THE NEWEST, which is %#llx", newest);
	if (call->kind == WEFT__STORE)
		explore__trace(call->kind, place, "%s = %#llx, %s%s", label, value, name, late);
	else if (call->kind == WEFT__LOAD)
		explore__trace(call->kind, place, "%s is %#llx, %s%s", label, old, name, late);
	else if (is_load(call, read))
		explore__trace(call->kind, place, "%s is %#llx: fails, %s%s", label, old, name,
		               late);
	else
		explore__trace(call->kind, place, "%s from %#llx to %#llx, %s%s", label, old, value,
		               name, late);
}

/* The operation changed nothing: count how often it was repeated. */
static void
spin_note(const struct weft__atomic_call *call)
{
	struct explore__slot *self = explore__self();

	if (!explore__spin_same(call))
		self->spin_count = 0;
	self->spin_count++;
	self->spin_place = (struct explore__place){ call->file, call->line };
	self->spin_addr = (uintptr_t)call->addr;
	self->spin_kind = call->kind;
}

bool
explore__spin_same(const struct weft__atomic_call *call)
{
	const struct explore__slot *self = explore__self();

	return self->spin_place.line == call->line && self->spin_place.file == call->file
	       && self->spin_addr == (uintptr_t)call->addr && self->spin_kind == (int)call->kind;
}

uint64_t
explore__atomic(const struct weft__atomic_call *call)
{
	struct explore__slot *self = explore__self();
	struct explore__place place = { call->file, call->line };
	uintptr_t addr = (uintptr_t)call->addr;
	uint32_t changes = explore__run.writes;
	const struct explore__message *read;
	struct explore__atom *atom;

	explore__heap_check(addr, call->size, place);
	atom = explore__atom_get(addr, call->size);
	explore__atom_touch(atom, place);
	read = perform(atom, call);
	if (call->kind == WEFT__STORE || changes != explore__run.writes)
		self->spin_count = 0;
	else
		spin_note(call);
	if (explore__run.tracing)
		trace(call, atom, read);
	return read->value;
}

/* Restore the values from before the execution.  Tracked memory and stacks are initialized by
 * each execution. */
void
explore__atoms_restore(void)
{
	for (int i = memory.atoms_count; i-- > 0;) {
		const struct explore__atom *atom = &memory.atoms[i];

		if (!explore__heap_owns(atom->addr) && !explore__on_stack(atom->addr, NULL))
			real_write(atom->addr, atom->size, atom->first);
	}
}

static void
check_ordered(const struct explore__atom *atom)
{
	const struct explore__slot *self = explore__self();

	for (int slot = 0; slot < EXPLORE__SLOTS; slot++)
		if (slot != explore__run.current && atom->stamp[slot] > self->view.clock[slot])
			explore_fail("%s releases memory after %s:%d, which is not "
			             "ordered after its use by %s at %s:%d",
			             explore__slot_name(explore__run.current),
			             explore__base_name(self->last.file), self->last.line,
			             explore__slot_name(slot),
			             explore__base_name(atom->place[slot].file),
			             atom->place[slot].line);
}

/* The running thread frees memory: every access to it must have happened before.  The atomics
 * in it are forgotten. */
void
explore__atoms_released(uintptr_t addr, size_t size)
{
	for (int i = 0; i < memory.atoms_count; i++)
		if (memory.atoms[i].addr - addr < size) {
			check_ordered(&memory.atoms[i]);
			entry_find(memory.atoms[i].addr)->index = -1;
		}
}
