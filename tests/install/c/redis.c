/* redis.c - a program outside of the tree that uses the installed Redis library. */
#include <stdio.h>
#include <weft/redis.h>
#include <weft/weft.h>

int
main(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_redis_opts opts = { .loop = loop };
	weft_redis *redis = NULL;
	int rc = weft_redis_open("redis://127.0.0.1/1", &opts, &redis);

	printf("weft_redis from C: %s\n", weft_strerror(rc));
	weft_redis_close(redis);
	return rc < 0 || weft_loop_free(loop) < 0;
}
