/* wheel.h - the timer wheel as loops use it: wheel entries instead of timers.
 *
 * Every object with a deadline embeds a wheel entry (struct weft__wheel_entry), which records its
 * position in the wheel.  The wheel knows nothing else of the object.  The entry's kind is for
 * the code that pops it, to identify the kind of object.
 *
 * Needs: base.  Owned by: a loop, or a user of weft/wheel.h.  Thread: one.
 */
#ifndef WEFT_TIMER_WHEEL_H
#define WEFT_TIMER_WHEEL_H

#include <weft/wheel.h>
#include "base/sys.h"

#define WEFT__WHEEL_SHIFT  10 /* a slot of level 0 is 1,024 ns wide */
#define WEFT__WHEEL_BITS   6
#define WEFT__WHEEL_LEVELS 9  /* 10 + 9 * 6 = 64 bits: every deadline has a slot */
#define WEFT__WHEEL_SLOTS  (WEFT__WHEEL_LEVELS << WEFT__WHEEL_BITS)

/* A wheel entry.  Same layout as the last members of weft_timer. */
struct weft__wheel_entry {
	uint64_t due_ns;
	uint64_t seq;   /* start order: entries with the same deadline fire in this order */
	void    *block; /* NULL: not armed */
	uint16_t kind;  /* the user's, except for the bit below */
	uint16_t slot;
	uint32_t index;
};

#define WEFT__ENTRY_BACKGROUND 0x100u /* bit of kind: does not keep the loop alive */

struct weft__wheel_block;
struct weft__wheel_slab;

/* An item of the run.  Copies the sort key, so that sorting stays in the cache. */
struct weft__wheel_item {
	uint64_t            due_ns;
	uint64_t            seq;
	struct weft__wheel_entry *entry; /* NULL: stopped while in the run */
};

struct weft_wheel {
	uint64_t now_ns;      /* the wheel's time; slots are relative to it */
	uint64_t bound_ns;    /* there is nothing to collect before this time */
	bool     bound_exact; /* bound_ns is a deadline, not just the start of a slot */
	uint64_t seq;         /* seq of the next start */
	weft__a64 count;      /* armed entries, including the run */
	weft__a64 background; /* those of them with WEFT__ENTRY_BACKGROUND */
	size_t   limit;       /* entries that can be armed without allocating */
	size_t   blocks;      /* total in all slabs */
	uint64_t occupied[WEFT__WHEEL_LEVELS];
	struct weft__wheel_block *slot[WEFT__WHEEL_SLOTS];
	struct weft__wheel_block *spare;
	struct weft__wheel_slab  *slabs;
	struct weft__wheel_item *run;  /* due items, sorted; has room for `limit` */
	size_t   run_at, run_end;
	bool     advancing;   /* weft_wheel_advance() is running */
	bool     freed;       /* ... and frees the wheel when it returns */
};

/* Initialize an empty wheel in the caller's memory; and finish it, disarming every entry. */
void weft__wheel_init(struct weft_wheel *wheel, uint64_t now_ns);
void weft__wheel_fini(struct weft_wheel *wheel);

/* Arm `entry`, which must not be armed.  0, or WEFT_ENOMEM. */
int weft__wheel_add(struct weft_wheel *wheel, struct weft__wheel_entry *entry,
                    uint64_t due_ns);

/* Change the deadline of `entry`, which must be armed, as if it were started now.  Always
 * returns 0: there is room. */
int weft__wheel_move(struct weft_wheel *wheel, struct weft__wheel_entry *entry,
                     uint64_t due_ns);

/* Disarm `entry`, which must be armed.  Returns 1. */
int weft__wheel_drop(struct weft_wheel *wheel, struct weft__wheel_entry *entry);

/* If the run is empty, advance the time to `now_ns` and fill the run with the entries due by
 * then.  Else do nothing: the rest of the run comes first.  Need not be called before
 * bound_ns. */
void weft__wheel_collect(struct weft_wheel *wheel, uint64_t now_ns);

/* Remove the next entry from the run and disarm it; NULL at the end of the run. */
struct weft__wheel_entry *weft__wheel_pop(struct weft_wheel *wheel);

/* Undo the last pop: `entry` is armed again, as the next in the run. */
void weft__wheel_put_back(struct weft_wheel *wheel, struct weft__wheel_entry *entry);

/* Whether the run has items left.  They may all have been dropped; then a pop returns NULL. */
static inline bool
weft__wheel_has_run(const struct weft_wheel *wheel)
{
	return wheel->run_at < wheel->run_end && weft__count_get(&wheel->count) > 0;
}

/* The first deadline, or WEFT_NEVER. */
uint64_t weft__wheel_first(struct weft_wheel *wheel);

/* Any armed entry, or NULL. */
struct weft__wheel_entry *weft__wheel_any(struct weft_wheel *wheel);

/* A time until which the caller may sleep: nothing is due earlier.  There may be nothing due at
 * that time either: once per entry that was dropped or postponed, and a few times per very full
 * slot.  WEFT_NEVER if nothing is armed. */
uint64_t weft__wheel_bound(struct weft_wheel *wheel);

/* --- timers, on a loop's wheel or a separate one ------------------------ */

#define weft__timer_entry(timer) ((struct weft__wheel_entry *)(void *)&(timer)->due_ns)
#define weft__entry_timer(entry) \
	((weft_timer *)(void *)((char *)(entry) - offsetof(weft_timer, due_ns)))

WEFT_STATIC_ASSERT(offsetof(weft_timer, index) == offsetof(weft_timer, due_ns) +
                   offsetof(struct weft__wheel_entry, index), "a timer ends in an entry");

/* Arm or move `timer`; the caller has checked and set its owner. */
int weft__timer_arm(struct weft_wheel *wheel, weft_timer *timer, uint64_t due_ns,
                    uint64_t every_ns, weft_timer_fn fn, void *arg);

/* Call the callback of a popped timer; a repeating timer is armed again first. */
void weft__timer_fire(struct weft_wheel *wheel, weft_timer *timer);

#endif
