/* wheel.c - a hierarchical timer wheel with one occupancy bit per slot, and the timers in it.
 *
 * A slot of level 0 is 1,024 ns wide; a slot of each further level is 64 times as wide.  Nine
 * levels hold every 64-bit time.  A wheel entry (struct weft__wheel_entry) goes into the level of
 * the highest six-bit digit in which its deadline differs from the wheel's time; that digit of the
 * deadline selects the slot.  As time advances, slots that have passed become the run,
 * an array sorted by (deadline, start).  A slot that the time enters is redistributed over the
 * levels below.  A slot is a chain of blocks of 30 pointers, newest block first, so that expiry
 * reads memory sequentially and can prefetch.
 *
 *   1. An entry is armed exactly when entry->block is not NULL.  It is then at index
 *      entry->index of a block of slot entry->slot, or of the run if slot is IN_RUN.
 *   2. Every block of a slot except the first is full, and no block is empty.
 *   3. occupied has a slot's bit set exactly when the slot has a block.
 *   4. Occupied slots of level L agree with now_ns in all digits above L, and for L > 0 are ahead
 *      of now_ns in digit L.  So they begin before every occupied slot of the levels above.
 *   5. An entry is in the slot of its deadline or in an earlier one.  Postponing an entry only
 *      writes the new deadline; the entry moves when the time enters its slot.  (Idle timeouts
 *      are postponed far more often than they expire.)
 *   6. Blocks and run have room for `limit` entries (wheel_reserve()), and count <= limit, so
 *      moving an entry never allocates.  There are at most count / 30 full blocks, at most one
 *      partial block per slot, and one more block that is being drained.
 *   7. The run is filled only while it is empty, so it never holds more than `limit` entries.
 *   8. There is nothing to collect before bound_ns.
 *   9. A one-shot timer is disarmed before its callback and not accessed after it, so the
 *      callback may free it.  A repeating timer is armed again before its callback, so the
 *      callback may stop it; there is room, because the timer has just left the run.
 *
 * Start and stop are flattened: they are so short that calls would dominate their cost.
 *
 * Nothing is rounded: deadlines are compared in nanoseconds, and no timer fires early.
 */
#include "base/thread.h"
#include "timer/sort.h"
#include "timer/wheel.h"

#define DIGITS      64u /* slots per level */
#define BLOCK_ROOM  30u
#define LIMIT_FIRST 16u
#define LIMIT_LAST  ((size_t)1 << 31) /* entry->index has 32 bits */
#define AHEAD       12u               /* prefetch distance, about the time of a cache miss */
#define IN_RUN      0xffffu
#define FEW_BLOCKS  3  /* a slot of at most this many blocks is searched for the first deadline */
#define TAKE_LEVELS 3u /* slots of these levels go to the run directly: see fill_run() */

#define FLAT        __attribute__((flatten))
#define COLD        __attribute__((noinline, cold))
#define rare(x)     __builtin_expect(!!(x), 0)

typedef struct weft__wheel_block block;
typedef struct weft__wheel_entry entry;

struct weft__wheel_block {
	block *next;
	uint64_t count;
	entry *entries[BLOCK_ROOM];
};
WEFT_STATIC_ASSERT(sizeof(block) == 256, "four cache lines");

struct weft__wheel_slab {
	struct weft__wheel_slab *next;
	block blocks[];
};

/* --- reserve ------------------------------------------------------------ */

/* The most blocks that `count` entries can need; invariant 6. */
static size_t
blocks_for(size_t count)
{
	size_t partial = count < WEFT__WHEEL_SLOTS ? count : WEFT__WHEEL_SLOTS;

	return count / BLOCK_ROOM + partial + 1;
}

static int
add_slab(struct weft_wheel *wheel, size_t blocks)
{
	struct weft__wheel_slab *slab = weft__sys->alloc(sizeof(*slab)
	                                                 + blocks * sizeof(slab->blocks[0]));

	if (!slab)
		return WEFT_ENOMEM;
	slab->next = wheel->slabs;
	wheel->slabs = slab;
	wheel->blocks += blocks;
	for (size_t i = blocks; i-- > 0;) {
		slab->blocks[i].next = wheel->spare;
		wheel->spare = &slab->blocks[i];
	}
	return 0;
}

