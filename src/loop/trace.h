/* trace.h - a recording of what the process does.  Private.
 *
 * trace.c writes events down; trace_index.c and trace_write.c make text of them.  Layers
 * above add what they know: threadlet/trace.c, dag/trace.c.
 *
 * Needs: base.  Thread: any, unless a comment says otherwise.
 */
#ifndef WEFT_LOOP_TRACE_H
#define WEFT_LOOP_TRACE_H

#include <weft/trace.h>
#include "base/lock.h"
#include "base/thread.h"

/* What one word each of the whole process says, read by all and hardly ever written. */
struct weft__program {
	weft__a32 forks;   /* counted in each forked child, once that is watched */
	weft__a32 tracing; /* the number of the recording, or 0 */
} __attribute__((aligned(64)));

extern struct weft__program weft__program;

/* The number of the recording, or 0; a hint, which decides nothing but whether to ask. */
static inline uint32_t
weft__tracing(void)
{
	return weft__count_get(&weft__program.tracing);
}

enum {
	WEFT__TRACE_NAME,   /* of a track; a text follows.  key: the number to be told */
	WEFT__TRACE_TURN,   /* key: its number */
	WEFT__TRACE_WAIT,   /* of a loop */
	WEFT__TRACE_PHASE,  /* number: which; key: calls */
	WEFT__TRACE_POST,   /* what: its function; key: by which the run is found */
	WEFT__TRACE_RAN,    /* the same */
	WEFT__TRACE_QUEUED, /* the same for work */
	WEFT__TRACE_WORK,
	WEFT__TRACE_RUN,    /* of a threadlet, on its loop's track.  key: its own; what: why
	                       it has left */
	WEFT__TRACE_WAITED, /* of a threadlet; what: for */
	WEFT__TRACE_BEGAN, WEFT__TRACE_ENDED, /* the same, as moments */
	WEFT__TRACE_STEP,   /* of a graph; its name follows.  number: 1 if it failed */
	WEFT__TRACE_EDGE,   /* from `begin_ns` on the track `key` */
};

struct weft__trace_event {
	uint64_t    begin_ns, end_ns;
	uint64_t    key;
	const void *what;   /* of code, or a static text */
	uint32_t    track;
	uint16_t    kind;   /* WEFT__TRACE_* */
	uint16_t    number;
};

#define WEFT__TRACE_TEXT sizeof(struct weft__trace_event) /* bytes of a text, cut */

/* Tracks: of loops by number; the others are counted, and have this. */
enum {
	WEFT__TRACK_LOOP      = 0,
	WEFT__TRACK_THREAD    = 1 << 28,
	WEFT__TRACK_THREADLET = 1 << 29,
	WEFT__TRACK_MASK      = (1 << 28) - 1,
};

/* Who has a track, and how it is called. */
struct weft__trace_name {
	uint32_t    kind;   /* WEFT__TRACK_* */
	uint64_t    number; /* that is told besides */
	const char *text;   /* or "" */
	const void *code;   /* in place of that, or NULL */
};

/* A mark says which track something has, in which recording: both in one word.  Returns
 * `mark` if it is of the present one; else a new one, and the name is written down; 0: it
 * cannot be recorded. */
uint64_t weft__trace_mark(uint64_t mark, const struct weft__trace_name *name);

/* That of whoever calls: the threadlet, the loop, or the thread. */
uint64_t weft__trace_here(void);

/* Write an event down on the track of a mark, if that is of the present recording and the
 * event has not begun before; `text` follows, or NULL.  False: it was not, or is dropped. */
bool weft__trace_note(uint64_t mark, struct weft__trace_event event, const char *text);

/* The same for what the caller has just done since `begin_ns`. */
void weft__trace_did(int kind, uint64_t key, const void *what, uint64_t begin_ns);

/* In a forked child nothing is recorded. */
void weft__trace_forked(void);

/* --- loops; the runner's ------------------------------------------------- */

struct weft__loop_trace {
	uint64_t mark;
	uint64_t at_ns;    /* when the last phase ended */
	uint64_t begin_ns; /* of this part of the turn, up to its wait or after it */
	bool     did;      /* it had a phase */
};

/* A turn begins, and something is recorded, or was. */
void weft__trace_turn(weft_loop *loop);

/* A phase has ended, in which so many calls were made. */
void weft__trace_phase(weft_loop *loop, int phase, uint32_t calls);

/* It blocks, and has been woken; a run has ended. */
void weft__trace_sleep(weft_loop *loop);
void weft__trace_woke(weft_loop *loop);
void weft__trace_rest(weft_loop *loop);

/* --- recordings ----------------------------------------------------------- */

#define WEFT__TRACE_CHUNK ((size_t)16384) /* bytes */
#define WEFT__TRACE_EVENTS \
	((WEFT__TRACE_CHUNK - sizeof(uint64_t)) / sizeof(struct weft__trace_event))

/* Of one thread, and full but for its last one. */
struct weft__trace_chunk {
	uint64_t count;
	struct weft__trace_event events[WEFT__TRACE_EVENTS];
};

struct weft__trace_text; /* of trace_text.h */

struct weft_trace {
	uint32_t  id;
	uint32_t  forks;        /* as in loops */
	uint64_t  begin_ns;
	uint32_t  chunk_max;
	weft__a32 chunk_count;  /* taken; may be beyond the maximum */
	weft__a32 threads, threadlets; /* that have tracks */
	weft__a64 dropped;
	struct weft__trace_chunk *chunks;
	struct weft__trace_text  *text; /* while it is read, or NULL */
};

/* Whether somebody may still write; and the end of its text. */
bool weft__trace_is_on(const weft_trace *trace);
void weft__trace_drop_text(weft_trace *trace);

#endif
