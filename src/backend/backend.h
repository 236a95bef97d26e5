/* backend.h - how a loop waits for descriptors: one table of functions.
 *
 * The contract is completion: an op is submitted, and later stands in the list of
 * finished ops with its result.  Readiness backends get that from ready.c, to which
 * they add only arm() and wait().
 *
 *   1. An op that was submitted is finished exactly once, unless it is asked for
 *      more results.  It is put into `done`; nobody is called from here.
 *   2. cancel() asks; the op is finished with `why` or with a result that came first.
 *   3. wait() returns when something happened, woken or at the timeout, and may return
 *      for no reason.
 *   4. wake() may be called by any thread, from open to close.
 *   5. wait() may begin to fail for good, as when the program forbids itself a system
 *      call.  Then the table changes; descriptors for wake() stay.
 *
 * Needs: timer, base.  Owned by: one loop, embedded.  Thread: the loop's, but wake() and show().
 */
#ifndef WEFT_BACKEND_BACKEND_H
#define WEFT_BACKEND_BACKEND_H

#include <weft/watch.h>
#include "backend/fds.h"
#include "backend/op.h"

#define WEFT__EVENTS_MAX 256u /* fetched by one wait */
#define WEFT__GONE       0x4000u /* readiness of a number that stands for another file */

/* The token of a watch: 0: not started; ENDED: in the list of those to be called, with the
 * error in the upper half. */
#define WEFT__WATCH_STARTED 1u
#define WEFT__WATCH_ENDED   2u

struct weft__backend;

/* What is told of a backend, from its making on: counted by the loop's thread, read by
 * any.  A text is written before its pointer, and that before the name (B, release); it
 * stays from then on. */
struct weft__tally {
	weft__a64  syscalls;   /* made for the loop, by its thread */
	weft__a32  fds;        /* with somebody waiting */
	weft__aptr name;       /* 0: not open */
	weft__aptr reason;     /* one of the texts, why this one */
	char       texts[2][96]; /* as it was opened, and since it failed */
};

/* A descriptor that became ready, as fetched from the kernel. */
struct weft__event {
	int32_t  fd;
	uint32_t generation;
	uint16_t ready; /* WEFT_READABLE, ... */
	uint8_t  sides; /* still to be looked at: bit 0 read, bit 1 write */
	uint8_t  tries; /* results in a row, of an op that has many */
};

/* What is to be done about an event: call a watch with `ready`, or deliver the
 * result of an op. */
struct weft__ready {
	weft_watch      *watch;
	uint32_t         ready;
	struct weft__op *op;
};

struct weft__backend_ops {
	const char *name;
	const char *call; /* that wait() makes, for reports */
	bool        edge; /* arms once and tells changes, for what is not a watch */
	bool        deaf; /* what fd() gives tells of show() only: to be looked at now and then */
	bool        files; /* takes ops on files, which it need not wait for */
	bool        shares; /* memory with the kernel, which valgrind does not see change */
	bool        batches; /* many calls cost one: what is queued beats what is tried */

	int  (*open)(struct weft__backend *backend); /* 0 or -errno */
	void (*close)(struct weft__backend *backend); /* its state; or NULL */

	void (*submit)(struct weft__backend *backend, struct weft__op *op);
	void (*cancel)(struct weft__backend *backend, struct weft__op *op, int why);

	/* Fill events with what is ready; timeout_ns as in the sys table.
	 * 0 or -errno. */
	int  (*wait)(struct weft__backend *backend, int64_t timeout_ns);
	void (*wake)(struct weft__backend *backend);

	/* Take the next thing to do from what was fetched; false if there is none.
	 * One that was stopped, cancelled or closed meanwhile does not come. */
	bool (*next)(struct weft__backend *backend, struct weft__ready *out);

	/* Hand what is queued to the kernel; or NULL. */
	void (*flush)(struct weft__backend *backend);

	/* A descriptor that is readable while wait() would find something, or was woken
	 * since; it stays the same.  It, or -errno; or NULL: there is none.  And make
	 * it readable until the next wait(), from any thread. */
	int  (*fd)(struct weft__backend *backend);
	void (*show)(struct weft__backend *backend);

	/* Something is queued that the kernel has not got, or fetched that next() has
	 * not given; or NULL: never. */
	bool (*has_work)(struct weft__backend *backend);

	/* Give back memory that nothing uses, outside of turns; returns the bytes; or
	 * NULL. */
	size_t (*trim)(struct weft__backend *backend);

	/* Is the file of `op`, which the kernel has, the one that its number stands for
	 * now?  NULL: the kernel never has an op. */
	bool (*has_file)(struct weft__backend *backend, struct weft__op *op);

	/* Finish `op`, which the kernel has or waits to be given, with `why`, as soon as the
	 * kernel gives it back.  It has left its sides.  Or NULL, as above. */
	void (*evict)(struct weft__backend *backend, struct weft__op *op, int why);

