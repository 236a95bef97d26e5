/* suspend.h - programs of threadlets that are disturbed at each of their suspensions.
 *
 * A scenario is the function of one threadlet, in a scope of its own; it may start more
 * there.  It is run once to count the suspensions, then once for each of them and each
 * disturbance: the threadlet that suspends is cancelled, or interrupted, or the deadline
 * of the scope around the scenario passes; at once, or when it has been parked.
 *
 * To add one: write it below suspend_scenarios[], with what must hold said by EXPECT,
 * and every result of a suspending call passed to went_well().
 */
#ifndef WEFT_FAULT_SUSPEND_H
#define WEFT_FAULT_SUSPEND_H

#include <weft/weft.h>

struct suspend_scenario {
	const char       *name;
	weft_threadlet_fn run;     /* its argument is the stage */
	uint32_t          at_least; /* suspensions it has when undisturbed */
};

/* What a scenario finds. */
struct stage {
	weft_loop  *other;  /* a second loop, turned by the same thread */
	const char *backend;
	int         fds[2]; /* a connected pair, not blocking */
};

extern const struct suspend_scenario suspend_scenarios[];
extern const size_t                  suspend_scenario_count;

/* Wrong on purpose: the sweep must find that. */
extern const struct suspend_scenario suspend_plants[];
extern const size_t                  suspend_plant_count;

/* Was the call undisturbed, and its result `want`?  A problem if it has any other
 * result than that and the disturbance's. */
bool went_well(int64_t rc, int64_t want);

/* The same where the call is shielded: it cannot be disturbed but by an interrupt. */
bool went_well_shielded(int64_t rc, int64_t want);

/* The calling threadlet is the one that was disturbed. */
bool is_target(void);

/* Start a threadlet in a scope, on `loop` or here, and count it until it has ended. */
weft_threadlet start_in(weft_scope *scope, weft_loop *loop, weft_threadlet_fn fn,
                        void *arg);

#endif
