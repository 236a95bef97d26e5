/* suspend.h - programs of threadlets that are disturbed at each of their suspensions.
 *
 * A scenario is the function of one threadlet that runs in its own scope.  It may start more
 * threadlets there.  The sweep runs it once to count the suspensions, and then once for each
 * suspension and each disturbance.  A disturbance cancels the suspending threadlet, interrupts
 * it, lets the deadline of the scope around the scenario pass, or closes the object that the
 * threadlet uses (uses_stream(), uses_listener()).  It happens at once, after the threadlet was
 * parked, or after it was woken.
 *
 * To add one: write it in the file of its topic, check what must hold with EXPECT, and pass the
 * result of every suspending call to how() or went_well().  Declare it here, and add a line to
 * suspend_scenarios[].
 */
#ifndef WEFT_FAULT_SUSPEND_H
#define WEFT_FAULT_SUSPEND_H

#include <weft/weft.h>

struct suspend_scenario {
	const char       *name;
	weft_threadlet_fn run;      /* its argument is the struct stage */
	uint32_t          at_least; /* suspensions of an undisturbed run, at least */
	bool              apart;    /* some of its threadlets run on a second loop */
};

/* The environment of a scenario. */
struct stage {
	weft_loop *there;  /* the loop for `apart` threadlets; NULL: its own loop */
	uint32_t   flags;  /* for shared objects: WEFT_SHARED, or 0 */
	int        fds[2]; /* a connected pair, nonblocking */
	int        file;   /* an empty file; open until the loops are freed */
};

extern const struct suspend_scenario suspend_scenarios[];
extern const size_t                  suspend_scenario_count;

/* These contain a mistake.  The sweep must find it. */
extern const struct suspend_scenario suspend_plants[];
extern const size_t                  suspend_plant_count;

/* suspend_chan_scenarios.c */
int run_chan(void *stage);
int run_chan_buffered(void *stage);
int run_chan_close(void *stage);
int run_select(void *stage);
int run_select_late(void *stage);
int plant_value(void *stage);

/* suspend_sync_scenarios.c */
int run_mutex(void *stage);
int run_cond(void *stage);
int run_sem(void *stage);
int run_group(void *stage);
int run_event(void *stage);
int plant_lock(void *stage);

/* suspend_work_scenarios.c */
int run_work(void *stage);
int run_file(void *stage);
int run_file_open(void *stage);

/* suspend_net_scenarios.c */
int run_dgram(void *stage);
int run_dgram_close(void *stage);

/* suspend_stream_scenarios.c */
int run_stream_read(void *stage);
int run_stream_write(void *stage);
int run_stream_file(void *stage);
int run_stream_pass(void *stage);
int run_stream_close(void *stage);
int run_connect(void *stage);
int plant_closed(void *stage);

/* suspend_tls_scenarios.c */
int run_tls(void *stage);
int run_tls_connect(void *stage);

/* suspend_fetch_scenarios.c, suspend_http_scenarios.c */
int run_fetch(void *stage);
int run_http(void *stage);

/* suspend_redis_scenarios.c */
int run_redis(void *stage);

/* --- shared by the scenarios -------------------------------------------- */

/* Whether `rc` is `want`.  It is a problem if `rc` is neither `want` nor the disturbance's
 * error. */
bool went_well(int64_t rc, int64_t want);

/* The same for a shielded call: only an interrupt can disturb it. */
bool went_well_shielded(int64_t rc, int64_t want);

/* What the threadlet does after a call: continue, repeat the call, or end. */
enum went { WELL, AGAIN, DISTURBED };
enum went how(int64_t rc, int64_t want);

/* Repeat `try` until it yields WELL or DISTURBED. */
#define RETRY(went, try)                   \
	do                                 \
		(went) = (try);            \
	while ((went) == AGAIN)

#define SHORT_NS (20 * WEFT_US)

/* Sleep briefly, `times` times.  Returns 0, or the error if the threadlet must end. */
int nap(int times);

/* Declare that the calling threadlet uses that stream or listener.  The sweep may then close it
 * and set the pointer to NULL.  It closes a stream only while the threadlet waits for it,
 * because a threadlet does not notice the close otherwise.  It closes a listener at any time. */
void uses_stream(weft_stream **stream);
void uses_listener(weft_listener **listener);

/* The threadlet that was disturbed; 0: none so far. */
weft_threadlet target(void);

/* Start a threadlet in a scope, on `loop` or on the current loop, and count it until it ends. */
weft_threadlet start_in(weft_scope *scope, weft_loop *loop, weft_threadlet_fn fn,
                        void *arg);

#endif
