/* internal.h - what the files of the explorer share.  Private to tests/explore.
 *
 *   explore.c  runs a model: executions, threads, the public functions
 *   search.c   the tree of choices, and the choice of the next thread
 *   memory.c   atomics: messages and views
 *   plain.c    plain memory: races
 *   heap.c     blocks of tracked memory: use after free, leaks
 *   world.c    the sys table: parking, time, event descriptors
 *   report.c   the readable schedule
 *   weaken.c   tries weaker orders, one at a time
 *
 * All data is in static arrays of fixed size; an execution begins by setting counts to 0.
 */
#ifndef WEFT_TESTS_EXPLORE_INTERNAL_H
#define WEFT_TESTS_EXPLORE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/atomic.h"
#include "base/thread.h"
#include "explore.h"
#include "base/switch/switch.h"

enum {
	EXPLORE__MAIN = EXPLORE_THREADS_MAX, /* the slot of setup and check */
	EXPLORE__SLOTS,
	EXPLORE__ATOMS_MAX = 120,
	EXPLORE__STALE_MAX = 2,  /* stale reads of one atomic while spinning */
	EXPLORE__REPEATS_MAX = 2, /* of one operation before it counts as a spin */
	EXPLORE__LONELY_MAX = 300,
};

/* Operations beyond enum weft__atomic_kind.  Each is a choice point, too. */
enum {
	EXPLORE__PARK = WEFT__WRITE + 1,
	EXPLORE__UNPARK,
	EXPLORE__SIGNAL, /* write to an event descriptor */
	EXPLORE__RESET,  /* read of an event descriptor */
	EXPLORE__WAIT,
	EXPLORE__CLOSE,
	EXPLORE__BARRIER, /* a memory barrier in all threads */
	EXPLORE__HEAP,   /* alloc and release, with `reuse` only */
	EXPLORE__NOTE,   /* in the schedule only */
};

struct explore__place {
	const char *file; /* NULL: no access yet */
	int         line;
};

/* The operation that a thread is about to do, as far as the search needs it. */
struct explore__op {
	int       kind;
	int       order;
	int       failed; /* as in struct weft__atomic_call */
	uintptr_t addr;
};

/* What a thread has seen: for each atomic the oldest message that it may still read, and for
 * each thread how much of its plain accesses happened before. */
struct explore__view {
	int16_t seen[EXPLORE__ATOMS_MAX];
	int16_t clock[EXPLORE__SLOTS];
};

/* One value of one atomic. */
struct explore__message {
	uint64_t                    value;
	struct explore__message    *prev; /* next older message */
	const struct explore__view *view; /* released with the value, or NULL */
	int16_t                     time; /* index in the modification order */
	int16_t                     born; /* index in the order of execution */
	bool                        taken; /* a read-modify-write has read it */
};

struct explore__atom {
	uintptr_t                addr;
	uint32_t                 size;
	int16_t                  index;
	int16_t                  count; /* messages */
	struct explore__message *newest;
	uint64_t                 first; /* value before the execution */
	int16_t                  stamp[EXPLORE__SLOTS]; /* clock at the last access; 0: none */
	struct explore__place    place[EXPLORE__SLOTS];
	uint8_t                  stale[EXPLORE__SLOTS]; /* stale reads while spinning */
	uint32_t                 round[EXPLORE__SLOTS]; /* the round of the last stale read */
};

enum explore__state { EXPLORE__READY, EXPLORE__PARKED, EXPLORE__ENDED };

struct explore__slot {
	struct weft__context   context;
	struct weft__thread    thread;
	struct explore__view   view;
	struct explore__op     op;       /* about to be done; valid if READY */
	struct explore__place  last;     /* place of the last hooked access */
	enum explore__state    state;
	bool                   rested;   /* the context is at the start of its function */
	uintptr_t              edge;     /* stack addresses below are not in the model's frames */

	uint64_t deadline_ns;   /* while PARKED or waiting */
	int      wake_result;   /* the result of park */
	bool     expired;       /* a wait whose deadline has passed */

	/* Spinning; see search.c. */
	bool     guarded;
	bool     was_stale;     /* it has read a stale value since the last yield */
	uint32_t round;         /* yields so far */
	uint32_t mark;          /* others' writes when this round began */
	uint32_t bar;           /* it may continue when others' writes exceed this */
	uint32_t writes;        /* its own, if they changed a value */
	uint32_t lonely;
	struct explore__place spin_place; /* of the last operation, if that */
	uintptr_t             spin_addr;  /* changed nothing */
	int                   spin_kind;
	int                   spin_count; /* times in a row */