	/* wait() fails again and again with `error`: go on without it, by another table.
	 * 0 or -errno; or NULL: there is no other way. */
	int (*fall)(struct weft__backend *backend, int error);

	/* For ready.c: tell the kernel what to look for at `fd` (WEFT_READABLE,
	 * WRITABLE, EDGE; 0: nothing any more).  0 or -errno; -EPERM for files; -ENOENT:
	 * something is armed, and `fd` stands for another file. */
	int  (*arm)(struct weft__backend *backend, int fd, struct weft__fd *entry,
	            uint32_t want);
};

struct weft__backend {
	const struct weft__backend_ops *ops; /* NULL: not open */
	const struct weft__backend_ops *waker; /* as opened: for wake() and show() by others */
	struct weft__tally    *tally;  /* its owner's, set before it is opened */
	const char            *at;     /* what open() is about to do, for the reason */
	struct weft__fds       fds;
	struct weft__node_list done;   /* finished ops */
	struct weft__event    *events; /* WEFT__EVENTS_MAX */
	uint32_t               events_count, events_at;
	uint32_t               events_max; /* to be fetched by one wait */
	bool                   more;   /* after a wait: the kernel may have more that is ready */
	bool                   timed_out; /* ... it fetched nothing until its timeout */
	bool                   events_fresh; /* fetched, and not all looked at yet: else those
	                                * there are what an earlier look has left */
	weft_watch            *ended;  /* watches that ended, to be called; linked by spare */
	void                  *buffer; /* for receive_multi; made at first need */
	const void            *data;   /* what its present result lies at */
	struct weft__node_list closing; /* close ops that wait for others to end */
	void                  *fetched; /* room for what epoll_wait(2) fills */
	int                    fd;     /* of epoll, or -1 */
	int                    outer_fd; /* what fd() has made, or -1 */
	int                    wake_fd[2]; /* read and write end */
	void                  *state;  /* the backend's own */
	bool                   movable; /* asked for: any thread may wait, one at a time */
	bool                   binds;  /* the thread that first waits is the only one that may */
	uint32_t               always; /* watches on files, which are always ready */
	uint32_t               requests; /* ops on files, which stand at no descriptor */
	struct weft__node_list paused; /* accepts without a descriptor to be had */
	uint32_t               failures; /* of wait(), in a row */
	int                    broken; /* the error of wait(), for which there is no other way */
	uint64_t               sheds;  /* how often that happened */
	int                    passed; /* a descriptor that has come with bytes, plus 1; or 0 */
};

/* The sys table, for one call that enters the kernel.  The wakes of other threads are
 * not counted here. */
static inline const struct weft__sys *
weft__kernel(const struct weft__backend *backend)
{
	weft__count(&backend->tally->syscalls, 1);
	return weft__sys;
}

/* Remember which file `fd` stands for, for waiters who have nothing armed. */
static inline void
weft__fd_identify(const struct weft__backend *backend, int fd, struct weft__fd *entry)
{
	int64_t now = weft__kernel(backend)->identity(fd);

	entry->identity = now < 0 ? 0 : (uint32_t)now;
}

/* Is the file that was identified in `entry` another one than `fd` stands for now?  No, if
 * that cannot be said. */
static inline bool
weft__fd_is_other(const struct weft__backend *backend, int fd,
                  const struct weft__fd *entry)
{
	int64_t now = entry->identity ? weft__kernel(backend)->identity(fd) : 0;

	return now == -EBADF || (now > 0 && (uint32_t)now != entry->identity);
}

/* Something has to be learned from the kernel. */
static inline bool
weft__backend_is_used(const struct weft__backend *backend)
{
	return backend->fds.in_use > 0 || backend->requests > 0;
}

/* Open the backend of that name, or the best that opens here. */
int  weft__backend_open(struct weft__backend *backend, const char *name, bool movable);
void weft__backend_close(struct weft__backend *backend);

/* wait() fails for good with `error`: go on with another way to wait, or end all that waits
 * with the error, and what begins to wait later too. */
void weft__backend_fall(struct weft__backend *backend, int error);

/* Is there one of that name in this build? */
bool weft__backend_exists(const char *name);

/* Put `op` into the list of finished ops. */
void weft__backend_finish(struct weft__backend *backend, struct weft__op *op,
                          int64_t result);

/* --- ready.c ------------------------------------------------------------ */

void weft__ready_submit(struct weft__backend *backend, struct weft__op *op);
void weft__ready_cancel(struct weft__backend *backend, struct weft__op *op, int why);

/* Note that `fd` is ready; for wait(). */
void weft__ready_note(struct weft__backend *backend, int fd, uint32_t generation,
                      uint32_t ready);

bool weft__ready_next(struct weft__backend *backend, struct weft__ready *out);

/* Try accepts again that found no free descriptor. */
void weft__ready_resume(struct weft__backend *backend);

