/* backend.h - how a loop waits for descriptors: one table of functions.
 *
 * The contract is completion: the loop submits an op and later gets it back with its result.
 * Readiness backends get that from ready.c, and add only arm() and wait().
 *
 *   1. A submitted op finishes exactly once.  An op with many results delivers the others before
 *      it finishes.  Finished ops are appended to `done` or returned by next().  The backend
 *      itself calls no callback.
 *   2. cancel() is a request: the op finishes with `why`, or with a result that came first.
 *   3. wait() returns when something happened, when it was woken, or at the timeout.  It may
 *      also return spuriously.
 *   4. Any thread may call wake(), from open to close.
 *   5. wait() may begin to fail permanently, for example when the program forbids itself a
 *      system call.  The table is then replaced; the descriptors for wake() stay.
 *
 * Needs: timer, base.  Owned by: one loop, embedded.  Thread: the loop's, except for wake() and
 * show().
 */
#ifndef WEFT_BACKEND_BACKEND_H
#define WEFT_BACKEND_BACKEND_H

#include <weft/watch.h>
#include "backend/fds.h"
#include "backend/backend_op.h"

#define WEFT__EVENTS_MAX 256u /* at most this many are fetched by one wait */
#define WEFT__GONE       0x4000u /* readiness bit: the descriptor now refers to another file */

/* The token of a watch.  0: not started.  With ENDED the watch is in the list of watches to be
 * called, and the upper half holds the error. */
#define WEFT__WATCH_STARTED 1u
#define WEFT__WATCH_ENDED   2u

struct weft__backend;

/* Counters and status of a backend, from its creation on.  Written by the loop's thread, read
 * by any thread.  A text is written before its pointer, and the pointer before the name (B,
 * release).  A text does not change after that. */
struct weft__backend_counters {
	weft__a64  syscalls;   /* made for the loop, on its thread */
	weft__a32  fds;        /* descriptors with a waiter */
	weft__aptr name;       /* 0: not open */
	weft__aptr reason;     /* points to one of the texts: why this backend was chosen */
	char       texts[2][96]; /* when it was opened, and since it failed */
};

/* A descriptor that became ready, as fetched from the kernel. */
struct weft__event {
	int32_t  fd;
	uint32_t generation;
	uint16_t ready; /* WEFT_READABLE, ... */
	uint8_t  directions; /* those still to be inspected: bit 0 read, bit 1 write */
	uint8_t  tries; /* results in a row, of an op with many results */
};

/* What to do about an event: call a watch with `ready`, or deliver the result of an op. */
struct weft__ready {
	weft_watch      *watch;
	uint32_t         ready;
	struct weft__op *op;
};

struct weft__backend_ops {
	const char *name;
	const char *call; /* the system call that wait() makes, for reports */
	bool        edge; /* edge-triggered, unless ready.c requests levels */
	bool        deaf; /* fd() reports only show(), not I/O: the outer loop must poll at
	                   * intervals */
	bool        files; /* accepts file ops; otherwise the blocking pool runs them */
	bool        shares; /* shares memory with the kernel, whose changes valgrind does not see */
	bool        batches; /* one system call submits many ops: queueing beats trying at once */

	int  (*open)(struct weft__backend *backend); /* 0 or -errno */
	void (*close)(struct weft__backend *backend); /* frees `state`; may be NULL */

	void (*submit)(struct weft__backend *backend, struct weft__op *op);
	void (*cancel)(struct weft__backend *backend, struct weft__op *op, int why);

	/* Wait for events, and fetch them for next(); timeout_ns as in the sys table.  0 or
	 * -errno. */
	int  (*wait)(struct weft__backend *backend, int64_t timeout_ns);
	void (*wake)(struct weft__backend *backend);

	/* Take the next thing to do from what was fetched; false if there is none.  Skips
	 * watches and ops that were stopped, canceled or closed since. */
	bool (*next)(struct weft__backend *backend, struct weft__ready *out);