	int16_t  floor;         /* oldest message it may read, by `born`; see search.c */
};

enum explore__outcome {
	EXPLORE__DONE, EXPLORE__FAILED, EXPLORE__PRUNED, EXPLORE__REDUNDANT,
};

struct explore__run {
	const struct explore_model *model;
	struct explore__slot        slots[EXPLORE__SLOTS];
	struct weft__context        home;
	int                         current; /* slot */
	enum explore__outcome       outcome;
	bool                        active;  /* a model context is running */
	bool                        tracing;
	void                       *state;
	uint64_t                    now_ns;
	uint32_t                    writes;  /* of all threads, if they changed a value */
	int                         spurious;
};

extern struct explore__run explore__run;

static inline struct explore__slot *
explore__self(void)
{
	return &explore__run.slots[explore__run.current];
}

/* To be used first in each function that a model calls and that may switch to another thread.
 * It records where the stack frames of the caller end. */
#define explore__enter() \
	((void)(explore__self()->edge = (uintptr_t)__builtin_dwarf_cfa()))

static inline bool
explore__order_acquires(int order)
{
	return order == WEFT__ACQUIRE || order == WEFT__ACQ_REL
	       || order == WEFT__SEQ_CST;
}

static inline bool
explore__order_releases(int order)
{
	return order == WEFT__RELEASE || order == WEFT__ACQ_REL
	       || order == WEFT__SEQ_CST;
}

/* explore.c.  go(): switch to another slot.  stop(): abandon this execution. */
void explore__go(int slot);
_Noreturn void explore__stop(enum explore__outcome outcome);
bool explore__on_stack(uintptr_t addr, int *slot);

/* search.c.  point(): the caller is about to do `op`; returns when the search chooses the
 * caller.  block(): the caller has blocked or ended; returns when it is woken.  wake(): make a
 * blocked thread runnable.  choose(): choose one of `options`. */
void explore__search_begin(void);
void explore__search_rewind(void);
bool explore__search_next(void);
uint32_t explore__search_depth(void);
void explore__point(const struct explore__op *op);
void explore__block(void);
void explore__wake(int slot, int result);
int  explore__choose(int options);
void explore__spin(void);

/* memory.c */
void     explore__memory_begin(void);
uint64_t explore__atomic(const struct weft__atomic_call *call);
struct explore__atom *explore__atom_get(uintptr_t addr, uint32_t size);
uint32_t explore__atom_size(uintptr_t addr);
void     explore__atom_touch(struct explore__atom *atom,
                             struct explore__place place);
void     explore__fence(void);
void     explore__fence_all(void);
void     explore__view_join(struct explore__view *into,
                            const struct explore__view *from);
struct explore__view *explore__view_publish(void);
bool     explore__spin_same(const struct weft__atomic_call *call);
int16_t  explore__atom_count(uintptr_t addr);
void     explore__atoms_restore(void);
void     explore__atoms_released(uintptr_t addr, size_t size);

/* plain.c */
void explore__plain_begin(void);
void explore__plain(const struct weft__atomic_call *call);
void explore__plain_restore(void);
void explore__plain_released(uintptr_t addr, size_t size);

/* heap.c */
void  explore__heap_begin(void);
void *explore__heap_alloc(size_t size);
void *explore__heap_resize(void *mem, size_t size);
void  explore__heap_release(void *mem);
void  explore__heap_check(uintptr_t addr, size_t size, struct explore__place);
bool  explore__heap_owns(uintptr_t addr);
void  explore__heap_end(void);
void  explore__heap_label(uintptr_t addr, char *text, size_t size);

/* world.c */
const struct weft__sys *explore__sys(void);
void explore__world_begin(void);
bool explore__event_ready(uintptr_t event);

/* report.c */
void explore__trace_begin(void);
void explore__trace(int kind, struct explore__place place, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));
const char *explore__trace_text(void);
const char *explore__base_name(const char *file);
const char *explore__order_name(int order);
const char *explore__kind_name(int kind);
void explore__label(uintptr_t addr, char *text, size_t size);
const char *explore__slot_name(int slot);

/* weaken.c: replace an order of `call` if that order is being tested. */
void explore__weaken(struct weft__atomic_call *call);

#endif
