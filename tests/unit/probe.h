/* probe.h - what the tests of loops share: loops, traces, sockets, probes, counts.
 *
 * A probe is an op, a watcher a watch, that counts what it is told, checks what must
 * hold whenever it is told something, and then does what the test wants.  So a call
 * too many fails a test, and one too few makes it hang or miss a count.
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

/* What happened, a character each; make() empties it. */
extern char trace[64];

/* Add the character that `arg` is. */
void note(void *arg);
void note_timer(weft_timer *timer, void *arg);

weft_loop *make(void);
weft_loop *make_with(const weft_loop_opts *opts);
weft_loop *make_started(void);

/* Of one that has a thread; of one that is idle, which is run to its end. */
void stop_and_free(weft_loop *loop);
void stop_idle(weft_loop *loop);

/* Turns that do not wait; each looks at descriptors once. */
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
int64_t drain(int fd);                 /* until nothing is left; the count */

/* On the loopback; fills `addr`. */
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
	RECVMSG,
	ACCEPT,
	ACCEPT_MULTI,
	SEND,
	SENDMSG,
	CONNECT,
	KINDS
};

struct probe {
	weft_op            op;
	char               name;          /* noted at each result; or 0 */
	int                fd;            /* it was started on */
	int                results, ends; /* told, and told as the last */
	int64_t            result;        /* the last */
	uint64_t           not_before_ns; /* may a result come */
	void             (*act)(struct probe *probe); /* then do this; or NULL */
	struct probe      *other;         /* the test's */
	bool               sends;         /* the test's */
	int                asked, why;    /* OWN: to end, how often and why */
	bool               lazy;          /* OWN: leaves it to others to finish */
	char               buf[16];
	struct iovec       iov;
	struct msghdr      msg;
	struct sockaddr_in addr;          /* to connect to */
};

/* The callbacks, for those who start an op by themselves. */
void on_done(weft_op *op, int64_t result, void *arg);
void on_cancel(weft_op *op, int why, void *arg);

/* Init and start; or start only, and return what that returned. */
void init(weft_loop *loop, struct probe *p);
void start(weft_loop *loop, struct probe *p, enum kind kind, int fd);
int  try_start(struct probe *p, enum kind kind, int fd, uint64_t deadline_ns);

/* As `act` of RECV_MULTI: put its bytes behind those that came before. */
extern char   gathered[64];
extern size_t gathered_size;
void gather(struct probe *p);

/* It has had its last result, and that was `want`. */
#define CHECK_ENDED(p, want)                 \
	do {                                 \
		CHECK(!(p)->op.pending);     \
		CHECK_EQ((p)->ends, 1);      \
		CHECK_EQ((p)->result, want); \
	} while (0)

/* --- watches ------------------------------------------------------------ */

struct watcher {
	weft_watch      watch;
	int             calls, ends; /* with readiness, and with WEFT_ESHUTDOWN */
	int             what;        /* the last readiness */
	void          (*act)(struct watcher *watcher); /* then do this; or NULL */
	struct watcher *other;       /* the test's */
	int             fd;
	int64_t         bytes;       /* the test's */
};

void on_ready(weft_watch *watch, int what, void *arg);
void watch(weft_loop *loop, struct watcher *w, int fd, uint32_t events);

/* --- counting ----------------------------------------------------------- */

/* What the library has asked of the table since it is counted. */
struct calls {
	weft__a64 waits;   /* park, poll, epoll_wait, uring_enter */
	weft__a64 arms;    /* kind, epoll_ctl */
	weft__a64 accepts;
	weft__a64 allocs;  /* alloc, resize */
	weft__a64 parks;   /* of the waits, those on the inbox */
	const weft_loop *only; /* waits of this loop; NULL: of all */
};

extern struct calls calls;

/* From now on, from 0; and no more.  While no loop runs. */
void count_calls(void);
void count_no_more(void);

/* Of a count. */
int64_t counted(const weft__a64 *count);

#endif