	/* Hand queued requests to the kernel.  May be NULL. */
	void (*flush)(struct weft__backend *backend);

	/* fd() returns a descriptor that is readable while wait() would find something, and from
	 * a wake() to the next wait(); always the same descriptor, or -errno.  NULL if the backend
	 * has none.  show() makes the descriptor readable until the next wait(), from any
	 * thread. */
	int  (*fd)(struct weft__backend *backend);
	void (*show)(struct weft__backend *backend);

	/* Whether requests are queued that the kernel has not got, or completions have arrived
	 * that next() has not returned.  NULL: never. */
	bool (*has_work)(struct weft__backend *backend);

	/* `op` is with the kernel: whether its file is the one that op->fd refers to now.  True
	 * if that cannot be determined.  NULL if the kernel never holds an op. */
	bool (*has_file)(struct weft__backend *backend, struct weft__op *op);

	/* Request the end of `op`, which is with the kernel or queued for it: it finishes as
	 * after cancel().  The op has already left its directions.  NULL if the kernel never holds
	 * an op. */
	void (*evict)(struct weft__backend *backend, struct weft__op *op, int why);

	/* wait() keeps failing with `error`: continue with another table.  0 or -errno.  NULL
	 * if there is no alternative. */
	int (*fall)(struct weft__backend *backend, int error);

	/* For ready.c: register with the kernel what to report for `fd` (WEFT_READABLE,
	 * WRITABLE, EDGE; 0 removes it).  0 or -errno; -EPERM for files; -ENOENT if something
	 * is armed but `fd` now refers to another file. */
	int  (*arm)(struct weft__backend *backend, int fd, struct weft__fd *entry,
	            uint32_t want);
};

struct weft__backend {
	const struct weft__backend_ops *ops; /* NULL: not open */
	const struct weft__backend_ops *waker; /* the table as opened; wake() and show() by other
	                                        * threads use it */
	struct weft__backend_counters *counters; /* its owner's; set before opening */
	const char            *at;     /* the step that open() is about to take, for the reason */
	struct weft__fds       fds;
	struct weft__node_list done;   /* finished ops */
	struct weft__event    *events; /* WEFT__EVENTS_MAX */
	uint32_t               events_count, events_at;
	uint32_t               events_max; /* limit for one wait */
	bool                   more;   /* after a wait: the kernel may have more to report */
	bool                   timed_out; /* after a wait: nothing was fetched before the timeout */
	bool                   events_fresh; /* not all events of the last wait were inspected
	                                      * yet; else the events were recorded again by
	                                      * ready.c since */
	weft_watch            *ended;  /* ended watches to be called; linked by `spare` */
	void                  *buffer; /* for receive_multi; allocated on first use */
	const void            *data;   /* the bytes of the current result of a receive_multi */
	struct weft__node_list closing; /* close ops that wait for ops on their descriptor */
	void                  *fetched; /* the buffer for epoll_wait(2) */
	int                    fd;     /* the epoll descriptor, or -1 */
	int                    outer_fd; /* created by fd(), or -1 */
	int                    wake_fd[2]; /* a pipe: read and write end; or [0] is an eventfd */
	void                  *state;  /* private to the backend */
	bool                   movable; /* requested: any thread may wait, one at a time */
	bool                   binds;  /* only the thread that waits first may wait later */
	uint32_t               always; /* number of watches on files, which are always ready */
	uint32_t               requests; /* number of ops without a direction: file ops, and
	                                  * evicted ops */
	struct weft__node_list throttled; /* accepts that found no free descriptor */
	uint32_t               failures; /* consecutive failures of wait() */
	int                    broken; /* the permanent error of wait(), if there was no
	                                * alternative; or 0 */
	uint64_t               sheds;  /* how often an accept was throttled */
	int                    received_fd; /* the last received descriptor plus 1, or 0; see
	                                     * fd_pass.c */
};

/* The sys table, counting one system call.  Wakes by other threads are not counted. */
static inline const struct weft__sys *
weft__kernel(const struct weft__backend *backend)
{
	weft__count(&backend->counters->syscalls, 1);
	return weft__sys;
}

