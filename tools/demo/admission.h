/* admission.h - limits the number of concurrent requests, based on how long they take.
 *
 *   1. Never more than `most` requests are in flight, and ADMISSION_LEAST are always allowed.
 *   2. Between these, the limit is lowered when requests take longer than their target, at most
 *      once per target time.  It rises by one for each round of requests that met the target.
 *
 * So admitted requests keep their latency on a slow machine, too, and the rest are rejected at
 * once.
 */
#ifndef WEFT_DEMO_ADMISSION_H
#define WEFT_DEMO_ADMISSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ADMISSION_LEAST 8

struct admission {
	pthread_mutex_t lock;
	uint64_t        in_flight; /* written under the lock, read atomically */
	uint64_t        lowered_ns;
	double          limit, most;
};

void admission_init(struct admission *admission, uint32_t most);
bool admission_enter(struct admission *admission);
/* An admitted request has ended at `now_ns`; it should have taken at most `target_ns`. */
void admission_leave(struct admission *admission, uint64_t took_ns,
                     uint64_t target_ns, uint64_t now_ns);

#endif
