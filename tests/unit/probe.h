/* probe.h - helpers for the tests of loops: loops, traces, sockets, probes, counters.
 *
 * A probe is an op and a watcher is a watch.  Both count their callbacks, check what must hold
 * in every callback, and then do what the test wants.  So a superfluous callback fails the
 * test, and a missing one makes it hang or miss a count.
 */
#ifndef WEFT_TEST_PROBE_H
#define WEFT_TEST_PROBE_H

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include "base/atomic.h"
#include "test.h"

#define HOUR     (3600 * WEFT_S)
#define OK(call) CHECK_EQ(call, 0)
#define MARK(c)  ((void *)(intptr_t)(c))
#define BOTH     (WEFT_READABLE | WEFT_WRITABLE)

/* --- loops -------------------------------------------------------------- */

/* What happened, one character per event.  make() clears it. */
extern char trace[64];

/* Append the character that `arg` holds to the trace. */
void note(void *arg);
void note_timer(weft_timer *timer, void *arg);

weft_loop *make(void);
weft_loop *make_with(const weft_loop_opts *opts);
weft_loop *make_started(void);

/* stop_and_free() is for a loop with its own thread.  stop_idle() is for an idle loop, which it
 * runs to its end. */
void stop_and_free(weft_loop *loop);
void stop_idle(weft_loop *loop);

/* Run loop iterations that do not wait.  Each polls the descriptors once. */
void turn(weft_loop *loop);
void turns(weft_loop *loop, int count);

/* Yield until the loop is in `state`. */
void watch_for(const weft_loop *loop, weft_state state);

pthread_t thread(void *(*fn)(void *), void *arg);

/* --- sockets ------------------------------------------------------------ */

struct pair {
	int fd, peer;
};

struct pair make_pair(void);
void        close_pair(struct pair pair);

void    put(int fd, const char *text); /* all of it, at once */
void    take(int fd);                  /* one byte */
void    fill(int fd);                  /* until no more fits */
int64_t drain(int fd);                 /* until nothing is left; returns the byte count */

/* On the loopback interface.  make_listener() fills `addr`. */
int make_listener(int backlog, struct sockaddr_in *addr);
int make_client(const struct sockaddr_in *addr);

/* --- ops ---------------------------------------------------------------- */

enum kind {
	SLEEP,
	OWN,
	POLL_READ,
	POLL_WRITE,
	POLL_MULTI,
	RECV,
	RECV_MULTI,
	ACCEPT,
	ACCEPT_MULTI,
	SEND,
	SENDMSG,
	CONNECT,
	KINDS
};

struct probe {
	weft_op            op;
	char               name;          /* appended to the trace at each result, unless 0 */
	int                fd;            /* that the op was started on */
	int                results, ends; /* how many results, and how many final ones */
	int64_t            result;        /* the latest one */
	uint64_t           not_before_ns; /* a result before this time is an error */
	void             (*act)(struct probe *probe); /* called after each result, unless NULL */
	struct probe      *other;         /* for the test */
	bool               sends;         /* for the test */
	int                cancels, why;  /* OWN: how often cancel was requested, and why */
	bool               lazy;          /* OWN: does not finish when cancel is requested */
	char               buf[16];
	struct iovec       iov;
	struct msghdr      msg;
	struct sockaddr_in addr;          /* to connect to */
};

/* The callbacks, for tests that start an op themselves. */
void on_done(weft_op *op, int64_t result, void *arg);
void on_cancel(weft_op *op, int why, void *arg);

/* init() initializes; start() initializes and starts; try_start() only starts, and returns the
 * result. */
void init(weft_loop *loop, struct probe *p);
void start(weft_loop *loop, struct probe *p, enum kind kind, int fd);
int  try_start(struct probe *p, enum kind kind, int fd, uint64_t deadline_ns);

/* An `act` for RECV_MULTI: append the received bytes to `gathered`. */
extern char   gathered[64];
extern size_t gathered_size;
void gather(struct probe *p);

/* Check that the op has ended once, with the result `want`. */
#define CHECK_ENDED(p, want)                 \
	do {                                 \
		CHECK(!(p)->op.pending);     \
		CHECK_EQ((p)->ends, 1);      \
		CHECK_EQ((p)->result, want); \
	} while (0)

/* --- watches ------------------------------------------------------------ */

struct watcher {
	weft_watch      watch;
	int             calls, ends; /* with readiness; with an error that ends the watch */
	int             what;        /* the latest readiness */
	void          (*act)(struct watcher *watcher); /* called after that, unless NULL */
	struct watcher *other;       /* for the test */
	int             fd;
	int64_t         bytes;       /* for the test */
};

void on_ready(weft_watch *watch, int what, void *arg);
void watch(weft_loop *loop, struct watcher *w, int fd, uint32_t events);

/* --- counting ----------------------------------------------------------- */

/* How often the library has called functions of the sys table since count_calls(). */
struct calls {
	weft__a64 waits;   /* park, poll, epoll_wait, uring_enter */
	weft__a64 arms;    /* kind, epoll_ctl */
	weft__a64 accepts;
	weft__a64 allocs;  /* alloc, resize */
	weft__a64 parks;   /* the part of `waits` that sleeps on the inbox */
	const weft_loop *only; /* count only waits of this loop; NULL: of all loops */
};

extern struct calls calls;

/* count_calls() starts counting at 0, count_no_more() ends it.  No loop may run during either. */
void count_calls(void);
void count_no_more(void);

/* Read a counter. */
int64_t counted(const weft__a64 *count);

#endif
