/* thread.h - what the library knows of each OS thread: one struct, one pointer.
 *
 * There is no other thread-local variable, so that a simulated thread is a stack
 * and this pointer.  The struct is made at a thread's first use of the library and
 * ended when the thread ends.
 *
 * Needs: sys.h.  Thread: its own.
 */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include "base/sys.h"

#define WEFT__TEXT_BYTES 1024 /* of a detail, with its NUL */

struct weft__threadlet;
struct weft__worker;

/* The last failure: a threadlet begins with its own, so that it changes with it. */
struct weft__failure {
	const char *text;   /* static, or of `words`; or NULL */
	struct weft__words *words; /* of weft_fail(), made at first need */
};

struct weft__words {
	int  error; /* that they are of, or 0 */
	char text[WEFT__TEXT_BYTES];
};

struct weft__thread {
	weft_loop  *loop;   /* that runs here, or NULL */
	struct weft__threadlet *threadlet; /* the same */
	struct weft__failure    failure;   /* outside of threadlets */
	void      (*end)(struct weft__thread *thread); /* of upper layers, or NULL */
	uint64_t    post_id; /* the inbox last posted to, and this thread's lane */
	void       *post_lane;
	void       *lanes;  /* all of them; the three are of loop/lane.c */
	uint32_t    chance; /* of weft__chance() */
	struct weft__worker *worker; /* of work/pool.c, if this is a pool's; or NULL */
	int       (*canceled)(void *arg); /* what weft_canceled() asks here, or NULL; */
	void       *canceled_arg;         /* of dag/ */
	void       *ending; /* promises that wait for their end; of promise/reference.c, */
	uint32_t    ends;   /* with how many are being ended, each by the one before */
	const char *name;   /* of a thread of a pool, its pool's; or NULL */
	uint64_t    trace_mark;  /* of loop/trace.c, as the next two */
	void       *trace_chunk;
	uint32_t    trace_id;
	void       *signal_stack; /* for signal handlers; NULL: it is not ours */
	bool        has_signal_stack;
};

/* initial-exec: one instruction instead of a call, also in the shared library. */
extern _Thread_local struct weft__thread *weft__thread_ptr
	__attribute__((tls_model("initial-exec")));

/* The calling thread's, or NULL: not made yet.  Read where it is asked for: a threadlet
 * may go on in another thread than it was suspended in, and a compiler takes the thread
 * for the same all through a function.  On arm64 it keeps what it has read of that; on
 * x86-64 there is nothing to keep. */
static inline struct weft__thread *
weft__thread_here(void)
{
#if defined(__aarch64__)
	struct weft__thread *self;
	uintptr_t thread;

	__asm__ volatile("mrs	%1, tpidr_el0\n\t"
	                 "adrp	%0, :gottprel:weft__thread_ptr\n\t"
	                 "ldr	%0, [%0, :gottprel_lo12:weft__thread_ptr]\n\t"
	                 "ldr	%0, [%1, %0]"
	                 : "=&r"(self), "=&r"(thread)
	                 :
	                 : "memory");
	return self;
#else
	return weft__thread_ptr;
#endif
}

static inline struct weft__thread *
weft__thread_self(void)
{
	struct weft__thread *self = weft__thread_here();

	return __builtin_expect(self != NULL, 1) ? self : weft__sys->thread_self();
}

static inline struct weft__failure *
weft__failure_of(struct weft__thread *thread)
{
	return thread->threadlet
	               ? (struct weft__failure *)(void *)thread->threadlet
	               : &thread->failure;
}

/* A number by chance: not for secrets. */
uint32_t weft__chance(void);

/* Where the calling thread's errno is; and two words of the C++ runtime, those caught
 * and how many fly, or NULL if the program has none. */
int   *weft__errno(void);
void **weft__exceptions(void);

/* Give up what `thread` holds; for the sys table, as the thread ends. */
void weft__thread_end(struct weft__thread *thread);

/* Out of the way of what is done often. */
#define WEFT__SELDOM __attribute__((cold, noinline))

/* A call that is made very often, with all that it calls in one piece; but for what is not
 * so often done on the way. */
#define WEFT__WHOLE __attribute__((flatten))
#define WEFT__APART __attribute__((noinline))

/* What was said of `error`, if weft_fail() was the last to fail, and with that; or NULL. */
const char *weft__said(int error);

/* Have `to` say what the thread says now of `error`, if it does. */
void weft__pass_words(int error, struct weft__failure *to);

/* Have `to`, whose owner does not run or is the caller, say `text`, copied, of `error`;
 * without a text, or memory for it, weft_strerror(). */
WEFT__SELDOM void weft__pass_text(int error, const char *text, struct weft__failure *to);

/* A copy of weft_detail(), to be released; NULL if that is empty or was said of another
 * error than `error`, or without memory. */
WEFT__SELDOM char *weft__copy_detail(int error);

/* Fail with a text that is static: sets weft_detail() and returns `error`. */
WEFT__SELDOM int weft__fail(int error, const char *text);

/* The same for misuse of the API; a debug build aborts with the text. */
WEFT__SELDOM int weft__misuse(int error, const char *text);

/* Report a misuse by the code that called the library, and abort; of hooks.c. */
_Noreturn void weft__misuse_abort(const char *what);

#endif
