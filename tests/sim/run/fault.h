/* fault.h - decides whether a call fails, and lists the injected faults.
 *
 * Needs: rng.h, clock.h, trace.h.
 */
#ifndef WEFT_SIM_FAULT_H
#define WEFT_SIM_FAULT_H

#include "sim/run/sim.h"
#include "sim/run/trace.h"

void     sim_fault_reset(uint32_t masked, const struct sim_opts *opts);
uint64_t sim_fault_count(void);

/* Does a fault of `class` hit this call?  Each question is numbered, per class and call.
 * Returns NULL, or the recorded fault, in which the caller sets `what`. */
struct sim_fault *sim_fault(enum sim_class fault_class, enum sim_call call);

/* Inject an error that errnos.def lists for `call`: 0 or -errno.  The first function injects
 * EINTR, the second all other errors except EAGAIN. */
int sim_fault_eintr(enum sim_call call);
int sim_fault_errno(enum sim_call call);

/* `size` or less, but at least 1 if `size` is. */
size_t sim_fault_short(enum sim_call call, size_t size);

/* Draw a delay from `fault`, at most `most_ns`, for something that is delayed, hidden or late. */
uint64_t sim_fault_delay_ns(struct sim_fault *fault, uint64_t most_ns);

const char *sim_class_name(enum sim_class fault_class);

#endif
