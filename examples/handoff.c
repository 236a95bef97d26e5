/* handoff.c - accept connections and pass them to worker processes in turn.
 *
 *     handoff ADDRESS
 *
 * A worker that crashes takes only its own connections with it.  Each worker
 * is this program with its number; its standard input is a Unix socket, over
 * which it receives the descriptors.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define WORKERS 2

struct worker {
	weft_child *child;
	weft_stream *channel;
};

/* --- in a worker --- */

static const char *number;

static int
greet(void *peer)
{
	char name[64], text[128];
	ssize_t n = weft_stream_read_until(peer, "\n", name, sizeof name,
	                                   weft_after(30 * WEFT_S));

	if (n > 0) {
		int size = snprintf(text, sizeof text, "worker %s greets %.*s",
		                    number, (int)n, name);

		n = weft_stream_write(peer, text, (size_t)size,
		                      weft_after(5 * WEFT_S));
	}
	weft_stream_close(peer);
	return n < 0 ? (int)n : 0;
}

static int
work(void *arg)
{
	weft_stream *channel, *peer;
	int fd, rc = weft_stream_open_fd(STDIN_FILENO, false, &channel);

	(void)arg;
	if (rc < 0)
		return rc;
	while ((rc = weft_stream_recv_fd(channel, &fd, WEFT_NEVER)) == 0)
		if (weft_stream_open_fd(fd, false, &peer) < 0)
			close(fd);
		else if (weft_go(greet, peer) < 0)
			weft_stream_close(peer);
	weft_stream_close(channel);
	return rc == WEFT_EOF || rc == WEFT_ECANCELED ? 0 : rc;
}

/* --- in the parent --- */

static int
start_worker(struct worker *worker, const char *program, int index)
{
	char text[12];
	const char *const argv[] = { program, "--worker", text, NULL };
	weft_child_opts opts = { .std = { WEFT_CHILD_FD } };
	int rc, pair[2];

	snprintf(text, sizeof text, "%d", index + 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	opts.fd[0] = pair[1];
	rc = weft_stream_open_fd(pair[0], false, &worker->channel);
	if (rc < 0)
		close(pair[0]);
	else
		rc = weft_child_open(argv, &opts, &worker->child,
		                     weft_after(5 * WEFT_S));
	close(pair[1]);
	return rc;
}

static int
pass_peers(weft_listener *listener, struct worker *workers)
{
	weft_stream *peer;
	int rc;

	for (int i = 0;; i = (i + 1) % WORKERS) {
		rc = weft_listener_accept(listener, &peer, WEFT_NEVER);
		if (rc < 0)
			return rc;
		rc = weft_stream_send_fd(workers[i].channel,
		                         weft_stream_fd(peer),
		                         weft_after(5 * WEFT_S));
		weft_stream_close(peer); /* the worker has its own descriptor */
		if (rc < 0)
			return rc;
	}
}

static int
run(void *arg)
{
	char **argv = arg;
	struct worker workers[WORKERS] = { 0 };
	weft_listener *listener = NULL;
	int rc = 0;

	for (int i = 0; i < WORKERS && rc == 0; i++)
		rc = start_worker(&workers[i], argv[0], i);
	if (rc == 0)
		rc = weft_listener_open(argv[1], NULL, &listener);
	if (rc == 0)
		rc = pass_peers(listener, workers);
	weft_listener_close(listener);
	for (int i = 0; i < WORKERS; i++) {
		weft_stream_close(workers[i].channel);
		weft_child_close(workers[i].child); /* SIGTERM */
	}
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
		return 2;
	}
	number = argc > 2 ? argv[2] : NULL;
	return weft_main(NULL, number ? work : run, argv);
}