/* Double the capacity. */
static COLD int
wheel_reserve(struct weft_wheel *wheel)
{
	size_t limit = wheel->limit ? 2 * wheel->limit : LIMIT_FIRST;
	size_t blocks = blocks_for(limit);
	struct weft__wheel_item *run;

	if (limit > LIMIT_LAST)
		return WEFT_ENOMEM;
	run = weft__sys->resize(wheel->run, limit * sizeof(*run));
	if (!run)
		return WEFT_ENOMEM;
	wheel->run = run;
	if (blocks > wheel->blocks && add_slab(wheel, blocks - wheel->blocks) < 0)
		return WEFT_ENOMEM;
	wheel->limit = limit;
	return 0;
}

/* --- slots -------------------------------------------------------------- */

static unsigned
shift_of(unsigned level)
{
	return WEFT__WHEEL_SHIFT + WEFT__WHEEL_BITS * level;
}

/* The slot of a deadline; a deadline in the past goes into the current slot. */
static inline unsigned
slot_of(const struct weft_wheel *wheel, uint64_t due_ns)
{
	uint64_t at = due_ns < wheel->now_ns ? wheel->now_ns : due_ns;
	uint64_t differ = (at ^ wheel->now_ns) >> WEFT__WHEEL_SHIFT;
	unsigned top = 63 - (unsigned)__builtin_clzll(differ | 1);
	unsigned level = top / WEFT__WHEEL_BITS;

	return level * DIGITS + (unsigned)(at >> shift_of(level)) % DIGITS;
}

/* The time at which `slot` begins; by invariant 4 its higher digits are those of now_ns. */
static inline uint64_t
slot_start(const struct weft_wheel *wheel, unsigned slot)
{
	unsigned shift = shift_of(slot / DIGITS);
	unsigned above = shift + WEFT__WHEEL_BITS;
	uint64_t digits = above < 64 ? wheel->now_ns >> above << above : 0;

	return digits | (uint64_t)(slot % DIGITS) << shift;
}

static uint64_t
slot_last(const struct weft_wheel *wheel, unsigned slot)
{
	return slot_start(wheel, slot) + ((UINT64_C(1) << shift_of(slot / DIGITS)) - 1);
}

/* The first occupied slot, or WEFT__WHEEL_SLOTS. */
static unsigned
first_slot(const struct weft_wheel *wheel)
{
	for (unsigned level = 0; level < WEFT__WHEEL_LEVELS; level++)
		if (wheel->occupied[level])
			return level * DIGITS + (unsigned)__builtin_ctzll(wheel->occupied[level]);
	return WEFT__WHEEL_SLOTS;
}

static inline void
wheel_append(block *b, entry *p)
{
	uint64_t index = b->count;

	p->block = b;
	p->index = (uint32_t)index;
	b->entries[index] = p;
	b->count = index + 1;
}

/* Prepend a block to p's slot, with `p` in it.  Returns 0. */
static COLD int
add_block(struct weft_wheel *wheel, entry *p)
{
	block *b = wheel->spare;

	weft__assert(b != NULL); /* invariant 6 */
	wheel->spare = b->next;
	b->next = wheel->slot[p->slot];
	weft__assert(!b->next || b->next->count == BLOCK_ROOM); /* invariant 2 */
	b->count = 0;
	wheel->slot[p->slot] = b;
	wheel->occupied[p->slot / DIGITS] |= UINT64_C(1) << p->slot % DIGITS;
	wheel_append(b, p);
	return 0;
}

/* `due_ns` equals p->due_ns, passed to avoid reading it again.  Returns 0. */
static inline int
insert(struct weft_wheel *wheel, entry *p, uint64_t due_ns)
{
	unsigned slot = slot_of(wheel, due_ns);
	block *b = wheel->slot[slot];

	p->slot = (uint16_t)slot;
	if (rare(!b || b->count == BLOCK_ROOM))
		return add_block(wheel, p);
	wheel_append(b, p);
	return 0;
}

static void
wheel_give_back(struct weft_wheel *wheel, block *b)
{
	b->next = wheel->spare;
	wheel->spare = b;
}

