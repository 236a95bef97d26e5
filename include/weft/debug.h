/* weft/debug.h - look into a running program: its threadlets, dumps, symbols, stack overflows.
 *
 * A program shows its own loops with weft/metrics.h, and records events with weft/trace.h.
 *
 * Not included by weft/weft.h.
 */
#ifndef WEFT_DEBUG_H
#define WEFT_DEBUG_H

#include <weft/base.h>
#include <weft/threadlet.h>

WEFT_BEGIN

typedef struct weft_threadlet_info {
	weft_threadlet id;
	char           name[32];
	const char    *state;       /* "running", "ready", "waiting" */
	const char    *waits_for;   /* "fd", "recv", "join", "scope", ...; "" if nothing */
	int64_t        waits_on;    /* the fd, threadlet or address; or 0 */
	uint64_t       since_ns;    /* when it last suspended, or was started */
	uint64_t       deadline_ns; /* of the wait, or WEFT_NEVER */
	const void    *spawned_at;  /* return address of weft_go() */
	size_t         stack_bytes; /* size of its stack */
	size_t         stack_used;  /* bytes in use */
	size_t         stack_high;  /* most bytes of the stack ever used, in whole pages, also by
	                             * earlier threadlets that had this stack */
	const void    *frames[16];  /* call stack, innermost first; unused entries are NULL */
	const void    *fn;          /* the function it was started with */
	uint64_t       spare[3];    /* room for later versions */
} weft_threadlet_info;

/* List up to `max` threadlets of the loop with the ID `loop_id` (weft_loop_list()), at most 64
 * per call, newest first, continuing at `*cursor` (begin with 0).  The loop may be freed at any
 * time.  Each threadlet that exists from the first call to the last is listed once.  Threadlets
 * that start between these calls, or are still being started by another thread, are not listed.
 * A running loop copies the entries itself, between two callbacks.
 * With glibc on x86-64, call stacks are found by unwind tables; a threadlet that lists its own
 * loop needs about 10 KiB of stack for that.  Elsewhere they are found by frame pointers, and
 * functions compiled without frame pointers may be missing.
 * Returns the count, 0 at the end; WEFT_ENOENT if the loop is gone.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_threadlet_list(uint64_t loop_id, uint64_t *cursor,
                                 weft_threadlet_info *out, size_t max,
                                 uint64_t deadline_ns);

/* Describe a code address as dumps do: "function+0x1f (file.c:12)", static functions included.
 * For a return address the line is that of the call.  If there is no line table, the text is
 * "function+0x1f (library.so)"; if there is no symbol either, "program+0x1234", with an offset
 * for addr2line(1); else the address alone.  The text is cut to `size` bytes with the NUL.  The
 * first lookup of an address reads the program's files and takes milliseconds.
 * Returns the length.
 * Thread: any.  Blocks: the thread, on files.  Since: 0.1. */
WEFT_API size_t weft_symbol(const void *address, char *buf, size_t size);

/* Write a list of all threadlets of all loops as text to the descriptor `fd`.  If a loop does not
 * answer within a second, because something blocks it, the list has its name but not its
 * threadlets.  In a callback the list has only the threadlets of the callback's loop.
 * Returns the number of threadlets, or a write error.
 * Thread: any.  Blocks: waits, and blocks the thread on `fd`.  Since: 0.1. */
WEFT_API int weft_dump(int fd);

/* Install handlers for SIGSEGV and SIGBUS that report a stack overflow (WEFT_REPORT_OVERFLOW),
 * with the threadlet and where it was started, before the process dies.  After the report the
 * fault is repeated and goes to the previous handler, if there is one.  Faults that are not stack
 * overflows go to the previous handler without a report.  Threads that run threadlets get a
 * signal stack, unless they have one.  May be called any number of times; weft_main() calls it.
 * Returns 0, or an error of sigaltstack(2).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_catch_overflow(void);

WEFT_END
#endif
