/* fault.h - a sys table that counts the calls of the library and fails one of them.
 *
 * Around the real table.  A plan names one call by its member and number; the run of
 * a scenario under it shows whether the library copes.  What a scenario does by itself
 * goes through weft__sys_real or the C library, and is neither counted nor failed.
 *
 *   1. Errors are told without the call being made, unless it would be a lie that no
 *      program could live with: whatever close, thread_join and EPOLL_CTL_DEL give,
 *      what they end has ended; a connect that is interrupted goes on; a process that
 *      is said to be gone is.
 *   2. ENOMEM and ENOSPC of epoll_ctl are for EPOLL_CTL_ADD only (errnos.def).
 *   3. An error of uring_enter comes before anything is taken from the ring.
 *   4. A plan strikes at most once, but for FAULT_MEMORY_FROM and FAULT_DENIED; healed, never
 *      again.
 */
#ifndef WEFT_FAULT_H
#define WEFT_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The members that are wrapped; `memory` is alloc and resize together.  Requests of
 * io_uring (sq_) and their completions (cq_), in the same order, are like calls: they
 * are counted by their kind, and one of them may fail (request.c). */
#define FAULT_MEMBERS(X)                                                       \
	X(memory) X(random) X(park) X(thread_start) X(thread_join) X(at_fork)  \
	X(barrier) X(set_cpus)                                                 \
	X(close) X(read) X(write) X(pipe) X(set_nonblock) X(kind)              \
	X(identity)                                                            \
	X(socket) X(bind) X(listen) X(accept) X(connect) X(so_error)           \
	X(shutdown) X(sockname) X(peername) X(set_option) X(get_option)        \
	X(socket_pair) X(path_mode) X(path_remove) X(unsent) X(ignore_syn)     \
	X(recv) X(send) X(recvmsg) X(sendmsg) X(sendfile)                      \
	X(recvmmsg) X(sendmmsg) X(interfaces) X(interface_index)               \
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
	FAULT_ERRNO,       /* the n-th call of `member` gives `error` */
	FAULT_SHORT,       /* the n-th call of `member` moves one byte */
	FAULT_MEMORY_ONE,  /* the n-th allocation fails, */
	FAULT_MEMORY_FROM, /* and all later ones */
	FAULT_ONCE,        /* the n-th request for many results brings one */
	FAULT_ENDED,       /* the n-th result of such requests is the last */
	FAULT_DENIED,      /* every call of `member` gives EPERM, as by a filter */
};

struct fault_plan {
	enum fault_kind   kind;
	enum fault_member member;
	uint64_t          n;     /* from 1 */
	int               error; /* an errno */
	bool              honest; /* may happen at any time: nothing may be lost by it */
};

/* One error of one member, from errnos.def. */
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
bool        fault_can_be(int member, enum fault_kind kind); /* but for errors */

/* Put the table in place, once and for all. */
void fault_install(void);

/* Begin a run: all counts are 0, and `plan` is on. */
void fault_begin(const struct fault_plan *plan);

/* No more faults in this run. */
void fault_heal(void);

uint64_t fault_count(int member); /* calls in this run */
uint64_t fault_hits(void);        /* of the plan */
bool     fault_is_honest(void);   /* of the plan */
bool     fault_is_of(int member); /* the plan is */
bool     fault_is_painless(void); /* of io_uring, and nothing is lost by it */
bool     fault_is_lasting(void);  /* the plan is, and still on */
int64_t  fault_live(void);        /* allocations and maps held, since install */

/* Close a descriptor of the scenario's own.  Whoever closes one that is not open has
 * found a problem, here and in the library. */
void fault_close(int fd);

/* Let the library's clock be so much later than it is. */
void fault_warp(uint64_t ns);

/* A wrong that was seen in this run: counted, and the first one's text kept. */
void        fault_problem(const char *file, int line, const char *text);
uint64_t    fault_problems(void);
const char *fault_problem_text(void);

#define EXPECT(cond) \
	((cond) ? (void)0 : fault_problem(__FILE__, __LINE__, #cond))

#endif
