/* echo_ops.c - an echo server with ops and callbacks: one struct per peer. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

struct peer {
	int fd;
	weft_op op; /* receives, sends and closes, one at a time */
	char buf[4096];
	size_t size, sent;
};

static void on_received(weft_op *op, int64_t result, void *arg);
static void on_sent(weft_op *op, int64_t result, void *arg);

static void
on_closed(weft_op *op, int64_t result, void *arg)
{
	(void)op, (void)result;
	free(arg);
}

static void
drop(struct peer *peer)
{
	weft_op_init(&peer->op, NULL, on_closed, peer);
	if (weft_op_close(&peer->op, peer->fd) < 0) { /* the loop is stopping */
		close(peer->fd);
		free(peer);
	}
}

static void
receive(struct peer *peer)
{
	weft_op_init(&peer->op, NULL, on_received, peer);
	if (weft_op_recv(&peer->op, peer->fd, peer->buf, sizeof peer->buf, 0,
	                 weft_after(300 * WEFT_S))
	    < 0)
		drop(peer);
}

static void
send_rest(struct peer *peer)
{
	weft_op_init(&peer->op, NULL, on_sent, peer);
	if (weft_op_send(&peer->op, peer->fd, peer->buf + peer->sent,
	                 peer->size - peer->sent, 0, weft_after(5 * WEFT_S))
	    < 0)
		drop(peer);
}

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer = arg;

	(void)op;
	if (result < 0) {
		drop(peer);
		return;
	}
	peer->sent += (size_t)result;
	if (peer->sent < peer->size)
		send_rest(peer);
	else
		receive(peer);
}

static void
on_received(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer = arg;

	(void)op;
	if (result <= 0) {
		drop(peer);
		return;
	}
	peer->size = (size_t)result;
	peer->sent = 0;
	send_rest(peer);
}

static void
on_accepted(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer;

	(void)op, (void)arg;
	if (result < 0) {
		fprintf(stderr, "accept: %s\n", weft_strerror((int)result));
		return;
	}
	peer = calloc(1, sizeof *peer);
	if (!peer) {
		close((int)result);
		return;
	}
	peer->fd = (int)result;
	receive(peer);
}

static int
listen_on(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		                    .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (fd >= 0
	    && (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0
	        || listen(fd, 512) < 0)) {
		perror("listen");
		close(fd);
		return -1;
	}
	return fd;
}

static weft_loop *loop;

static void
on_signal(int signo)
{
	(void)signo;
	weft_loop_shutdown(
		loop); /* from any thread; also in a signal handler */
}

int
main(int argc, char **argv)
{
	uint16_t port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 7000;
	struct sigaction action = { .sa_handler = on_signal };
	weft_op accepting;
	int fd = listen_on(port);

	loop = weft_loop_new(NULL);
	if (fd < 0 || !loop)
		return 1;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	weft_op_init(&accepting, loop, on_accepted, NULL);
	weft_op_accept(&accepting, fd, WEFT_MULTI, WEFT_NEVER);
	printf("listening on port %d; try: nc 127.0.0.1 %d\n"
	       "Ctrl-C ends it\n",
	       port, port);
	fflush(stdout);
	weft_loop_run(loop);
	close(fd);
	puts("bye");
	return weft_loop_free(loop) < 0;
}
