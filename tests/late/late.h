/* late.h - a table of all calls that wait: what each needs, and how to provide it.
 *
 * A case runs like this: several threadlets each prepare a waiter and make the call, all with
 * the same deadline.  When all of them wait, a director threadlet schedules a callback.  On the
 * loop's own thread, the callback provides what each call waits for, and then moves the clock
 * past the deadline.  The loop has seen none of this so far.  When it continues, everything has
 * arrived in time, and the deadline has passed.  No call may report a timeout.  The test
 * controls the clock, so nothing depends on the speed of the machine.
 */
#ifndef WEFT_TESTS_LATE_H
#define WEFT_TESTS_LATE_H

#include "unit/threadlet/sched.h"

struct stage;

/* One waiting call. */
struct waiter {
	struct stage *stage;
	weft_threadlet id;
	int     fd, peer;     /* the ends of a socket pair, or -1 */
	weft_stream *stream;
	weft_op op;
	weft_scope scope;
	weft_span span;
	struct msghdr msg;
	struct iovec iov;
	void   *object;       /* used by the row's functions */
	int64_t value;
	char    buf[64];
	int64_t result;
};

/* A call of the public API, in one of its variants. */
struct row {
	const char *call;
	/* Before and after the waiters; may be NULL.  They run on a threadlet. */
	void    (*open)(struct stage *stage);
	void    (*close)(struct stage *stage);
	/* For each waiter, on its threadlet: prepare, make the call, clean up. */
	void    (*prepare)(struct waiter *w);
	int64_t (*call_it)(struct waiter *w, uint64_t deadline_ns);
	void    (*finish)(struct waiter *w);
	/* By the director, before the calls: take the resource that the call will wait for. */
	void    (*seize)(struct waiter *w);
	/* By the director, repeatedly until all calls wait: act as their peer. */
	void    (*pump)(struct stage *stage);
	/* Whether the call waits.  NULL: it does as soon as its threadlet is suspended. */
	bool    (*is_waiting)(struct waiter *w);
	/* Provide what one call waits for; `feed_all` does it for all calls.  Must not suspend. */
	void    (*feed)(struct waiter *w);
	void    (*feed_all)(struct stage *stage);
	uint32_t max;         /* upper limit of waiters; 0: none */
	bool     at_once;     /* nothing runs between the calls and the director */
	bool     by_director; /* the director feeds on its own threadlet; otherwise an immediate */
	                      /* does, after which the loop checks deadlines */
	bool     has_no_end;  /* it does not time out if it is not fed */
};

struct stage {
	const struct row *row;
	weft_loop     *loop;
	struct waiter *waiters;
	uint32_t       count, prepared, ended;
	bool           fed, busy; /* busy: the director yields meanwhile, so the loop never
	                           * sleeps */
	uint64_t       deadline_ns;
	weft_event     go, held, all_ended;
	void          *object; /* used by the row's functions */
	int            fd;
};

/* The tables.  A row without a call ends each of them. */
extern const struct row late_core_rows[], late_net_rows[], late_proto_rows[];

/* Run a case.  Returns true if each call had the expected result. */
bool late_run(const struct row *row, uint32_t count, bool fed, bool busy);

/* Call `fn(arg)` on a new thread, and wait for it to end. */
void late_on_thread(void *(*fn)(void *arg), void *arg);

#endif
