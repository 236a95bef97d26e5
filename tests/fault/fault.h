/* fault.h - a sys table that counts the library's system calls and makes one of them fail.
 *
 * The table wraps the real one.  A plan names one call by its member and its ordinal number.
 * The run of a scenario under that plan shows whether the library handles the failure.  Calls
 * that the scenario itself makes go through weft__sys_real or the C library.  They are neither
 * counted nor failed.
 *
 *   1. A failed call returns its error without being made, unless no program could work with
 *      the resulting state: close, thread_join and EPOLL_CTL_DEL take effect whatever they
 *      return; an interrupted connect continues; a process that is reported as gone is gone.
 *   2. epoll_ctl returns ENOMEM and ENOSPC for EPOLL_CTL_ADD only (errnos.def).
 *   3. If uring_enter fails, it fails before the kernel takes anything from the ring.
 *   4. A plan injects its fault at most once, except FAULT_MEMORY_FROM and FAULT_DENIED.  After
 *      fault_heal() it injects nothing more.
 */
#ifndef WEFT_FAULT_H
#define WEFT_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The wrapped members.  `memory` stands for alloc and resize together.  io_uring requests (sq_)
 * and their completions (cq_), listed in the same order, are treated like calls: they are
 * counted by kind, and one of them may fail (request.c). */
#define FAULT_MEMBERS(X)                                                       \
	X(memory) X(random) X(park) X(thread_start) X(thread_join) X(at_fork)  \
	X(barrier) X(set_cpus)                                                 \
	X(close) X(read) X(write) X(pipe) X(set_nonblock) X(kind)              \
	X(identity)                                                            \
	X(socket) X(bind) X(listen) X(accept) X(connect) X(so_error)           \
	X(shutdown) X(sockname) X(peername) X(set_option) X(get_option)        \
	X(path_mode) X(path_remove) X(unsent) X(ignore_syn)     \
	X(recv) X(send) X(recvmsg) X(sendmsg) X(sendfile)                      \
	X(recvmmsg) X(sendmmsg) X(interface_index)                             \
	X(host_find) X(host_name)                                              \
	X(poll) X(epoll_create) X(epoll_ctl) X(epoll_wait) X(eventfd)          \
	X(signal_take) X(signal_give) X(spawn) X(pid_open) X(reap) X(kill)     \
	X(stack_map) X(stack_guard)                                            \
	X(set_block) X(uring_setup) X(uring_enter) X(uring_register) X(map)    \
	X(sq_recv) X(sq_recv_multi) X(sq_send) X(sq_accept) X(sq_accept_multi) \
	X(sq_connect) X(sq_poll) X(sq_cancel)                                  \
	X(sq_file) X(sq_file_open) X(sq_file_sync) X(sq_file_close)            \
	X(cq_recv) X(cq_recv_multi) X(cq_send) X(cq_accept) X(cq_accept_multi) \
	X(cq_connect) X(cq_poll) X(cq_cancel)                                  \
	X(cq_file) X(cq_file_open) X(cq_file_sync) X(cq_file_close)

#define FAULT_NAME_(name) FAULT_##name,
enum fault_member { FAULT_MEMBERS(FAULT_NAME_) FAULT_MEMBER_COUNT };

enum fault_kind {
	FAULT_NONE,        /* only count */
	FAULT_ERRNO,       /* the n-th call of `member` fails with `error` */
	FAULT_SHORT,       /* the n-th call of `member` moves one byte */
	FAULT_MEMORY_ONE,  /* the n-th allocation fails, */
	FAULT_MEMORY_FROM, /* and all later ones fail, too */
	FAULT_ONCE,        /* the n-th multishot request delivers a single result */
	FAULT_ENDED,       /* the n-th result of such requests is the last one */
	FAULT_DENIED,      /* every call of `member` fails with EPERM, as under a seccomp filter */
};

struct fault_plan {
	enum fault_kind   kind;
	enum fault_member member;
	uint64_t          n;     /* from 1 */
	int               error; /* an errno */
	bool              honest; /* may happen at any time; nothing may be lost by it */
};

/* One possible error of one member, from errnos.def. */
struct fault_errno {
	const char *member;
	const char *name;
	int         error;
	bool        recoverable;
};
extern const struct fault_errno fault_errnos[];
extern const size_t             fault_errno_count;

const char *fault_member_name(int member);
int         fault_member_find(const char *name); /* or -1 */
bool        fault_can_be(int member, enum fault_kind kind); /* kinds other than FAULT_ERRNO */

/* Install the table, for the lifetime of the process. */
void fault_install(void);

/* Begin a run: reset all counts to 0 and activate `plan`. */
void fault_begin(const struct fault_plan *plan);

/* Inject no more faults in this run. */
void fault_heal(void);

uint64_t fault_count(int member); /* calls in this run */
uint64_t fault_hits(void);        /* faults injected in this run */
bool     fault_is_honest(void);   /* whether the plan's fault is */
bool     fault_is_of(int member); /* whether the plan is for `member` */
bool     fault_is_painless(void); /* it is an io_uring fault, and nothing is lost by it */
bool     fault_is_lasting(void);  /* the plan injects repeatedly, and is not healed */
int64_t  fault_live(void);        /* allocations and mappings held, since fault_install() */

/* Close a descriptor of the scenario.  Closing a descriptor that is not open is a problem, here
 * and in the library. */
void fault_close(int fd);

/* Advance the library's clock by `ns`. */
void fault_warp(uint64_t ns);

/* Record a failed check of this run: count it, and keep the text of the first one. */
void        fault_problem(const char *file, int line, const char *text);
uint64_t    fault_problems(void);
const char *fault_problem_text(void);

#define EXPECT(cond) \
	((cond) ? (void)0 : fault_problem(__FILE__, __LINE__, #cond))

#endif
