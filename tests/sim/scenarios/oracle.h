/* oracle.h - what scenarios of the library have in common: a loop to run on,
 * and the judges of what comes out of it.
 *
 * A judge is a small struct that is told what was asked and what happened, and
 * calls sim_fail() when the two do not go together:
 *
 *   once    what was started ends exactly once
 *   stream  bytes come out as they went in: none lost, changed or added
 *   order   numbers from each source arrive in sequence, none twice
 *   time    nothing before its time
 *   late    what has arrived in time is not reported as a timeout
 *   owner   a callback is for the connection that it was started for
 *
 * Needs: sim.h, the public API.  Thread: as stated; judges belong to whoever
 * uses them, one thread at a time.
 */
#ifndef WEFT_SIM_ORACLE_H
#define WEFT_SIM_ORACLE_H

#include <netinet/in.h>
#include <weft/loop.h>
#include <weft/op.h>
#include <weft/schedule.h>
#include <weft/timer.h>
#include <weft/watch.h>
#include "sim/run/sim.h"

#define LIVE_NS (60 * WEFT_S) /* after sim_heal() everything ends within it */

/* --- judges ----------------------------------------------------------- */

struct once {
	uint32_t begun, ended;
};

void once_begin(struct once *once);
void once_end(struct once *once); /* fails if it is not begun */
bool once_is_open(const struct once *once);
void once_check(const struct once *once); /* fails if it has not ended */

struct stream {
	uint64_t key; /* which bytes */
	uint64_t offered, made, taken;
};

/* The next bytes to be sent are these; how many of them were is told after. */
void stream_fill(struct stream *stream, void *buf, size_t size);
void stream_sent(struct stream *stream, size_t size);
void stream_take(struct stream *stream, const void *buf, size_t size);

enum { ORDER_SOURCES = 8 };

struct order {
	uint64_t given[ORDER_SOURCES];
	uint64_t taken[ORDER_SOURCES];
};

void order_take(struct order *order, uint32_t source, uint64_t number);
void order_check(const struct order *order); /* all that was given came */

/* Is it time for what is due then? */
void time_check(uint64_t due_ns);

/* May a call with that deadline end so, for which something arrived then (0: nothing)? */
void late_check(int64_t result, uint64_t arrived_ns, uint64_t deadline_ns);

/* Is what arrives for `got` meant for `wanted`? */
void owner_check(uint64_t wanted, uint64_t got);

/* Results that an op of a kind may have at all. */
enum op_kind {
	OP_SLEEP,
	OP_POLL,
	OP_RECV,
	OP_SEND,
	OP_RECV_MULTI,
	OP_ACCEPT,
	OP_CONNECT,
	OP_CLOSE,
	OP_OWN,
};

void result_check(enum op_kind kind, int64_t result, size_t size);

/* --- a world to run in ------------------------------------------------ */

/* Start a thread, however often that fails; join it. */
uint64_t thread_start(const char *name, void (*fn)(void *arg), void *arg);
void thread_join(uint64_t thread);

/* Let others run for some scheduling points, or for a while. */
void pause_briefly(void);
void pause_ns(uint64_t ns);

/* Count in a word that others may wait on. */
void count_up(weft__a32 *word);
uint32_t count_of(weft__a32 *word);

/* Wait until *word is at least `value`; fails once LIVE_NS have passed, so only
 * for after sim_heal(). */
void await_count(weft__a32 *word, uint32_t value);

/* A loop and the thread it runs on. */
struct host {
	weft_loop *loop;
	uint64_t thread; /* 0: the loop's own */
};

/* A loop, on a drawn backend; `opts` is changed. */
weft_loop *loop_make(weft_loop_opts *opts);

/* Make a loop, and run it on a thread of its own or one of ours. */
void host_make(struct host *host);
void host_run(struct host *host);

/* Run `fn(arg)` on the loop, and wait until it has. */
void host_call(struct host *host, weft_fn fn, void *arg);

/* Heal, stop, wait, free: nothing may hold that up. */
void host_end(struct host *host);

/* Stop and wait only; free. */
void host_stop(struct host *host);
void host_free(struct host *host);

/* --- peers, on the table ---------------------------------------------- */

/* A listening socket and its name. */
int peer_listen(struct sockaddr_in *name, int backlog);
int peer_socket(void);

/* A connected pair of stream sockets, TCP or AF_UNIX. */
void peer_pair(int out[2]);

/* Connect and wait, but not long; 0 or -errno. */
int peer_connect(int fd, const struct sockaddr_in *name);

/* An error after which a call may be made again. */
bool is_passing(int64_t rc);

/* Wait for one of `events` of poll(2) at most for so long; what there is. */
int peer_wait(int fd, int events, uint64_t ns);

#endif
