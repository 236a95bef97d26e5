/* py_client.c - a client of an echo server, for pythons.py.
 *
 *     py_client plain|tls PORT CONNECTIONS BYTES COUNT
 *
 * Each connection has one message of BYTES bytes in flight.  After COUNT / 10 replies it prints
 * "warm" and waits for a line on standard input.  After COUNT more replies it prints "done" and
 * waits again.  So pythons.py can read the server's CPU time while the server is idle and all
 * connections are open.  Each reply must equal the message.
 *
 * The echo of a large message starts while the message is still being sent, so sending and
 * receiving must not wait for each other: sockets are non-blocking, and epoll is
 * edge-triggered.
 */
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include "local.h"
#include "secure.h"

#define CONNECTIONS_MAX 1000
#define BYTES_MAX       (1 << 20)
#define PATIENCE_S      60

struct connection {
	int fd;
	SSL *ssl; /* NULL: plain */
	size_t sent, received;
};

static struct connection all[CONNECTIONS_MAX];
static char message[BYTES_MAX], buf[65536];
static size_t size;         /* of a message */
static uint64_t begun, end; /* messages: started, and to start in all */
static int under_way;

static bool
waits(SSL *ssl, int rc)
{
	int error = SSL_get_error(ssl, rc);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* Returns how much was sent; 0: it would block. */
static size_t
put(struct connection *c)
{
	const char *at = message + c->sent;
	size_t left = size - c->sent, n = 0;
	ssize_t sent;

	if (c->ssl) {
		int rc = SSL_write_ex(c->ssl, at, left, &n);

		BENCH_CHECK(rc == 1 || waits(c->ssl, rc));
		return n;
	}
	sent = send(c->fd, at, left, MSG_NOSIGNAL);
	BENCH_CHECK(sent > 0 || errno == EAGAIN);
	return sent > 0 ? (size_t)sent : 0;
}

/* Returns how much was received into `buf`; 0: it would block. */
static size_t
get(struct connection *c)
{
	size_t left = size - c->received, n = 0;
	ssize_t got;

	if (left > sizeof(buf))
		left = sizeof(buf);
	if (c->ssl) {
		int rc = SSL_read_ex(c->ssl, buf, left, &n);

		BENCH_CHECK(rc == 1 || waits(c->ssl, rc));
		return n;
	}
	got = recv(c->fd, buf, left, 0);
	BENCH_CHECK(got > 0 || (got < 0 && errno == EAGAIN));
	return got > 0 ? (size_t)got : 0;
}

static void
push(struct connection *c)
{
	size_t n;

	while (c->sent < size && (n = put(c)) > 0)
		c->sent += n;
}

static void
begin(struct connection *c)
{
	if (begun == end)
		return;
	begun++;
	under_way++;
	c->sent = c->received = 0;
	push(c);
}

static void
pull(struct connection *c)
{
	size_t n;

	if (c->received == size)
		return;
	while (c->received < size && (n = get(c)) > 0) {
		BENCH_CHECK(memcmp(buf, message + c->received, n) == 0);
		c->received += n;
	}
	if (c->received == size) {
		BENCH_CHECK(c->sent == size);
		under_way--;
		begin(c);
	}
}

static void
run(int poller, int connections, uint64_t count)
{
	struct epoll_event events[CONNECTIONS_MAX];

	begun = 0;
	end = count;
	for (int i = 0; i < connections; i++)
		begin(&all[i]);
	while (under_way > 0) {
		int n = epoll_wait(poller, events, connections, -1);

		BENCH_CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			push(events[i].data.ptr);
			pull(events[i].data.ptr);
		}
	}
}

/* Connect and do the handshake in blocking mode. */
static void
start(struct connection *c, int port, SSL_CTX *context, int poller)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };

	c->fd = local_connect(port);
	c->sent = c->received = size;
	if (context) {
		c->ssl = SSL_new(context);
		BENCH_CHECK(c->ssl && SSL_set_fd(c->ssl, c->fd) == 1);
		BENCH_CHECK(SSL_connect(c->ssl) == 1);
		(void)SSL_set_mode(c->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
	}
	BENCH_CHECK(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
	BENCH_CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event) == 0);
}

static void
tell(const char *word)
{
	(void)puts(word);
	(void)fflush(stdout);
	(void)getchar(); /* a line, or the end of the input */
}

int
main(int argc, char **argv)
{
	bool tls = argc == 6 && strcmp(argv[1], "tls") == 0;
	int connections = argc == 6 ? (int)strtol(argv[3], NULL, 10) : 0;
	uint64_t count = argc == 6 ? strtoull(argv[5], NULL, 10) : 0;
	SSL_CTX *context = tls ? secure_context() : NULL;
	int poller = epoll_create1(0);

	size = argc == 6 ? strtoul(argv[4], NULL, 10) : 0;
	if (connections < 1 || connections > CONNECTIONS_MAX || size < 1 || size > BYTES_MAX
	    || count < 1)
		bench_die("usage: %s plain|tls PORT CONNECTIONS BYTES COUNT", argv[0]);
	(void)alarm(PATIENCE_S);
	for (size_t i = 0; i < size; i++)
		message[i] = (char)bench_random();
	for (int i = 0; i < connections; i++)
		start(&all[i], (int)strtol(argv[2], NULL, 10), context, poller);
	run(poller, connections, count / 10);
	tell("warm");
	run(poller, connections, count);
	tell("done");
	return 0;
}