/* Start, change or stop a watch on `fd`.  0 or an error. */
int  weft__ready_watch(struct weft__backend *backend, weft_watch *watch, int fd,
                       uint32_t events);
void weft__ready_unwatch(struct weft__backend *backend, weft_watch *watch);

/* Note the watched files, before a wait. */
void weft__ready_note_files(struct weft__backend *backend);

/* The number is about to be closed: end its waiters with WEFT_ESHUTDOWN, and forget it
 * and everything fetched for it. */
void weft__ready_forget(struct weft__backend *backend, int fd);

/* Make `sides` of `fd`, which has an entry, free for `newcomer`: evict the waiters there if
 * the number stands for another file than theirs.  0 or WEFT_EBUSY. */
int  weft__ready_claim(struct weft__backend *backend, int fd, uint32_t sides,
                       uintptr_t newcomer);

/* End the waiters at `sides` of `fd` with `why`; what was armed and fetched there is
 * dropped.  Or end those but `newcomer` with WEFT_EBADF that wait for another file than the
 * number stands for. */
void weft__ready_evict(struct weft__backend *backend, int fd, uint32_t sides, int why);
void weft__ready_evict_stale(struct weft__backend *backend, int fd, uintptr_t newcomer);

/* Does `op` stand at its side?  One that was evicted while the kernel has it does not. */
bool weft__ready_has(struct weft__backend *backend, const struct weft__op *op);

/* A watch has ended: it is to be called with `why`.  And: it leaves its sides for that. */
void weft__watch_tell_end(struct weft__backend *backend, weft_watch *watch, int why);
void weft__watch_evict(struct weft__backend *backend, weft_watch *watch, int why);

/* Who waits at a side of `fd`, or NULL. */
weft_watch      *weft__ready_watch_at(struct weft__backend *backend, int fd, int side);
struct weft__op *weft__ready_op_at(struct weft__backend *backend, int fd, int side);

/* Readiness as poll(2) tells it. */
uint32_t weft__ready_of_poll(int revents);

/* Take or leave an op's sides; for backends that wait for it themselves. */
struct weft__fd *weft__ready_take(struct weft__backend *backend, struct weft__op *op);
void weft__ready_leave(struct weft__backend *backend, struct weft__op *op);

/* Try an op's call once: its result, or -EAGAIN. */
int64_t weft__ready_attempt(struct weft__backend *backend, struct weft__op *op);

/* What an op's success says of its descriptor, or of the one it brings. */
void weft__ready_learn(struct weft__backend *backend, const struct weft__op *op,
                       int64_t result);

/* Keep an accept that found no free descriptor until weft__ready_resume(). */
bool weft__ready_is_exhausted(int64_t result);
void weft__ready_pause(struct weft__backend *backend, struct weft__op *op);

/* Close `fd` when nobody waits on it any more, and finish `op` with the result. */
void weft__ready_close(struct weft__backend *backend, struct weft__op *op);

/* May an op of this kind wait on `fd` now?  0 or WEFT_EBUSY. */
int  weft__ready_is_free(struct weft__backend *backend, const struct weft__op *op);

/* The peer of `fd` has sent its last: a short read does not mean that nothing is
 * left to be found. */
void weft__ready_ending(struct weft__backend *backend, int fd);

/* `fd` is ours from now on, new to this loop; `what` is WEFT__FD_STREAM or PLAIN, or 0.  0,
 * or WEFT_ENOMEM, WEFT_EBUSY.  And: it goes elsewhere, and nobody has waited on it here. */
int  weft__ready_own(struct weft__backend *backend, int fd, uint16_t what);
void weft__ready_disown(struct weft__backend *backend, int fd);

/* Make a receive that has many results take none for now, or go on; there may be some
 * by now.  0, or -ENOMEM and it takes none. */
int  weft__ready_hold(struct weft__backend *backend, struct weft__op *op, bool on);

/* From now on descriptors are received with the bytes of `fd`, a Unix stream. */
void weft__ready_set_passing(struct weft__backend *backend, int fd);

/* Receive at once for such an op, or send on an owned descriptor, if that is worth a try
 * or `must` be tried: the count, or -EAGAIN, also if somebody else does it. */
int64_t weft__ready_recv_now(struct weft__backend *backend, struct weft__op *op,
                             void *buf, size_t size, bool must);
int64_t weft__ready_send_now(struct weft__backend *backend, int fd, struct msghdr *msg,
                             bool must);

/* Give back the buffer for receive_multi; returns the bytes. */
size_t weft__ready_trim(struct weft__backend *backend);

/* --- passed.c ----------------------------------------------------------- */

/* As recv(2), with a descriptor that comes along. */
int64_t weft__passed_receive(struct weft__backend *backend, int fd, void *buf, size_t size);

/* Take the one that came with what was received last: it, or -1.  Or close it. */
int     weft__passed_take(struct weft__backend *backend);
void    weft__passed_drop(struct weft__backend *backend);

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
