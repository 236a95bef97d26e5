/* trace.h - a record of the run, as a running hash and optionally as text.
 *
 * Equal seeds give equal hashes: nothing in the trace depends on addresses, real time or the
 * process.
 *
 * Needs: nothing.
 */
#ifndef WEFT_SIM_TRACE_H
#define WEFT_SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Every member of the sys table that is traced or can fail, and other traced events. */
#define SIM_CALLS(X)                                                           \
	X(alloc) X(resize) X(release) X(now) X(random) X(park) X(unpark)       \
	X(yield) X(barrier) X(thread_start) X(thread_join) X(at_fork) X(cpus)    \
	X(set_cpus) X(close)                                                   \
	X(read) X(write) X(pipe) X(set_nonblock) X(kind) X(identity) X(socket) X(bind)     \
	X(listen) X(accept) X(connect) X(so_error) X(shutdown) X(sockname)     \
	X(peername) X(set_option) X(get_option)                                \
	X(path_mode) X(path_remove) X(unsent) X(ignore_syn)                    \
	X(recvmmsg) X(sendmmsg) X(interface_index)                             \
	X(host_find) X(host_name)                                              \
	X(recv) X(send) X(recvmsg) X(sendmsg) X(poll) X(epoll_create)          \
	X(epoll_ctl) X(epoll_wait) X(eventfd)                                  \
	X(signal_take) X(signal_give) X(spawn) X(pid_open) X(reap) X(kill)     \
	X(stack_map) X(stack_unmap) X(stack_guard) X(stack_discard)            \
	X(packet) X(turn) X(event) X(fault) X(end)

#define SIM_CALL_ENUM(name) SIM_CALL_##name,
enum sim_call { SIM_CALLS(SIM_CALL_ENUM) SIM_CALL_COUNT };
#undef SIM_CALL_ENUM

extern const char *const sim_call_names[SIM_CALL_COUNT];

void     sim_trace_reset(bool print);
uint64_t sim_trace_hash(void);
uint64_t sim_trace_calls(void); /* number of traced calls of the table */

/* Record `call` of the running thread, with two arguments and its result. */
void     sim_trace(enum sim_call call, int64_t a, int64_t b, int64_t rc);

#endif
