/* embed.c - a weft loop embedded in a foreign poll(2) loop.
 *
 * The host keeps its own loop and its own descriptors.  It waits for one more
 * descriptor, no longer than weft_loop_next() permits, and then runs one
 * iteration of the weft loop.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/embed.h>
#include <weft/weft.h>

static void
nag(weft_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
	puts("still here; type something, or end the input");
}

/* The timeout for poll(2), in milliseconds, rounded up; -1: none. */
static int
timeout_of(uint64_t next_ns)
{
	uint64_t now_ns = weft_now();

	if (next_ns == WEFT_NEVER)
		return -1;
	if (next_ns <= now_ns)
		return 0;
	return (int)((next_ns - now_ns + WEFT_MS - 1) / WEFT_MS);
}

/* The host's loop; runs until its input ends. */
static int
serve(weft_loop *loop)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = weft_loop_fd(loop), .events = POLLIN },
	};
	char line[128];
	ssize_t size = 1;

	if (fds[1].fd < 0)
		return fds[1].fd;
	while (size > 0) {
		if (poll(fds, 2, timeout_of(weft_loop_next(loop))) < 0)
			return WEFT_EINTR;
		if (fds[0].revents) {
			size = read(STDIN_FILENO, line, sizeof line);
			if (size > 0)
				printf("the host has read %zd bytes\n", size);
		}
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	}
	return 0;
}

int
main(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_timer timer = WEFT_INIT;
	int rc;

	if (!loop)
		return 1;
	rc = weft_timer_start(loop, &timer, weft_now(), 2 * WEFT_S, nag, NULL);
	if (rc == 0)
		rc = serve(loop);
	if (rc < 0)
		fprintf(stderr, "embed: %s\n", weft_strerror(rc));
	weft_loop_shutdown(loop); /* disarms the timer */
	return weft_loop_free(loop) < 0 || rc < 0;
}
