/* fault.h - whether this call fails, and the list of those that did.
 *
 * Needs: rng.h, clock.h, trace.h.
 */
#ifndef WEFT_SIM_FAULT_H
#define WEFT_SIM_FAULT_H

#include "sim/run/sim.h"
#include "sim/run/trace.h"

void     sim_fault_reset(uint32_t masked, const struct sim_opts *opts);
uint64_t sim_fault_count(void);

/* Should this call, of which it is the next of its kind, suffer `class`?  NULL,
 * or the fault as it was recorded, in which the caller sets `what`. */
struct sim_fault *sim_fault(enum sim_class class, enum sim_call call);

/* An error of errnos.def that strikes `call` now: 0 or -errno.  The first is
 * for EINTR, the second for all others but EAGAIN. */
int sim_fault_eintr(enum sim_call call);
int sim_fault_errno(enum sim_call call);

/* `size` or less, but at least 1 if it was. */
size_t sim_fault_short(enum sim_call call, size_t size);

/* How long from now until something that is delayed, hidden or late happens. */
uint64_t sim_fault_delay_ns(struct sim_fault *fault, uint64_t most_ns);

const char *sim_class_name(enum sim_class class);

#endif
