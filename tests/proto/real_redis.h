/* real_redis.h - a private redis-server, for as long as a test needs it.
 *
 * It listens on a socket in its own folder, has no port, stores nothing on disk, and dies with
 * the test.
 */
#ifndef WEFT_TESTS_REAL_REDIS_H
#define WEFT_TESTS_REAL_REDIS_H

#include <sys/types.h>

struct real_redis {
	pid_t pid; /* 0: it is not running */
	char  folder[64];
	char  socket[96];
};

/* Start it and wait until it is ready.  Skips the test program if redis-server is not
 * installed. */
void real_redis_start(struct real_redis *redis);

/* Kill it, and wait until it is gone.  Its socket stays until real_redis_stop(). */
void real_redis_kill(struct real_redis *redis);
void real_redis_stop(struct real_redis *redis);

#endif
