/* semantics.h - tests of how a kernel must behave, for any sys table.
 *
 * The same tests run on the real kernel and on the simulated one, to check that the simulated
 * kernel behaves like the real one.
 *
 * Needs: base/sys.h.
 */
#ifndef WEFT_SIM_SEMANTICS_H
#define WEFT_SIM_SEMANTICS_H

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include "base/sys.h"

/* A table, and operations that the table has no call for. */
struct host {
	const char             *name;
	const struct weft__sys *sys;
	uint64_t                settle_ns; /* time until all packets have arrived */
	int  (*dup)(int fd);
	int  (*socketpair)(int out[2]);
	int  (*open_file)(size_t size);
	void (*allow_fds)(int more); /* beyond those open now; -1: as before */
	void (*no_delay)(int fd); /* of TCP: small packets are sent at once */
	void (*fail)(const char *text);
};

extern const struct host host_real;
extern const struct host host_simulated; /* only within a run */

struct semantic_test {
	const char *name;
	void      (*run)(const struct host *host);
};

extern const struct semantic_test semantics_epoll[]; /* ended by a NULL name */
extern const struct semantic_test semantics_files[];
extern const struct semantic_test semantics_sockets[];

void check_eq_at(const struct host *host, const char *place, int64_t got,
                 int64_t want);

#define PLACE_(line) #line
#define PLACE(line)  PLACE_(line)
#define CHECK_EQ(got, want)                                            \
	check_eq_at(host, __FILE__ ":" PLACE(__LINE__) ": " #got,      \
	            (int64_t)(got), (int64_t)(want))

/* ok(): return `rc`, and fail if it is an error.  end(): close one or two descriptors; b < 0:
 * one.  add(): write a 1. */
int  ok(const struct host *host, int rc);
void end(const struct host *host, int a, int b);
void add(const struct host *host, int fd);

/* Let everything arrive that is in transit. */
void settle(const struct host *host);

/* The events of `fd` now: those of `events`, and those that are always reported. */
uint32_t ready_now(const struct host *host, int fd, uint32_t events);

/* The same, as soon as there is one. */
uint32_t ready_soon(const struct host *host, int fd, uint32_t events);

/* watch(): epoll_ctl with the descriptor as data.  report(): the events of the one ready
 * descriptor, or 0. */
int      watch(const struct host *host, int ep, int op, int fd,
               uint32_t events);
uint32_t report(const struct host *host, int ep);

#endif
