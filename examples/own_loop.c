/* own_loop.c - an event loop of your own, made of a poller and a timer wheel.
 *
 *     own_loop PORT SECONDS
 *
 * An echo server that drops a peer after SECONDS without a byte.  While a
 * peer does not read, the server does not read from it either.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/poller.h>
#include <weft/wheel.h>

#define PEERS 100

struct peer {
	int fd; /* 0: a free slot */
	uint32_t events;
	weft_timer idle;
	char buf[4096];
	size_t size, sent;
};

static struct peer peers[PEERS];
static weft_poller *poller;
static weft_wheel *wheel;
static uint64_t idle_ns;
static atomic_bool ending;

static void
drop(struct peer *peer)
{
	weft_wheel_stop(wheel, &peer->idle);
	weft_poller_remove(poller, peer->fd);
	close(peer->fd);
	peer->fd = 0;
}

static void
on_idle(weft_timer *timer, void *peer)
{
	(void)timer;
	drop(peer);
}

/* Wait for the peer, and move its timeout: the wheel makes no system call. */
static int
await_peer(struct peer *peer)
{
	uint32_t events = peer->size > 0 ? WEFT_WRITABLE : WEFT_READABLE;
	int rc = weft_wheel_start(wheel, &peer->idle, weft_after(idle_ns), 0,
	                          on_idle, peer);

	if (rc < 0 || events == peer->events)
		return rc;
	peer->events = events;
	return weft_poller_modify(poller, peer->fd, events, (uintptr_t)peer);
}

static int
serve(struct peer *peer)
{
	ssize_t n;

	if (peer->size == 0) {
		n = recv(peer->fd, peer->buf, sizeof peer->buf, MSG_DONTWAIT);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : WEFT_EOF;
		peer->size = (size_t)n;
		peer->sent = 0;
	}
	n = send(peer->fd, peer->buf + peer->sent, peer->size - peer->sent,
	         MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	peer->sent += n < 0 ? 0 : (size_t)n;
	if (peer->sent == peer->size)
		peer->size = 0;
	return await_peer(peer);
}

static void
accept_peer(int listener)
{
	int fd = accept(listener, NULL, NULL);
	struct peer *peer = peers;

	while (peer < peers + PEERS && peer->fd)
		peer++;
	if (fd < 0 || peer == peers + PEERS
	    || weft_poller_add(poller, fd, WEFT_READABLE, (uintptr_t)peer)
	               < 0) {
		close(fd);
		return;
	}
	*peer = (struct peer){ .fd = fd, .events = WEFT_READABLE };
	if (await_peer(peer) < 0)
		drop(peer);
}

static int
run(int listener)
{
	weft_poller_event events[64];
	int n = weft_poller_add(poller, listener, WEFT_READABLE, 0);

	while (n >= 0 && !atomic_load(&ending)) {
		n = weft_poller_wait(poller, events, 64,
		                     weft_wheel_next(wheel));
		for (int i = 0; i < n; i++) {
			struct peer *peer = (void *)(uintptr_t)events[i].token;

			if (!peer)
				accept_peer(listener);
			else if (serve(peer) < 0)
				drop(peer);
		}
		weft_wheel_advance(wheel, weft_now());
	}
	return n;
}

static void *
await_signal(void *signals)
{
	int signo;

	sigwait(signals, &signo);
	atomic_store(&ending, true);
	weft_poller_wake(poller);
	return NULL;
}

static int
listen_on(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		                    .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0
	    || listen(fd, 512) < 0) {
		perror("listen");
		exit(1);
	}
	return fd;
}

int
main(int argc, char **argv)
{
	sigset_t signals;
	pthread_t thread;
	int rc, listener;

	if (argc != 3)
		return 2;
	listener = listen_on((uint16_t)strtoul(argv[1], NULL, 10));
	idle_ns = strtoul(argv[2], NULL, 10) * WEFT_S;
	wheel = weft_wheel_new(weft_now());
	rc = weft_poller_open(NULL, &poller);
	if (!wheel || rc < 0)
		return 1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	pthread_create(&thread, NULL, await_signal, &signals);
	puts("listening");
	(void)fflush(stdout);
	rc = run(listener);
	pthread_join(thread, NULL);
	printf("%zu peers were connected\n", weft_wheel_count(wheel));
	weft_poller_close(poller);
	weft_wheel_free(wheel); /* disarms the timers that are left */
	return rc < 0;
}
