/* sim.h - run a scenario on a simulated kernel, with all choices drawn from one seed.
 *
 * sim_run() replaces weft__sys by the simulated table and runs the scenario as the first
 * simulated thread.  When the scenario has returned, it checks for threads, descriptors and
 * memory left behind.  Library code runs on the table unchanged, built with WEFT__HOOK_ATOMICS.
 * The peers in a scenario use the table, too.
 *
 * A call from a scenario to these functions is neither a scheduling point nor in the trace,
 * unless a comment states otherwise.
 *
 * Needs: base/.  Thread: one OS thread for everything.
 */
#ifndef WEFT_SIM_SIM_H
#define WEFT_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sys.h"

/* Kinds of faults.  Each seed enables some of them, each at its own rate. */
enum sim_class {
	SIM_SHORT,    /* a transfer of fewer bytes than possible */
	SIM_EINTR,
	SIM_EAGAIN,   /* would block, although readiness was reported */
	SIM_RESET,    /* a connection breaks */
	SIM_REFUSE,   /* a connect fails: refused, unreachable, timed out */
	SIM_ERRNO,    /* any other recoverable error of errnos.def */
	SIM_ALLOC,    /* no memory */
	SIM_LATE,     /* an unpark or a timeout takes effect late */
	SIM_SPURIOUS, /* a park ends spuriously */
	SIM_DELAY,    /* a packet is delayed */
	SIM_BATCH,    /* fewer events at once than are pending */
	SIM_CLOCK,    /* the clock jumps forward, as after a suspend */
	SIM_THREAD,   /* a thread cannot be started */
	SIM_CLASSES,
};

#define SIM_MASK(class_) (UINT32_C(1) << (class_))
#define SIM_MASK_ALL     (SIM_MASK(SIM_CLASSES) - 1)

struct sim_scenario {
	const char *name;
	void      (*run)(void *arg);
	void       *arg;
	uint32_t    masked_faults; /* SIM_MASK()s that are never injected here */
};

/* An injected fault; its index is its position in the list. */
struct sim_fault {
	uint64_t    key;     /* identifies it: the same when the seed is run again */
	uint64_t    time_ns; /* of the virtual clock */
	uint64_t    bits;    /* the rest of its draw, for the code that injects it */
	int64_t     what;    /* bytes, error or nanoseconds */
	const char *call;
	const char *fault_class;
	uint32_t    thread;
};

struct sim_opts {
	uint32_t  masked_faults;    /* in addition to the scenario's */
	bool      print_trace;      /* each line, to standard output */
	bool      calm;             /* a fast network with large buffers */
	uint64_t  steps_max;        /* 0: 5 million */
	const uint64_t *only;       /* keys of the faults that are allowed; or NULL */
	size_t    only_count;
	struct sim_fault *faults;   /* output: the injected faults; or NULL */
	size_t    faults_max;       /* size of that array */
};

#define SIM_TEXT_BYTES 1536

struct sim_result {
	bool     failed;
	char     text[SIM_TEXT_BYTES]; /* reason of the failure */
	uint64_t kind;       /* equal for failures of the same check */
	uint64_t hash;       /* of the trace */
	uint64_t faults;     /* injected; may be more than were listed */
	uint64_t steps;      /* atomic operations and calls */
	uint64_t calls;      /* of the sys table */
	uint64_t virtual_ns; /* passed on the virtual clock */
};

/* Run `scenario` with `seed` and fill *out.  `opts` may be NULL.  Borrows all arguments until
 * it returns. */
void sim_run(const struct sim_scenario *scenario, uint64_t seed,
             const struct sim_opts *opts, struct sim_result *out);

/* The table itself, for a test that compares tables. */
extern const struct weft__sys sim_sys;

/* --- for scenarios ---------------------------------------------------- */

/* End the run as failed.  Only the first failure is reported. */
_Noreturn void sim_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#define sim_check(cond) \
	((cond) ? (void)0 : sim_fail("%s:%d: %s", __FILE__, __LINE__, #cond))

/* A scenario's own choices: any number, or one below `n`. */
uint64_t sim_random(void);
uint64_t sim_random_below(uint64_t n);

/* The virtual time.  Reading it takes no virtual time. */
uint64_t sim_time(void);

/* Has a fault of that class been injected in this run?  If not, the scenario must not see an
 * error that only such a fault can cause. */
bool sim_has_failed(enum sim_class fault_class);

/* Inject no more faults in this run: everything pending must now complete. */
void sim_heal(void);

/* sim_mask(): mask classes for the calling thread only; returns the mask before.  sim_spare():
 * mask classes for all threads, for the rest of the run. */
uint32_t sim_mask(uint32_t classes);
void sim_spare(uint32_t classes);

/* From now on the network is fast and has large buffers, for connections made later. */
void sim_calm_net(void);

/* Descriptors that the table has no call for: dup(2); a regular file of `size` bytes that count
 * up; socketpair(2) with AF_UNIX and SOCK_STREAM.  Each returns >= 0 or -errno. */
int sim_dup(int fd);
int sim_open_file(size_t size);
int sim_socketpair(int out[2]);

/* Break the connection of a stream socket, as a router or a crash would.  sim_break_all():
 * break all TCP connections. */
void sim_break(int fd);
void sim_break_all(void);

/* Send a signal to the process: a thread handles it, in the middle of what it does. */
void sim_kill(int signo);

/* Limit the number of descriptors; 1024 at first. */
void sim_limit_fds(int count);

/* The number of open descriptors; and of bytes allocated through the table. */
int    sim_count_fds(void);
size_t sim_count_bytes(void);

/* The scenario and seed of the current run, for a signal handler; NULL outside of a run. */
const struct sim_scenario *sim_current(uint64_t *seed);

#endif
