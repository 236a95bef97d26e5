/* post.c - a loop on its own thread; two other threads post to it. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <weft/weft.h>

static long sum; /* used on the loop's thread only, until it has stopped */

static void
add(void *arg)
{
	sum += (long)(intptr_t)arg;
}

static void *
produce(void *arg)
{
	for (intptr_t i = 1; i <= 100000; i++)
		while (weft_loop_post(arg, add, (void *)i) == WEFT_EAGAIN)
			sched_yield(); /* the inbox is full: slow down */
	return NULL;
}

int
main(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	pthread_t thread[2];

	if (!loop || weft_loop_start(loop) < 0)
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, produce, loop);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	weft_loop_shutdown(loop); /* accepted posts still run */
	weft_loop_wait_stopped(loop, WEFT_NEVER);
	printf("%ld\n", sum);
	return weft_loop_free(loop) < 0;
}