/* Remove the whole chain from `slot`. */
static block *
detach(struct weft_wheel *wheel, unsigned slot)
{
	block *chain = wheel->slot[slot];

	weft__assert(chain != NULL); /* invariant 3 */
	wheel->slot[slot] = NULL;
	wheel->occupied[slot / DIGITS] &= ~(UINT64_C(1) << slot % DIGITS);
	return chain;
}

/* The first block of `slot` is now empty: free it.  Returns 1. */
static COLD int
drop_block(struct weft_wheel *wheel, unsigned slot)
{
	block *b = wheel->slot[slot];

	if (b->next)
		wheel->slot[slot] = b->next;
	else
		(void)detach(wheel, slot);
	wheel_give_back(wheel, b);
	return 1;
}

/* Fills the hole with the slot's newest entry; invariant 2.  Returns 1. */
static inline int
remove_from_slot(struct weft_wheel *wheel, entry *p)
{
	block *first = wheel->slot[p->slot], *b = p->block;
	uint64_t left = first->count - 1;
	entry *last = first->entries[left];

	first->count = left;
	if (last != p) {
		b->entries[p->index] = last;
		last->block = b;
		last->index = p->index;
	}
	p->block = NULL;
	return rare(left == 0) ? drop_block(wheel, p->slot) : 1;
}

/* --- advancing the time ------------------------------------------------- */

static inline void
prefetch_block(const block *b)
{
	if (!b)
		return;
	__builtin_prefetch(b->next);
	for (uint64_t i = 0; i < b->count; i++)
		__builtin_prefetch(&b->entries[i]->due_ns, 1);
}

/* Reinsert each entry of a chain into the slot where it belongs now. */
static void
spread(struct weft_wheel *wheel, block *chain)
{
	prefetch_block(chain);
	while (chain) {
		block *b = chain;

		chain = b->next;
		prefetch_block(chain);
		for (uint64_t i = 0; i < b->count; i++)
			(void)insert(wheel, b->entries[i], b->entries[i]->due_ns);
		wheel_give_back(wheel, b);
	}
}

/* Append the entries of a chain that are due by `last_ns` to the run, sorted.  The rest goes
 * into the slots where it belongs. */
static void
take_due(struct weft_wheel *wheel, block *chain, uint64_t last_ns)
{
	struct weft__wheel_item *from = &wheel->run[wheel->run_end], *e = from;

	prefetch_block(chain);
	while (chain) {
		block *b = chain;

		chain = b->next;
		prefetch_block(chain);
		for (uint64_t i = 0; i < b->count; i++) {
			entry *p = b->entries[i];

			if (p->due_ns <= last_ns)
				*e++ = (struct weft__wheel_item){ p->due_ns, p->seq, p };
			else
				(void)insert(wheel, p, p->due_ns);
		}
		wheel_give_back(wheel, b);
	}
	weft__wheel_sort(from, (size_t)(e - from));
	wheel->run_end = (size_t)(e - wheel->run);
	weft__assert(wheel->run_end <= wheel->limit); /* invariants 6 and 7 */
	for (e = from; e < &wheel->run[wheel->run_end]; e++) {
		e->entry->block = wheel;
		e->entry->slot = IN_RUN;
		e->entry->index = (uint32_t)(e - wheel->run);
	}
}

/* Narrow slots that have passed completely go to the run directly.  Wider slots are
 * redistributed first, which sorts their entries roughly and keeps each sort in the cache. */
static void
fill_run(struct weft_wheel *wheel, uint64_t now_ns)
{
	unsigned slot;

	while ((slot = first_slot(wheel)) < WEFT__WHEEL_SLOTS) {
		uint64_t start_ns = slot_start(wheel, slot);
		uint64_t last_ns = slot_last(wheel, slot);
		bool behind = last_ns <= now_ns;

		if (start_ns > now_ns)
			return;
		if (start_ns > wheel->now_ns)
			wheel->now_ns = start_ns;
		if (slot < DIGITS || (slot < TAKE_LEVELS * DIGITS && behind))
			take_due(wheel, detach(wheel, slot), behind ? last_ns : now_ns);
		else
			spread(wheel, detach(wheel, slot));
		if (slot < DIGITS && !behind)
			return;
	}
}

