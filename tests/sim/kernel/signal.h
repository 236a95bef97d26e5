/* signal.h - signals of the simulated process; it can have no children.
 *
 * Needs: sim.h.
 */
#ifndef WEFT_SIM_SIGNAL_H
#define WEFT_SIM_SIGNAL_H

#include "sim/run/sim.h"

extern uint64_t sim_signals_pending; /* one bit per signal */

void sim_signals_reset(void);

/* Deliver one pending signal to the running thread, if that is allowed. */
void sim_signals_deliver(void);

/* Members of the sys table. */
int sim_signal_take(int signo, void (*fn)(int signo), struct sigaction *before);
int sim_signal_give(int signo, const struct sigaction *before);
int sim_spawn(const struct weft__spawn *spawn);
int sim_pid_open(int pid);
int sim_reap(const struct weft__pid *pid, uint32_t how, int *out);
int sim_process_kill(const struct weft__pid *pid, int signo, bool group);

#endif
