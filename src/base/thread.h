/* thread.h - the per-thread state of the library: one struct, one pointer.
 *
 * There is no other thread-local variable, so a simulated thread is just a stack and this
 * pointer.  The struct is created when a thread first uses the library and destroyed when the
 * thread exits.
 *
 * Needs: sys.h.  Thread: its own.
 */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include "base/build.h"
#include "base/sys.h"

#define WEFT__TEXT_BYTES 1024 /* of a weft_detail() text, including the NUL */

struct weft__threadlet;
struct weft__worker;

/* The last failure.  A threadlet struct begins with one, so each threadlet has its own. */
struct weft__failure {
	const char *text;   /* static, or words->text, or NULL */
	struct weft__words *words; /* buffer of weft_fail(), allocated on first use */
};

struct weft__words {
	int  error; /* the error that `text` describes, or 0 */
	char text[WEFT__TEXT_BYTES];
};

struct weft__thread {
	weft_loop  *loop;   /* running on this thread, or NULL */
	struct weft__threadlet *threadlet; /* running on this thread, or NULL */
	struct weft__failure    failure;   /* used outside of threadlets */
	void      (*end)(struct weft__thread *thread); /* cleanup by upper layers, or NULL */
	uint64_t    post_id; /* ID of the inbox last posted to; its producer queue follows */
	void       *post_producer;
	void       *producers;  /* all producer queues of this thread; see loop/post/producer.c */
	uint32_t    chance; /* state of weft__chance() */
	struct weft__worker *worker; /* set on threads of a work pool (work/pool.c), else NULL */
	int       (*canceled)(void *arg); /* called by weft_check_canceled(), or NULL; set by */
	void       *canceled_arg;         /* work/ and dag/ */
	void       *ending; /* promises queued for destruction (promise/reference.c) */
	uint32_t    ends;   /* nested promise destructions in progress */
	const char *name;   /* on a pool's thread the name of its pool, else NULL */
	uint64_t    trace_mark;  /* used by loop/observe/trace.c, like the next two */
	void       *trace_chunk;
	uint32_t    trace_id;
	void       *signal_stack; /* allocated by the library, or NULL */
	bool        has_signal_stack;
};

/* The initial-exec model needs one instruction instead of a call, in the shared library too. */
WEFT__SHARED extern _Thread_local struct weft__thread *weft__thread_ptr
	__attribute__((tls_model("initial-exec")));

/* The calling thread's struct, or NULL if it does not exist yet.  Every call must read the
 * thread pointer again: a threadlet may resume on another thread, while a compiler assumes that
 * a function stays on one thread.  On arm64 the compiler caches the address of thread-local
 * storage, so the read is written in assembly; on x86-64 there is nothing to cache. */
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

/* A pseudo-random number; not for secrets. */
WEFT__SHARED uint32_t weft__chance(void);

/* The address of the calling thread's errno; and the address of the C++ runtime's two
 * per-thread words (caught exceptions, number of uncaught exceptions), or NULL in a program
 * without C++. */
int   *weft__errno(void);
void **weft__exceptions(void);

/* Release everything that `thread` holds; called by the sys table as the thread exits. */
void weft__thread_end(struct weft__thread *thread);

/* Keep rarely used code out of hot paths. */
#define WEFT__COLD __attribute__((cold, noinline))

/* WEFT__FLATTEN inlines everything that a hot function calls; WEFT__NOINLINE excludes a callee that
 * is called rarely. */
#define WEFT__FLATTEN __attribute__((flatten))
#define WEFT__NOINLINE __attribute__((noinline))

/* The text of the last failure, if weft_fail() has set it for this error; else NULL.  Returns a
 * text only once. */
const char *weft__take_text(int error);

/* Copy the calling thread's text for `error` to `to`, if weft__take_text() returns one. */
void weft__pass_words(int error, struct weft__failure *to);

/* Set the failure text of `to` to a copy of `text`.  The owner of `to` must be the caller, or
 * not running.  Without a text, or without memory, the text is that of weft_strerror(). */
WEFT__COLD void weft__pass_text(int error, const char *text, struct weft__failure *to);

/* A copy of weft_detail(), to be released by the caller.  NULL if the text is empty, if
 * weft_fail() has set it for another error than `error`, or if there is no memory. */
WEFT__COLD char *weft__copy_detail(int error);

/* Fail with a static text: sets weft_detail() and returns `error`. */
WEFT__SHARED WEFT__COLD int weft__fail(int error, const char *text);

/* Like weft__fail(), for misuse of the API; a debug build aborts with the text. */
WEFT__SHARED WEFT__COLD int weft__misuse(int error, const char *text);

/* The same two, with the text "call: reason", for functions that several calls share. */
WEFT__COLD int weft__fail_in(int error, const char *call, const char *reason);
WEFT__COLD int weft__misuse_in(int error, const char *call, const char *reason);

/* Report misuse by the code that called the library, and abort (hooks.c). */
_Noreturn void weft__misuse_abort(const char *what);

#endif