void
weft__wheel_collect(struct weft_wheel *wheel, uint64_t now_ns)
{
	unsigned slot;

	if (wheel->run_at < wheel->run_end)
		return;
	wheel->run_at = wheel->run_end = 0;
	fill_run(wheel, now_ns);
	if (now_ns > wheel->now_ns)
		wheel->now_ns = now_ns;
	slot = first_slot(wheel);
	wheel->bound_ns = slot == WEFT__WHEEL_SLOTS ? WEFT_NEVER : slot_start(wheel, slot);
	wheel->bound_exact = slot == WEFT__WHEEL_SLOTS;
	weft__assert(slot < DIGITS || wheel->bound_ns >= wheel->now_ns); /* invariant 4 */
}

/* Timers rarely set WEFT__ENTRY_BACKGROUND.  What else sets it (ops, timer handles) costs more than
 * this anyway. */
static inline void
count(struct weft_wheel *wheel, const entry *p, int by)
{
	weft__count(&wheel->count, by);
	if (rare(p->kind & WEFT__ENTRY_BACKGROUND))
		weft__count(&wheel->background, by);
}

struct weft__wheel_entry *
weft__wheel_pop(struct weft_wheel *wheel)
{
	while (wheel->run_at < wheel->run_end) {
		struct weft__wheel_item *e = &wheel->run[wheel->run_at++];

		if (wheel->run_at + AHEAD < wheel->run_end)
			__builtin_prefetch(e[AHEAD].entry, 1);
		if (e->entry) {
			e->entry->block = NULL;
			count(wheel, e->entry, -1);
			return e->entry;
		}
	}
	return NULL;
}

void
weft__wheel_put_back(struct weft_wheel *wheel, struct weft__wheel_entry *p)
{
	weft__assert(wheel->run_at > 0 && !p->block && wheel->run[wheel->run_at - 1].entry == p);
	p->block = wheel;
	p->index = (uint32_t)--wheel->run_at;
	count(wheel, p, 1);
}

/* --- arming ------------------------------------------------------------- */

/* Cold calls are tail calls, so that the fast path of a function saves no registers. */
static COLD int
add_slowly(struct weft_wheel *wheel, entry *p, uint64_t due_ns)
{
	if (wheel_reserve(wheel) < 0)
		return weft__fail(WEFT_ENOMEM, "weft_timer_*: out of memory");
	return weft__wheel_add(wheel, p, due_ns);
}

FLAT int
weft__wheel_add(struct weft_wheel *wheel, struct weft__wheel_entry *p, uint64_t due_ns)
{
	if (rare(weft__count_get(&wheel->count) >= wheel->limit))
		return add_slowly(wheel, p, due_ns);
	count(wheel, p, 1);
	if (due_ns < wheel->bound_ns)
		wheel->bound_ns = due_ns;
	p->due_ns = due_ns;
	p->seq = wheel->seq++;
	return insert(wheel, p, due_ns);
}

FLAT int
weft__wheel_drop(struct weft_wheel *wheel, struct weft__wheel_entry *p)
{
	count(wheel, p, -1);
	if (!rare(p->slot == IN_RUN))
		return remove_from_slot(wheel, p);
	wheel->run[p->index].entry = NULL;
	p->block = NULL;
	return 1;
}

/* Out of line, because the compiler does not know that the add always finds room. */
static __attribute__((noinline)) int
move_slowly(struct weft_wheel *wheel, entry *p, uint64_t due_ns)
{
	(void)weft__wheel_drop(wheel, p);
	return weft__wheel_add(wheel, p, due_ns);
}

int
weft__wheel_move(struct weft_wheel *wheel, struct weft__wheel_entry *p, uint64_t due_ns)
{
	if (p->slot == IN_RUN || due_ns < slot_start(wheel, p->slot))
		return move_slowly(wheel, p, due_ns);
	p->due_ns = due_ns; /* invariant 5 */
	p->seq = wheel->seq++;
	if (due_ns < wheel->bound_ns)
		wheel->bound_ns = due_ns;
	return 0;
}

/* --- the first deadline ------------------------------------------------- */

/* The first deadline in `slot`; NULL if an entry was postponed beyond the slot, so that entries
 * in other slots may come first. */
