/* trace.h - a recording of what the process does.  Private.
 *
 * trace.c records events; trace_index.c and trace_write.c convert them to text.  Layers above
 * add their own events: threadlet_trace.c, dag_trace.c.
 *
 * Needs: base.  Thread: any, unless a comment says otherwise.
 */
#ifndef WEFT_LOOP_TRACE_H
#define WEFT_LOOP_TRACE_H

#include <weft/trace.h>
#include "base/build.h"
#include "base/lock.h"
#include "base/thread.h"

/* Process-wide words, read by all threads and hardly ever written. */
struct weft__program {
	weft__a32 forks;   /* counted in each forked child, once forks are watched */
	weft__a32 tracing; /* the ID of the recording, or 0 */
} __attribute__((aligned(64)));

WEFT__SHARED extern struct weft__program weft__program;

/* The ID of the recording, or 0.  Only a hint: callers use it to skip the exact check. */
static inline uint32_t
weft__tracing(void)
{
	return weft__count_get(&weft__program.tracing);
}

enum {
	WEFT__TRACE_NAME,   /* of a track; a text follows; key: the number to show */
	WEFT__TRACE_TURN,   /* one iteration; key: its number */
	WEFT__TRACE_WAIT,   /* of a loop */
	WEFT__TRACE_PHASE,  /* number: which phase; key: number of calls */
	WEFT__TRACE_POST,   /* what: its function; key: by which its RAN is found */
	WEFT__TRACE_RAN,    /* the same, when it ran */
	WEFT__TRACE_QUEUED, /* the same for a job of a pool */
	WEFT__TRACE_WORK,
	WEFT__TRACE_RUN,    /* of a threadlet, on its loop's track; key: its own; what: why it
	                       stopped running */
	WEFT__TRACE_WAITED, /* of a threadlet; what: what it waited for */
	WEFT__TRACE_BEGAN, WEFT__TRACE_ENDED, /* begin and end of a threadlet */
	WEFT__TRACE_STEP,   /* of a graph; its name follows; number: 1 if it failed */
	WEFT__TRACE_EDGE,   /* from `begin_ns` on the track `key` */
};

struct weft__trace_event {
	uint64_t    begin_ns, end_ns;
	uint64_t    key;
	const void *what;   /* code address, or a static text */
	uint32_t    track;
	uint16_t    kind;   /* WEFT__TRACE_* */
	uint16_t    number;
};

#define WEFT__TRACE_TEXT sizeof(struct weft__trace_event) /* bytes of a text; longer ones are cut */

/* Track numbers: a loop has its ID; threads and threadlets are numbered, plus this bit. */
enum {
	WEFT__TRACK_LOOP      = 0,
	WEFT__TRACK_THREAD    = 1 << 28,
	WEFT__TRACK_THREADLET = 1 << 29,
	WEFT__TRACK_MASK      = (1 << 28) - 1,
};

/* The name of a track. */
struct weft__trace_name {
	uint32_t    kind;   /* WEFT__TRACK_* */
	uint64_t    number; /* a number to show as well */
	const char *text;   /* or "" */
	const void *code;   /* code address to show if the text is "", or NULL */
};

/* A mark holds the track of an object and the recording's ID in one word.  Returns `mark` if
 * it is of the active recording; else a new mark, and the name is recorded; 0: nothing can be
 * recorded. */
uint64_t weft__trace_mark(uint64_t mark, const struct weft__trace_name *name);

/* The mark of the caller: the threadlet, the loop, or the thread. */
WEFT__SHARED uint64_t weft__trace_here(void);

/* Record an event on the track of a mark, if the mark is of the active recording and the event
 * did not begin before it; `text` follows, or NULL.  False: the event was not recorded. */
WEFT__SHARED bool weft__trace_note(uint64_t mark, struct weft__trace_event event,
                                   const char *text);

/* The same for what the caller has done from `begin_ns` until now. */
void weft__trace_did(int kind, uint64_t key, const void *what, uint64_t begin_ns);

/* In a forked child: nothing is recorded. */
void weft__trace_forked(void);

/* --- loops; the runner's ------------------------------------------------- */

struct weft__loop_trace {
	uint64_t mark;
	uint64_t at_ns;    /* when the last phase ended */
	uint64_t begin_ns; /* begin of this part of the iteration, up to its wait or after it */
	bool     did;      /* this part had a phase */
};

/* An iteration begins, and a recording is active, or was in the iteration before. */
void weft__trace_turn(weft_loop *loop);

/* A phase has ended in which `calls` calls were made. */
void weft__trace_phase(weft_loop *loop, int phase, uint32_t calls);

/* The loop is about to block; it has been woken; a run has ended. */
void weft__trace_sleep(weft_loop *loop);
void weft__trace_woke(weft_loop *loop);
void weft__trace_rest(weft_loop *loop);

/* --- recordings ----------------------------------------------------------- */

#define WEFT__TRACE_CHUNK ((size_t)16384) /* bytes */
#define WEFT__TRACE_EVENTS \
	((WEFT__TRACE_CHUNK - sizeof(uint64_t)) / sizeof(struct weft__trace_event))

/* Belongs to one thread.  Only the last chunk of a thread is not full. */
struct weft__trace_chunk {
	uint64_t count;
	struct weft__trace_event events[WEFT__TRACE_EVENTS];
};

struct weft__trace_text; /* of trace_text.h */

struct weft_trace {
	uint32_t  id;
	uint32_t  forks;        /* as in a loop */
	uint64_t  begin_ns;
	uint32_t  chunk_max;
	weft__a32 chunk_count;  /* chunks taken; may exceed chunk_max */
	weft__a32 threads, threadlets; /* number of those that have tracks */
	weft__a64 dropped;
	struct weft__trace_chunk *chunks;
	struct weft__trace_text  *text; /* while the recording is read, or NULL */
};

/* Whether the recording is active; and free its text state. */
bool weft__trace_is_on(const weft_trace *trace);
void weft__trace_drop_text(weft_trace *trace);

#endif
