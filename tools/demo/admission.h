/* admission.h - how many requests are let in at once, found by how long they take.
 *
 *   1. More than `most` are never in flight, and LEAST always may be.
 *   2. In between, the limit is lowered when requests take longer than they should, at most
 *      once in that time, and rises by one for each round of requests that did not.
 *
 * So what is let in keeps its latency on a slow machine, too, and the rest is told at once.
 */
#ifndef WEFT_DEMO_ADMISSION_H
#define WEFT_DEMO_ADMISSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ADMISSION_LEAST 8

struct admission {
	pthread_mutex_t lock;
	uint64_t        in_flight; /* written under the lock, read as an atomic */
	uint64_t        lowered_ns;
	double          limit, most;
};

void admission_init(struct admission *admission, uint32_t most);
bool admission_enter(struct admission *admission);
/* One that was let in has ended at `now_ns`; it should have taken `target_ns` at most. */
void admission_leave(struct admission *admission, uint64_t took_ns,
                     uint64_t target_ns, uint64_t now_ns);

#endif
