/* sim.h - run a scenario on a simulated kernel, all of it drawn from one seed.
 *
 * sim_run() puts the simulated table in the place of weft__sys, runs the
 * scenario as the first simulated thread and, when it has returned, looks for
 * threads, descriptors and memory left behind.  Library code runs on it
 * unchanged, built with WEFT__HOOK_ATOMICS.  A scenario's peers use the table,
 * too.
 *
 * What is called here from a scenario is neither a scheduling point nor in the
 * trace, except where a comment says so.
 *
 * Needs: base/.  Thread: one OS thread for everything.
 */
#ifndef WEFT_SIM_SIM_H
#define WEFT_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sys.h"

/* Kinds of faults.  For each seed some are on, each at a rate of its own. */
enum sim_class {
	SIM_SHORT,    /* a transfer of fewer bytes than possible */
	SIM_EINTR,
	SIM_EAGAIN,   /* would block, although readiness was reported */
	SIM_RESET,    /* a connection breaks */
	SIM_REFUSE,   /* a connect fails: refused, unreachable, timed out */
	SIM_ERRNO,    /* any other recoverable error of errnos.def */
	SIM_ALLOC,    /* no memory */
	SIM_LATE,     /* an unpark or a timeout is noticed late */
	SIM_SPURIOUS, /* a park ends for no reason */
	SIM_DELAY,    /* a packet is long on its way */
	SIM_BATCH,    /* fewer events at once than there are */
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
	uint32_t    masked_faults; /* SIM_MASK()s that never happen here */
};

/* An injected fault; its place in the list is its index. */
struct sim_fault {
	uint64_t    key;     /* which: the same when the seed is run again */
	uint64_t    time_ns; /* of the virtual clock */
	uint64_t    bits;    /* the rest of its draw, for who injects it */
	int64_t     what;    /* bytes, error or nanoseconds */
	const char *call;
	const char *class;
	uint32_t    thread;
};

struct sim_opts {
	uint32_t  masked_faults;    /* besides those of the scenario */
	bool      print_trace;      /* each line, to standard output */
	bool      calm;             /* a network that is fast and roomy */
	uint64_t  steps_max;        /* 0: 5 million */
	const uint64_t *only;       /* keys of those allowed; or NULL */
	size_t    only_count;
	struct sim_fault *faults;   /* fills: what was injected; or NULL */
	size_t    faults_max;       /* how many fit there */
};

#define SIM_TEXT_BYTES 1536

struct sim_result {
	bool     failed;
	char     text[SIM_TEXT_BYTES]; /* why */
	uint64_t kind;       /* the same for failures of the same check */
	uint64_t hash;       /* of the trace */
	uint64_t faults;     /* injected; may be more than were listed */
	uint64_t steps;      /* atomic operations and calls */
	uint64_t calls;      /* of the sys table */
	uint64_t virtual_ns; /* passed on the virtual clock */
};

/* Run `scenario` with `seed`.  `opts` may be NULL.  Borrows everything until it
 * returns, and fills *out. */
void sim_run(const struct sim_scenario *scenario, uint64_t seed,
             const struct sim_opts *opts, struct sim_result *out);

/* The table itself, for a test that compares tables. */
extern const struct weft__sys sim_sys;

/* --- for scenarios ---------------------------------------------------- */

/* End the run as failed.  The first one counts. */
_Noreturn void sim_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#define sim_check(cond) \
	((cond) ? (void)0 : sim_fail("%s:%d: %s", __FILE__, __LINE__, #cond))

/* A scenario's own choices: any number, or one below `n`. */
uint64_t sim_random(void);
uint64_t sim_random_below(uint64_t n);

/* The virtual clock, without the time that asking it takes. */
uint64_t sim_time(void);

/* Has a fault of that class been injected in this run?  Else nothing that it leads to has a
 * cause. */
bool sim_has_failed(enum sim_class class);

/* No more faults in this run: what is pending must now come to its end. */
void sim_heal(void);

/* Mask classes for the calling thread only; returns what was masked before.  Or for
 * all, for the rest of the run. */
uint32_t sim_mask(uint32_t classes);
void sim_spare(uint32_t classes);

/* The network is fast and roomy from now on; for connections that are not made yet. */
void sim_calm_net(void);

/* Descriptors that the table has no call for: dup(2); a regular file of `size`
 * bytes that counts up; socketpair(2), AF_UNIX and SOCK_STREAM.  >= 0 or
 * -errno. */
int sim_dup(int fd);
int sim_open_file(size_t size);
int sim_socketpair(int out[2]);

/* Break the connection of a stream socket, as a router or a crash would; or all over
 * TCP. */
void sim_break(int fd);
void sim_break_all(void);

/* Send a signal to the process: a thread gets it, in the middle of what it does. */
void sim_kill(int signo);

/* How many descriptors the process may have; 1024 at first. */
void sim_limit_fds(int count);

/* How many there are; and live allocations through the table, in bytes. */
int    sim_count_fds(void);
size_t sim_count_bytes(void);

/* What the run is, for a handler of signals; NULL outside of a run. */
const struct sim_scenario *sim_current(uint64_t *seed);

#endif
