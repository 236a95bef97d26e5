/* suspend.h - programs of threadlets that are disturbed at each of their suspensions.
 *
 * A scenario is the function of one threadlet, in a scope of its own; it may start more
 * there.  It is run once to count the suspensions, then once for each of them and each
 * disturbance: the threadlet that suspends is cancelled, or interrupted, or the deadline
 * of the scope around the scenario passes, or what it has said to use is closed by another;
 * at once, or when it has been parked, or when it has been woken.
 *
 * To add one: write it in the file of its topic, with what must hold said by EXPECT, and
 * every result of a suspending call passed to how() or went_well(); declare it here, and
 * give it a line of suspend_scenarios[].
 */
#ifndef WEFT_FAULT_SUSPEND_H
#define WEFT_FAULT_SUSPEND_H

#include <weft/weft.h>

struct suspend_scenario {
	const char       *name;
	weft_threadlet_fn run;      /* its argument is the stage */
	uint32_t          at_least; /* suspensions it has when undisturbed */
	bool              apart;    /* some of its threadlets run on a second loop */
};

/* What a scenario finds. */
struct stage {
	weft_loop *there;  /* where these run; NULL: on its own loop, as all */
	uint32_t   flags;  /* of what all use: WEFT_SHARED, or 0 */
	int        fds[2]; /* a connected pair, not blocking */
	int        file;   /* an empty one; in use until the loops are freed */
};

extern const struct suspend_scenario suspend_scenarios[];
extern const size_t                  suspend_scenario_count;

/* Wrong on purpose: the sweep must find that. */
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
int run_rwlock(void *stage);
int run_rwlock_queue(void *stage);
int run_cond(void *stage);
int run_sem(void *stage);
int run_group(void *stage);
int run_event(void *stage);
int run_once(void *stage);
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

/* --- what they share ---------------------------------------------------- */

/* Was the call undisturbed, and its result `want`?  A problem if it has any other
 * result than that and the disturbance's. */
bool went_well(int64_t rc, int64_t want);

/* The same where the call is shielded: it cannot be disturbed but by an interrupt. */
bool went_well_shielded(int64_t rc, int64_t want);

/* How a call went: it can go on, must be tried again, or the threadlet is to end. */
enum went { WELL, AGAIN, TOLD };
enum went how(int64_t rc, int64_t want);

/* Try until it is WELL or TOLD. */
#define RETRY(went, try)                   \
	do                                 \
		(went) = (try);            \
	while ((went) == AGAIN)

#define SHORT_NS (20 * WEFT_US)

/* Sleep so often for a short time; 0, or the error if it is told to end. */
int nap(int times);

/* The calling threadlet uses that stream, or listener: another may close it, which is NULL
 * from then on.  A stream while it is waited for, as nobody knows of a close otherwise; a
 * listener at any time. */
void uses_stream(weft_stream **stream);
void uses_listener(weft_listener **listener);

/* The threadlet that was disturbed; 0: none yet. */
weft_threadlet target(void);

/* Start a threadlet in a scope, on `loop` or here, and count it until it has ended. */
weft_threadlet start_in(weft_scope *scope, weft_loop *loop, weft_threadlet_fn fn,
                        void *arg);

#endif