static const uint64_t *
first_in(const struct weft_wheel *wheel, unsigned slot)
{
	const uint64_t *first = NULL;
	uint64_t last_ns = slot_last(wheel, slot);

	for (block *b = wheel->slot[slot]; b; b = b->next)
		for (uint64_t i = 0; i < b->count; i++) {
			if (b->entries[i]->due_ns > last_ns)
				return NULL;
			if (!first || b->entries[i]->due_ns < *first)
				first = &b->entries[i]->due_ns;
		}
	return first;
}

/* The first item of the run, or NULL.  Skips dropped items for good. */
static const struct weft__wheel_item *
first_due(struct weft_wheel *wheel)
{
	while (wheel->run_at < wheel->run_end && !wheel->run[wheel->run_at].entry)
		wheel->run_at++;
	return wheel->run_at < wheel->run_end ? &wheel->run[wheel->run_at] : NULL;
}

/* Searches the first slot only; postponed entries are moved on the way. */
uint64_t
weft__wheel_first(struct weft_wheel *wheel)
{
	const struct weft__wheel_item *due = first_due(wheel);
	unsigned slot;

	if (due)
		return due->due_ns;
	while ((slot = first_slot(wheel)) < WEFT__WHEEL_SLOTS) {
		const uint64_t *first_ns = first_in(wheel, slot);

		if (first_ns)
			return *first_ns;
		spread(wheel, detach(wheel, slot));
	}
	return WEFT_NEVER;
}

struct weft__wheel_entry *
weft__wheel_any(struct weft_wheel *wheel)
{
	const struct weft__wheel_item *due = first_due(wheel);
	unsigned slot = first_slot(wheel);

	if (due)
		return due->entry;
	return slot < WEFT__WHEEL_SLOTS ? wheel->slot[slot]->entries[0] : NULL;
}

static bool
is_long(const block *chain)
{
	for (int i = 0; chain && i < FEW_BLOCKS; i++)
		chain = chain->next;
	return chain != NULL;
}

uint64_t
weft__wheel_bound(struct weft_wheel *wheel)
{
	unsigned slot = first_slot(wheel);

	if (weft__count_get(&wheel->count) == 0) {
		wheel->bound_ns = WEFT_NEVER;
		wheel->bound_exact = true;
	}
	/* For a long slot, waking up at its start is cheaper than searching it. */
	if (!wheel->bound_exact && (slot == WEFT__WHEEL_SLOTS || !is_long(wheel->slot[slot]))) {
		wheel->bound_ns = weft__wheel_first(wheel);
		wheel->bound_exact = true;
	}
	return wheel->bound_ns;
}

/* --- creating and freeing ----------------------------------------------- */

void
weft__wheel_init(struct weft_wheel *wheel, uint64_t now_ns)
{
	*wheel = (struct weft_wheel){ .now_ns = now_ns,
		                      .bound_ns = WEFT_NEVER,
		                      .bound_exact = true };
}

static void
release_all(struct weft_wheel *wheel)
{
	while (wheel->slabs) {
		struct weft__wheel_slab *slab = wheel->slabs;

		wheel->slabs = slab->next;
		weft__sys->release(slab);
	}
	weft__sys->release(wheel->run);
	wheel->run = NULL; /* a loop finishes its wheel when it stops, and again when it is freed */
	wheel->spare = NULL;
	wheel->run_at = wheel->run_end = wheel->limit = wheel->blocks = 0;
}

void
weft__wheel_fini(struct weft_wheel *wheel)
{
	unsigned slot;

	while (weft__wheel_pop(wheel))
		;
	while ((slot = first_slot(wheel)) < WEFT__WHEEL_SLOTS)
		for (block *b = detach(wheel, slot); b; b = b->next)
			for (uint64_t i = 0; i < b->count; i++)
				b->entries[i]->block = NULL;
	weft__count_set(&wheel->count, 0);
	weft__count_set(&wheel->background, 0);
	release_all(wheel);
}

/* --- timers ------------------------------------------------------------- */

static COLD int
wheel_refuse(const char *text)
{
	return weft__misuse(WEFT_EINVAL, text);
}

