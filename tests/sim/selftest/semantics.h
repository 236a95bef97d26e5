/* semantics.h - what a kernel must do, as tests that any sys table can be put
 * to.
 *
 * The same tests run on the real kernel and on the simulated one: that is how
 * the simulated one is known to be like it.
 *
 * Needs: base/sys.h.
 */
#ifndef WEFT_SIM_SEMANTICS_H
#define WEFT_SIM_SEMANTICS_H

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include "base/sys.h"

/* A table, and what it has no call for. */
struct host {
	const char             *name;
	const struct weft__sys *sys;
	uint64_t                settle_ns; /* until all packets have arrived */
	int  (*dup)(int fd);
	int  (*socketpair)(int out[2]);
	int  (*open_file)(size_t size);
	void (*allow_fds)(int more); /* than are open; -1: as before */
	void (*no_delay)(int fd); /* of TCP: small packets go out at once */
	void (*fail)(const char *text);
};

extern const struct host host_real;
extern const struct host host_simulated; /* within a run */

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

/* `rc`, which must not be an error; close one or two (b < 0: one); and write a
 * 1. */
int  ok(const struct host *host, int rc);
void end(const struct host *host, int a, int b);
void add(const struct host *host, int fd);

/* Let everything arrive that is on its way. */
void settle(const struct host *host);

/* The events that `fd` has now, out of `events` and those always reported. */
uint32_t ready_now(const struct host *host, int fd, uint32_t events);

/* The same once one of them is there. */
uint32_t ready_soon(const struct host *host, int fd, uint32_t events);

/* epoll_ctl with the descriptor as data; and the events of the one that is
 * ready, 0 if none is. */
int      watch(const struct host *host, int ep, int op, int fd,
               uint32_t events);
uint32_t report(const struct host *host, int ep);

#endif
