/* real_redis.h - a redis-server of one's own, for as long as a test needs it.
 *
 * It listens on a socket in a folder of its own, has no port, keeps nothing, and dies
 * with the test.
 */
#ifndef WEFT_TESTS_REAL_REDIS_H
#define WEFT_TESTS_REAL_REDIS_H

#include <sys/types.h>

struct real_redis {
	pid_t pid; /* 0: it does not run */
	char  folder[64];
	char  socket[96];
};

/* Start it and wait until it is ready; the program is skipped if there is none. */
void real_redis_start(struct real_redis *redis);

/* End it by force, and wait until it is gone; its socket stays until the stop. */
void real_redis_kill(struct real_redis *redis);
void real_redis_stop(struct real_redis *redis);

#endif
