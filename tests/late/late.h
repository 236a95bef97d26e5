/* late.h - a table of all calls that wait: what each needs, and how to give it that.
 *
 * A case runs so: each of some threadlets prepares a waiter and makes the call, with one
 * deadline for all.  When all of them wait, a director has a callback give each what it
 * waits for, on the loop's own thread, and then move the clock beyond the deadline.  So for
 * the loop, which has seen nothing of that yet, everything has arrived in time and the
 * deadline has passed.  No call may report a timeout.  The clock is the test's: nothing
 * depends on how fast the machine is.
 */
#ifndef WEFT_TESTS_LATE_H
#define WEFT_TESTS_LATE_H

#include "unit/threadlet/crew.h"

struct stage;

/* One call that waits. */
struct waiter {
	struct stage *stage;
	weft_threadlet id;
	int     fd, peer;     /* two ends of a pair, or -1 */
	weft_stream *stream;
	weft_op op;
	weft_scope scope;
	weft_span span;
	struct msghdr msg;
	struct iovec iov;
	void   *object;       /* of the row */
	int64_t value;
	char    buf[64];
	int64_t result;
};

/* A call of the public API, in one of its forms. */
struct row {
	const char *call;
	/* Before the waiters, and after them; may be NULL.  They run on a threadlet. */
	void    (*open)(struct stage *stage);
	void    (*close)(struct stage *stage);
	/* For each waiter, on its threadlet: get ready to wait, make the call, clean up. */
	void    (*prepare)(struct waiter *w);
	int64_t (*call_it)(struct waiter *w, uint64_t deadline_ns);
	void    (*finish)(struct waiter *w);
	/* By the director, before the calls: take what the waiter will want. */
	void    (*seize)(struct waiter *w);
	/* By the director, again and again until all wait: be their peer. */
	void    (*pump)(struct stage *stage);
	/* Does it wait by now?  NULL: it does as soon as its threadlet is suspended. */
	bool    (*is_waiting)(struct waiter *w);
	/* Give it what it waits for; `feed_all` once for all of them.  Must not suspend. */
	void    (*feed)(struct waiter *w);
	void    (*feed_all)(struct stage *stage);
	uint32_t max;         /* waiters; 0: any number */
	bool     at_once;     /* nothing runs between the calls and the director */
	bool     by_director; /* it feeds on its own threadlet, else in an immediate, behind */
	                      /* which deadlines come next */
	bool     has_no_end;  /* without being fed it does not time out: see its comment */
};

struct stage {
	const struct row *row;
	weft_loop     *loop;
	struct waiter *waiters;
	uint32_t       count, prepared, ended;
	bool           fed, busy; /* the director yields meanwhile, so the loop never sleeps */
	uint64_t       deadline_ns;
	weft_event     go, held, all_ended;
	void          *object; /* of the row */
	int            fd;
};

/* The tables, each ended by a row without a call. */
extern const struct row late_core_rows[], late_net_rows[], late_proto_rows[];

/* Run a case; true if each call gave what it must. */
bool late_run(const struct row *row, uint32_t count, bool fed, bool busy);

/* Call `fn(arg)` on a thread of its own, and wait for its end. */
void late_on_thread(void *(*fn)(void *arg), void *arg);

#endif