/* Record which file `fd` refers to, for waiters that have nothing armed. */
static inline void
weft__fd_identify(const struct weft__backend *backend, int fd, struct weft__fd *entry)
{
	int64_t now = weft__kernel(backend)->identity(fd);

	entry->identity = now < 0 ? 0 : (uint32_t)now;
}

/* Whether `fd` now refers to another file than the one recorded in `entry`.  False if that
 * cannot be determined. */
static inline bool
weft__fd_is_other(const struct weft__backend *backend, int fd,
                  const struct weft__fd *entry)
{
	int64_t now = entry->identity ? weft__kernel(backend)->identity(fd) : 0;

	return now == -EBADF || (now > 0 && (uint32_t)now != entry->identity);
}

/* Whether the kernel must be polled. */
static inline bool
weft__backend_is_used(const struct weft__backend *backend)
{
	return backend->fds.in_use > 0 || backend->requests > 0;
}

/* Open the backend of that name, or with NULL the best one that opens here. */
int  weft__backend_open(struct weft__backend *backend, const char *name, bool movable);
void weft__backend_close(struct weft__backend *backend);

/* wait() fails permanently with `error`: continue with another way to wait.  If there is none,
 * end all waiters, and all that come later, with the error. */
void weft__backend_fall(struct weft__backend *backend, int error);

/* Whether this build has a backend of that name. */
bool weft__backend_exists(const char *name);

/* Set the result of `op`, and append it to the list of finished ops. */
void weft__backend_finish(struct weft__backend *backend, struct weft__op *op,
                          int64_t result);

/* --- ready.c ------------------------------------------------------------ */

void weft__ready_submit(struct weft__backend *backend, struct weft__op *op);
void weft__ready_cancel(struct weft__backend *backend, struct weft__op *op, int why);

/* Record that `fd` is ready; for wait(). */
void weft__ready_note(struct weft__backend *backend, int fd, uint32_t generation,
                      uint32_t ready);

bool weft__ready_next(struct weft__backend *backend, struct weft__ready *out);

/* Retry accepts that found no free descriptor. */
void weft__ready_resume(struct weft__backend *backend);

/* Start, change or stop a watch on `fd`.  0 or an error. */
int  weft__ready_watch(struct weft__backend *backend, weft_watch *watch, int fd,
                       uint32_t events);
void weft__ready_unwatch(struct weft__backend *backend, weft_watch *watch);

/* Record the watched files as ready, before a wait. */
void weft__ready_note_files(struct weft__backend *backend);

/* `fd` is about to be closed: end its waiters with WEFT_ESHUTDOWN, and drop everything known
 * and fetched about it. */
void weft__ready_forget(struct weft__backend *backend, int fd);

/* Make `directions` of `fd`, which has an entry, available to `newcomer`: evict their waiters if
 * those wait for another file than `fd` refers to now.  0 or WEFT_EBUSY. */
int  weft__ready_claim(struct weft__backend *backend, int fd, uint32_t directions,
                       uintptr_t newcomer);

/* End the waiters in `directions` of `fd` with `why`, and drop what was armed and
 * fetched for `fd`.  The second does so, with WEFT_EBADF, for each waiter except `newcomer` that
 * waits for another file than `fd` refers to now. */
void weft__ready_evict(struct weft__backend *backend, int fd, uint32_t directions, int why);
void weft__ready_evict_stale(struct weft__backend *backend, int fd, uintptr_t newcomer);

/* Whether `op` is the waiter in its direction.  An op that the kernel still has, but that was
 * evicted, is not. */
bool weft__ready_has(struct weft__backend *backend, const struct weft__op *op);

/* Queue the call of an ended watch, with `why`.  The second also removes it from its
 * directions. */
void weft__watch_queue_end(struct weft__backend *backend, weft_watch *watch, int why);
void weft__watch_evict(struct weft__backend *backend, weft_watch *watch, int why);

