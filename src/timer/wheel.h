/* wheel.h - the timer wheel as loops use it: places instead of timers.
 *
 * Whatever has a deadline embeds a place, which says where its entry lies.  The
 * wheel knows nothing else of its owner; the place's tag is for whoever pops it, to
 * tell what it is part of.
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

/* Laid out as the last members of weft_timer. */
struct weft__place {
	uint64_t due_ns;
	uint64_t seq;   /* of its start: ties fire in this order */
	void    *block; /* NULL: not armed */
	uint16_t tag;   /* its user's, but for the bit below */
	uint16_t slot;
	uint32_t index;
};

#define WEFT__PLACE_BACKGROUND 0x100u /* of tag: does not keep a loop running */

struct weft__wheel_block;
struct weft__wheel_slab;

/* Of the run; a copy of the key, so that sorting stays in the cache. */
struct weft__wheel_entry {
	uint64_t            due_ns;
	uint64_t            seq;
	struct weft__place *place; /* NULL: stopped while it waited in the run */
};

struct weft_wheel {
	uint64_t now_ns;      /* time reached; slots are relative to it */
	uint64_t bound_ns;    /* nothing to collect before this time */
	bool     bound_exact; /* ... and there is something then */
	uint64_t seq;         /* of the next start */
	weft__a64 count;      /* armed, the run included, */
	weft__a64 background; /* and those of them with WEFT__PLACE_BACKGROUND */
	size_t   limit;       /* so many can be armed without allocating */
	size_t   blocks;      /* in all slabs */
	uint64_t occupied[WEFT__WHEEL_LEVELS];
	struct weft__wheel_block *slot[WEFT__WHEEL_SLOTS];
	struct weft__wheel_block *spare;
	struct weft__wheel_slab  *slabs;
	struct weft__wheel_entry *run; /* due, in order; limit entries fit */
	size_t   run_at, run_end;
	bool     advancing;   /* weft_wheel_advance() is on the stack */
	bool     freed;       /* ... and is to free the wheel when it ends */
};

/* Make an empty wheel in the caller's memory; end it, disarming every place. */
void weft__wheel_init(struct weft_wheel *wheel, uint64_t now_ns);
void weft__wheel_fini(struct weft_wheel *wheel);

/* Give memory back if nothing is armed; returns the bytes. */
size_t weft__wheel_trim(struct weft_wheel *wheel);

/* Arm `place`, which is not armed.  0, or WEFT_ENOMEM. */
int weft__wheel_add(struct weft_wheel *wheel, struct weft__place *place,
                    uint64_t due_ns);

/* Give `place`, which is armed, another deadline, as if it were started now.
 * Returns 0: there is room for it. */
int weft__wheel_move(struct weft_wheel *wheel, struct weft__place *place,
                     uint64_t due_ns);

/* Disarm `place`, which is armed.  Returns 1. */
int weft__wheel_drop(struct weft_wheel *wheel, struct weft__place *place);

/* Move the time to `now_ns`.  If the run is empty, what is due by then becomes the
 * run; else the rest of the run goes first.  Not needed before bound_ns. */
void weft__wheel_collect(struct weft_wheel *wheel, uint64_t now_ns);

/* Take the next of the run, disarmed; NULL at its end. */
struct weft__place *weft__wheel_pop(struct weft_wheel *wheel);

/* Take back the last pop: `place` is armed again, as the next of the run. */
void weft__wheel_put_back(struct weft_wheel *wheel, struct weft__place *place);

/* Something is left of the run; if all that is left was dropped, a pop finds that out. */
static inline bool
weft__wheel_has_run(const struct weft_wheel *wheel)
{
	return wheel->run_at < wheel->run_end && weft__count_get(&wheel->count) > 0;
}

/* The first deadline; WEFT_NEVER: none. */
uint64_t weft__wheel_first(struct weft_wheel *wheel);

/* Any place that is armed, or NULL. */
struct weft__place *weft__wheel_any(struct weft_wheel *wheel);

/* A time until which one may sleep: nothing is due before.  It is exact but for
 * one sleep per place that was dropped or put off, and a few per slot of very
 * many.  WEFT_NEVER: none. */
uint64_t weft__wheel_bound(struct weft_wheel *wheel);

/* --- timers, on a wheel of a loop or alone ------------------------------ */

#define weft__timer_place(timer) ((struct weft__place *)(void *)&(timer)->due_ns)
#define weft__place_timer(place) \
	((weft_timer *)(void *)((char *)(place) - offsetof(weft_timer, due_ns)))

WEFT_STATIC_ASSERT(offsetof(weft_timer, index) == offsetof(weft_timer, due_ns) +
                   offsetof(struct weft__place, index), "a timer ends in a place");

/* Arm or move `timer`, whose owner the caller has checked and set. */
int weft__timer_arm(struct weft_wheel *wheel, weft_timer *timer, uint64_t due_ns,
                    uint64_t every_ns, weft_timer_fn fn, void *arg);

/* The next point after `now_ns` on the grid of a repeating deadline; the last one
 * there is stays short of WEFT_NEVER. */
uint64_t weft__next_due(uint64_t due_ns, uint64_t every_ns, uint64_t now_ns);

/* Make the call of a popped timer; a repeating one is armed anew before it. */
void weft__timer_fire(struct weft_wheel *wheel, weft_timer *timer);

#endif
