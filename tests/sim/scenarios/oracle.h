/* oracle.h - what scenarios of the library share: a loop to run on, and oracles that check its
 * results.
 *
 * An oracle is a small struct that records what was requested and what happened, and calls
 * sim_fail() when the two do not match:
 *
 *   once    what was started ends exactly once
 *   stream  bytes arrive as they were sent: none lost, changed or added
 *   order   numbers from each source arrive in sequence, none twice
 *   time    nothing happens before its time
 *   late    what has arrived in time is not reported as a timeout
 *   owner   a callback reaches the connection that it was started for
 *
 * Needs: sim.h, the public API.  Thread: as stated; an oracle is used by one thread at a time.
 */
#ifndef WEFT_SIM_ORACLE_H
#define WEFT_SIM_ORACLE_H

#include <netinet/in.h>
#include <weft/loop.h>
#include <weft/op.h>
#include <weft/schedule.h>
#include <weft/stream.h>
#include <weft/timer.h>
#include <weft/watch.h>
#include "sim/run/sim.h"

#define LIVE_NS (60 * WEFT_S) /* after sim_heal() everything ends within this time */

/* --- oracles ---------------------------------------------------------- */

struct once {
	uint32_t begun, ended;
};

void once_begin(struct once *once);
void once_end(struct once *once); /* fails if it has not begun */
bool once_is_open(const struct once *once);
void once_check(const struct once *once); /* fails if it has not ended */

struct stream {
	uint64_t key; /* determines the bytes */
	uint64_t offered, made, taken;
};

/* stream_fill(): get the next bytes to send.  stream_sent(): this many of them were sent.
 * stream_take(): check received bytes. */
void stream_fill(struct stream *stream, void *buf, size_t size);
void stream_sent(struct stream *stream, size_t size);
void stream_take(struct stream *stream, const void *buf, size_t size);

enum { ORDER_SOURCES = 8 };

struct order {
	uint64_t given[ORDER_SOURCES];
	uint64_t taken[ORDER_SOURCES];
};

void order_take(struct order *order, uint32_t source, uint64_t number);
void order_check(const struct order *order); /* fails if something given was not taken */

/* Fail if `due_ns` is still in the future. */
void time_check(uint64_t due_ns);

/* Fail if `result` is a timeout, but too early or although something arrived before the
 * deadline.  arrived_ns is 0 if nothing arrived. */
void late_check(int64_t result, uint64_t arrived_ns, uint64_t deadline_ns);

/* Fail if a callback for `wanted` has reached `got`. */
void owner_check(uint64_t wanted, uint64_t got);

/* Fail if an op of that kind cannot have that result at all. */
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

/* Start a thread, and retry until that succeeds; join it. */
uint64_t thread_start(const char *name, void (*fn)(void *arg), void *arg);
void thread_join(uint64_t thread);

/* Let other threads run for some scheduling points, or for a time. */
void pause_briefly(void);
void pause_ns(uint64_t ns);

/* Increment a word that other threads may wait on; read it. */
void count_up(weft__a32 *word);
uint32_t count_of(weft__a32 *word);

/* Wait until *word is at least `value`.  Fails after LIVE_NS, so call it only after sim_heal(). */
void await_count(weft__a32 *word, uint32_t value);

/* A loop and the thread it runs on. */
struct host {
	weft_loop *loop;
	uint64_t thread; /* 0: weft_loop_start() made it */
};

/* Make a loop with a random backend; changes `opts`. */
weft_loop *loop_make(weft_loop_opts *opts);

/* Make a loop; run it, on its own thread or on one of ours. */
void host_make(struct host *host);
void host_run(struct host *host);

/* Run `fn(arg)` on the loop, and wait for its end. */
void host_call(struct host *host, weft_fn fn, void *arg);

/* Heal, stop, wait, free.  Fails if that takes more than LIVE_NS. */
void host_end(struct host *host);

/* Only stop and wait; only free. */
void host_stop(struct host *host);
void host_free(struct host *host);

/* --- peers, on the sys table ------------------------------------------ */

/* A listening socket and its name. */
int peer_listen(struct sockaddr_in *name, int backlog);
int peer_socket(void);

/* A connected pair of stream sockets, TCP or AF_UNIX. */
void peer_pair(int out[2]);

/* Two streams that are connected to each other.  Returns 0 and fills both, or an error. */
int open_stream_pair(weft_stream **out_a, weft_stream **out_b);

/* Connect and wait for some seconds at most; 0 or -errno. */
int peer_connect(int fd, const struct sockaddr_in *name);

/* A temporary error: the call may be repeated. */
bool is_passing(int64_t rc);

/* Wait at most `ns` for `events` of poll(2).  Returns the events, or 0. */
int peer_wait(int fd, int events, uint64_t ns);

#endif