/* The waiter in a direction of `fd`, or NULL. */
weft_watch      *weft__ready_watch_at(struct weft__backend *backend, int fd, int direction);
struct weft__op *weft__ready_op_at(struct weft__backend *backend, int fd, int direction);

/* Convert the revents of poll(2). */
uint32_t weft__ready_of_poll(int revents);

/* Enter or leave an op's directions; for backends that wait for the op themselves. */
struct weft__fd *weft__ready_take(struct weft__backend *backend, struct weft__op *op);
void weft__ready_leave(struct weft__backend *backend, struct weft__op *op);

/* Make an op's system call.  Returns its result, or -EAGAIN if it would block. */
int64_t weft__ready_try(struct weft__backend *backend, struct weft__op *op);

/* Update descriptor state after a result: accept and connect make a descriptor owned. */
void weft__ready_update_state(struct weft__backend *backend, const struct weft__op *op,
                              int64_t result);

/* Whether an accept failed for lack of descriptors or memory; and keep such an accept until
 * weft__ready_resume(). */
bool weft__ready_is_exhausted(int64_t result);
void weft__ready_throttle_accept(struct weft__backend *backend, struct weft__op *op);

/* Close op->fd once it has no waiters, and finish `op` with the result. */
void weft__ready_close(struct weft__backend *backend, struct weft__op *op);

/* Whether `op` may wait on its descriptor now.  0 or WEFT_EBUSY. */
int  weft__ready_is_free(struct weft__backend *backend, const struct weft__op *op);

/* The peer of `fd` has closed for sending: a short read no longer means that nothing is left to
 * read. */
void weft__ready_ending(struct weft__backend *backend, int fd);

/* This loop owns `fd` from now on; `what` is WEFT__FD_STREAM, PLAIN or RECEIVES_FDS, or 0.  0,
 * or WEFT_ENOMEM, WEFT_EBUSY.  The second gives up `fd`, on which nothing has waited here. */
int  weft__ready_own(struct weft__backend *backend, int fd, uint16_t what);
void weft__ready_disown(struct weft__backend *backend, int fd);

/* Throttle a receive with many results, or let it continue, also with what has arrived
 * meanwhile.  0, or an error: then the receive stays throttled. */
int  weft__ready_throttle_recv(struct weft__backend *backend, struct weft__op *op, bool on);

/* From now on receives on `fd`, a Unix stream, also accept descriptors. */
void weft__ready_receive_fds(struct weft__backend *backend, int fd);

/* Try at once to receive for a receive_multi that waits, or to send on an owned descriptor;
 * unless `must` is set, only if success is likely.  Returns the count or an error: -EAGAIN if the
 * call would block or was not made, also because the kernel has the op. */
int64_t weft__ready_recv_now(struct weft__backend *backend, struct weft__op *op,
                             void *buf, size_t size, bool must);
int64_t weft__ready_send_now(struct weft__backend *backend, int fd, struct msghdr *msg,
                             bool must);

/* --- fd_pass.c ---------------------------------------------------------- */

/* Like recv(2), but also receives a descriptor. */
int64_t weft__fd_pass_receive(struct weft__backend *backend, int fd, void *buf, size_t size);

/* Take the descriptor that came with the last receive, or -1.  The second closes it instead. */
int     weft__fd_pass_take(struct weft__backend *backend);
void    weft__fd_pass_drop(struct weft__backend *backend);

extern const struct weft__backend_ops weft__backend_poll;
extern const struct weft__backend_ops weft__backend_epoll;
extern const struct weft__backend_ops weft__backend_uring;

/* --- epoll.c, for uring.c ----------------------------------------------- */

int  weft__epoll_make(struct weft__backend *backend); /* 0 or -errno */
int  weft__epoll_add_wake(struct weft__backend *backend); /* 0 or -errno */
int  weft__epoll_arm(struct weft__backend *backend, int fd, struct weft__fd *entry,
                     uint32_t want);
int  weft__epoll_fetch(struct weft__backend *backend, int64_t timeout_ns);

#endif