FLAT int
weft__timer_arm(struct weft_wheel *wheel, weft_timer *timer, uint64_t due_ns, uint64_t every_ns,
                weft_timer_fn fn, void *arg)
{
	struct weft__wheel_entry *p = weft__timer_entry(timer);

	if (rare(!fn || due_ns == WEFT_NEVER))
		return wheel_refuse("timer: fn is NULL, or the deadline is WEFT_NEVER");
	timer->fn = fn;
	timer->arg = arg;
	timer->every_ns = every_ns;
	return p->block ? weft__wheel_move(wheel, p, due_ns) : weft__wheel_add(wheel, p, due_ns);
}

/* The next time after `now_ns` in the series of a repeating deadline, at most WEFT_NEVER - 1. */
static uint64_t
next_due(uint64_t due_ns, uint64_t every_ns, uint64_t now_ns)
{
	uint64_t periods = 1;

	if (now_ns > due_ns)
		periods += (now_ns - due_ns) / every_ns;
	if (every_ns > (WEFT_NEVER - 1 - due_ns) / periods)
		return WEFT_NEVER - 1;
	return due_ns + periods * every_ns;
}

void
weft__timer_fire(struct weft_wheel *wheel, weft_timer *timer)
{
	if (timer->every_ns)
		weft__assert(
			weft__wheel_add(wheel, weft__timer_entry(timer),
		                        next_due(timer->due_ns, timer->every_ns, wheel->now_ns))
			== 0);
	timer->fn(timer, timer->arg); /* may have freed the timer */
}

/* --- a wheel without a loop --------------------------------------------- */

weft_wheel *
weft_wheel_new(uint64_t now_ns)
{
	weft_wheel *wheel = weft__sys->alloc(sizeof(*wheel));

	if (wheel)
		weft__wheel_init(wheel, now_ns);
	else
		(void)weft__fail(WEFT_ENOMEM, "weft_wheel_new: out of memory");
	return wheel;
}

void
weft_wheel_free(weft_wheel *wheel)
{
	if (!wheel)
		return;
	weft__wheel_fini(wheel);
	wheel->freed = true;
	if (!wheel->advancing)
		weft__sys->release(wheel);
}

FLAT int
weft_wheel_start(weft_wheel *wheel, weft_timer *timer, uint64_t due_ns, uint64_t every_ns,
                 weft_timer_fn fn, void *arg)
{
	if (!wheel || !timer)
		return wheel_refuse("weft_wheel_start: wheel or timer is NULL");
	if (timer->block && timer->owner != wheel)
		return wheel_refuse(
			"weft_wheel_start: the timer is armed on another wheel or loop; stop it "
			"there first");
	timer->owner = wheel;
	return weft__timer_arm(wheel, timer, due_ns, every_ns, fn, arg);
}

FLAT int
weft_wheel_stop(weft_wheel *wheel, weft_timer *timer)
{
	if (!wheel || !timer || !timer->block || timer->owner != wheel)
		return 0;
	return weft__wheel_drop(wheel, weft__timer_entry(timer));
}

int64_t
weft_wheel_advance(weft_wheel *wheel, uint64_t now_ns)
{
	struct weft__wheel_entry *p;
	int64_t fired = 0;

	if (!wheel || now_ns < wheel->now_ns)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_wheel_advance: wheel is NULL, or now_ns is before the wheel's time");
	if (wheel->advancing)
		return weft__misuse(WEFT_EBUSY,
		                    "weft_wheel_advance: must not be called from a timer callback");
	weft__wheel_collect(wheel, now_ns);
	wheel->advancing = true;
	while (!wheel->freed && (p = weft__wheel_pop(wheel))) {
		fired++;
		weft__timer_fire(wheel, weft__entry_timer(p));
	}
	wheel->advancing = false;
	if (wheel->freed)
		weft__sys->release(wheel);
	return fired;
}

/* Logically const: it may move entries between slots, which the caller cannot observe. */
uint64_t
weft_wheel_next(const weft_wheel *wheel)
{
	return wheel ? weft__wheel_first((weft_wheel *)(uintptr_t)wheel) : WEFT_NEVER;
}

size_t
weft_wheel_count(const weft_wheel *wheel)
{
	return wheel ? weft__count_get(&wheel->count) : 0;
}
