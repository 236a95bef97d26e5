/* socket.c - stream sockets: listening, connecting, accepting.
 *
 * AF_INET and AF_INET6 sockets are on the loopback, where a connection takes packets: the
 * request to the listener, which makes the other end and queues it, and the answer.  AF_UNIX
 * connects at once, or fails.  A listener's queue holds sockets that have no descriptor yet;
 * data and resets may already reach them there.
 *
 *   1. queue_count is the number of sockets in the queue; each has one reference.
 *   2. With a full queue, a request either waits and is retried, like a lost SYN, or is
 *      refused; which of the two is the same for a whole seed.
 *
 * Datagrams are in dgram.c; options and passed descriptors are not simulated, except for
 * SO_LINGER.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/run/rng.h"
#include "sim/kernel/socket.h"

enum { TRIES_MAX = 6 };

static bool refuses; /* rule 2 */

void
sim_socket_reset(void)
{
	sim_names_reset();
	refuses = sim_below(SIM_DRAW_SETUP, 4) == 0;
}

struct sim_socket *
sim_sock_make(int domain)
{
	struct sim_socket *socket = sim_file_new(&sim_socket_ops, sizeof(*socket));

	socket->domain = domain;
	return socket;
}

int
sim_sock_of(int fd, struct sim_socket **out)
{
	struct sim_file *file = sim_fd_file(fd);

	if (!file)
		return -EBADF;
	if (file->ops != &sim_socket_ops)
		return -ENOTSOCK;
	*out = (struct sim_socket *)file;
	return 0;
}

int
sim_sock_new(int domain, int type, int protocol)
{
	int rc;

	if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX)
		return -EAFNOSUPPORT;
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM)
		return -EPROTONOSUPPORT;
	if (protocol != 0 && (protocol != IPPROTO_TCP || domain == AF_UNIX))
		return -EPROTONOSUPPORT;
	rc = sim_fd_room(1);
	return rc < 0 ? rc : sim_fd_new(&sim_sock_make(domain)->file);
}

int
sim_socketpair(int out[2])
{
	struct sim_socket *a, *b;
	int rc = sim_fd_room(2);

	if (rc < 0)
		return rc;
	a = sim_sock_make(AF_UNIX);
	b = sim_sock_make(AF_UNIX);
	sim_stream_join(a, b);
	sim_stream_join(b, a);
	out[0] = sim_fd_new(&a->file);
	out[1] = sim_fd_new(&b->file);
	return 0;
}

/* --- names ------------------------------------------------------------ */

int
sim_sock_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	struct sockaddr_storage name;
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc == 0)
		rc = sim_name_copy(socket->domain, addr, size, &name, -EADDRNOTAVAIL);
	if (rc < 0)
		return rc;
	if (socket->name.ss_family)
		return -EINVAL;
	return sim_name_give(socket, &name, size);
}

static socklen_t
size_of_names(int domain)
{
	return domain == AF_INET    ? sizeof(struct sockaddr_in)
	       : domain == AF_INET6 ? sizeof(struct sockaddr_in6)
	                            : sizeof(sa_family_t);
}

static void
copy_name(const struct sim_socket *socket, struct sockaddr *addr, socklen_t *size)
{
	struct sockaddr_storage name = socket->name;
	socklen_t full = socket->name_size ? socket->name_size : size_of_names(socket->domain);

	name.ss_family = (sa_family_t)socket->domain;
	memcpy(addr, &name, full < *size ? full : *size);
	*size = full;
}

int
sim_sock_name(int fd, struct sockaddr *addr, socklen_t *size)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	copy_name(socket, addr, size);
	return 0;
}

int
sim_sock_peer(int fd, struct sockaddr *addr, socklen_t *size)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	if (socket->state != SIM_SOCK_CONNECTED || !socket->peer)
		return -ENOTCONN;
	copy_name(socket->peer, addr, size);
	return 0;
}

/* --- listening and accepting ------------------------------------------ */

int
sim_sock_listen(int fd, int backlog)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	if (socket->state != SIM_SOCK_FRESH && socket->state != SIM_SOCK_LISTENING)
		return -EINVAL;
	rc = sim_name_give_any(socket);
	if (rc < 0)
		return rc;
	socket->state = SIM_SOCK_LISTENING;
	socket->queue_max = backlog < 0 || backlog > 4096 ? 4096 : (uint32_t)backlog;
	return 0;
}

static void
queue_add(struct sim_socket *listener, struct sim_socket *socket)
{
	if (listener->queue_last)
		listener->queue_last->queue_next = socket;
	else
		listener->queue_first = socket;
	listener->queue_last = socket;
	listener->queue_count++;
	sim_file_notify(&listener->file, EPOLLIN);
}

static struct sim_socket *
queue_take(struct sim_socket *listener)
{
	struct sim_socket *socket = listener->queue_first;

	listener->queue_first = socket->queue_next;
	if (!listener->queue_first)
		listener->queue_last = NULL;
	listener->queue_count--;
	return socket;
}

static void
queue_drop(struct sim_socket *listener)
{
	while (listener->queue_first) {
		struct sim_socket *socket = queue_take(listener);
		struct sim_socket *peer = socket->peer;

		if (peer && peer->domain == AF_UNIX)
			peer->error = ECONNRESET;
		else if (peer)
			sim_packet(peer, sim_stream_reset, 0);
		sim_file_unref(&socket->file);
	}
}

static bool
queue_hides(struct sim_socket *listener)
{
	struct sim_fault *hit;

	if (listener->hidden_in & 1)
		return true;
	hit = sim_fault(SIM_EAGAIN, SIM_CALL_accept);
	if (hit)
		sim_stream_hide(listener, true, hit);
	return hit != NULL;
}

int
sim_sock_accept(int fd)
{
	struct sim_socket *listener;
	int rc = sim_sock_of(fd, &listener);

	if (rc < 0)
		return rc;
	if (listener->state != SIM_SOCK_LISTENING)
		return -EINVAL;
	rc = sim_fd_room(1);
	if (rc < 0)
		return rc;
	if (!listener->queue_first || queue_hides(listener))
		return -EAGAIN;
	return sim_fd_new(&queue_take(listener)->file);
}

/* --- connecting ------------------------------------------------------- */

/* Make the other end of `socket`, in the queue of `listener`. */
static void
make_other_end(struct sim_socket *socket, struct sim_socket *listener)
{
	struct sim_socket *other = sim_sock_make(socket->domain);

	other->name = listener->name;
	other->name_size = listener->name_size;
	sim_stream_join(socket, other);
	queue_add(listener, other);
}

static void
on_connected(void *object, uint64_t attempt)
{
	struct sim_socket *socket = object;

	if (socket->state != SIM_SOCK_CONNECTING || socket->attempt != attempt)
		return;
	socket->state = SIM_SOCK_CONNECTED;
	sim_trace(SIM_CALL_packet, 'C', (int64_t)socket->file.id, 0);
	sim_file_notify(&socket->file, 0);
}

/* The request arrives at the listener, if there is one.  The argument is 8 times the number of
 * the attempt, plus the number of earlier tries. */
static void
on_request(void *object, uint64_t arg)
{
	struct sim_socket *socket = object;
	struct sim_socket *listener = sim_name_find(&socket->target, true);
	uint64_t tries = arg % 8;

	if (socket->state != SIM_SOCK_CONNECTING || socket->attempt != arg / 8)
		return;
	if (listener && !listener->ignores_syn && listener->queue_count <= listener->queue_max) {
		make_other_end(socket, listener);
		sim_packet(socket, on_connected, socket->attempt);
		return;
	}
	if (!listener || (refuses && !listener->ignores_syn) || tries >= TRIES_MAX) {
		sim_packet(socket, sim_stream_reset, tries >= TRIES_MAX ? ETIMEDOUT : 0);
		return;
	}
	sim_sock_at(socket, sim_clock.now_ns + (WEFT_S << tries), on_request, arg + 1);
}

static void
fail_connect(struct sim_socket *socket, struct sim_fault *hit)
{
	static const int errors[] = { ECONNREFUSED, ECONNREFUSED, EHOSTUNREACH,
		                      ENETUNREACH,  ETIMEDOUT,    ETIMEDOUT };
	int error = errors[hit->bits % 6];
	uint64_t delay_ns = 127 * WEFT_S; /* Linux: all six requests are lost */

	hit->bits /= 6;
	if (error != ETIMEDOUT)
		delay_ns = sim_fault_delay_ns(hit, 100 * WEFT_MS);
	hit->what = -error;
	sim_sock_at(socket, sim_clock.now_ns + delay_ns, sim_stream_reset, (uint64_t)error);
}

/* A repeated connect reports the result of the first one; see connect(2). */
static int
ask_again(struct sim_socket *socket)
{
	int error = socket->error;

	if (socket->state == SIM_SOCK_CONNECTING)
		return -EALREADY;
	if (socket->state == SIM_SOCK_CONNECTED && !socket->reported) {
		socket->reported = true;
		return 0;
	}
	if (socket->state != SIM_SOCK_FAILED)
		return -EISCONN;
	socket->error = 0;
	socket->state = SIM_SOCK_FRESH;
	socket->shut_read = false;
	socket->shut_write = false;
	return error ? -error : -ECONNABORTED;
}

static int
connect_local(struct sim_socket *socket)
{
	struct sim_socket *listener = sim_name_find(&socket->target, true);
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)&socket->target;

	if (!listener)
		return un->sun_path[0] && !sim_name_find(&socket->target, false) ? -ENOENT
		                                                                 : -ECONNREFUSED;
	if (listener->queue_count > listener->queue_max)
		return -EAGAIN;
	socket->state = SIM_SOCK_CONNECTED;
	socket->reported = true;
	make_other_end(socket, listener);
	return 0;
}

int
sim_sock_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	struct sim_socket *socket;
	struct sim_fault *hit;
	int rc = sim_sock_of(fd, &socket);

	if (rc == 0)
		rc = sim_name_copy(socket->domain, addr, size, &socket->target, -ENETUNREACH);
	if (rc < 0)
		return rc;
	if (socket->state != SIM_SOCK_FRESH)
		return ask_again(socket);
	if (socket->domain == AF_UNIX)
		return connect_local(socket);
	rc = sim_name_give_any(socket);
	if (rc < 0)
		return -EADDRNOTAVAIL;
	socket->state = SIM_SOCK_CONNECTING;
	socket->attempt++;
	socket->shut_read = false;
	socket->shut_write = false;
	hit = sim_fault(SIM_REFUSE, SIM_CALL_connect);
	if (hit)
		fail_connect(socket, hit);
	else
		sim_packet(socket, on_request, socket->attempt * 8);
	/* If the connection took no time, connect either returns success at once or does not. */
	if (socket->state == SIM_SOCK_CONNECTED && sim_below(SIM_DRAW_NET, 2)) {
		socket->reported = true;
		return 0;
	}
	return -EINPROGRESS;
}

/* --- the rest --------------------------------------------------------- */

int
sim_sock_error(int fd, int *out)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	*out = socket->error;
	socket->error = 0;
	return 0;
}

int
sim_sock_ignore_syn(int fd)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc == 0)
		socket->ignores_syn = true;
	return rc;
}

/* A receiver here acknowledges only what its program has read. */
int64_t
sim_sock_unsent(int fd)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	if (!socket->peer)
		return 0;
	return (int64_t)(socket->peer->in.sent - socket->peer->in.credited);
}

/* Undo a listen or an attempt to connect. */
static int
undo(struct sim_socket *socket)
{
	if (socket->state == SIM_SOCK_CONNECTING) {
		sim_stream_close(socket);
		socket->in = (struct sim_flow){ 0 };
		socket->error = ECONNRESET;
	}
	socket->state = SIM_SOCK_FRESH;
	queue_drop(socket);
	sim_file_notify(&socket->file, 0);
	return 0;
}

/* Only one option has an effect here: SO_LINGER of 0 s makes a close a reset. */
void
sim_sock_option(int fd, int level, int name, const void *value)
{
	const struct linger *linger = value;
	struct sim_socket *socket;

	if (level == SOL_SOCKET && name == SO_LINGER && sim_sock_of(fd, &socket) == 0)
		socket->aborts = linger->l_onoff && linger->l_linger == 0;
}

int
sim_sock_shutdown(int fd, int how)
{
	struct sim_socket *socket;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (socket->domain != AF_UNIX) {
		if (socket->state == SIM_SOCK_LISTENING)
			return how == SHUT_WR ? 0 : undo(socket);
		if (socket->state == SIM_SOCK_CONNECTING)
			return undo(socket);
		if (socket->state != SIM_SOCK_CONNECTED
		    || (socket->fin && socket->shut_write)) /* both directions ended */
			rc = -ENOTCONN;                     /* although it also shuts down */
	}
	sim_stream_shutdown(socket, how != SHUT_WR, how != SHUT_RD);
	return rc;
}

void
sim_break(int fd)
{
	struct sim_socket *socket;

	if (sim_sock_of(fd, &socket) < 0)
		sim_fail("sim_break: %d is no socket", fd);
	sim_stream_break(socket);
}

void
sim_break_all(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct sim_socket *socket;

		if (sim_sock_of(fd, &socket) == 0 && socket->domain == AF_INET
		    && socket->state == SIM_SOCK_CONNECTED)
			sim_stream_break(socket);
	}
}

static uint32_t
socket_ready(struct sim_file *file)
{
	struct sim_socket *socket = (struct sim_socket *)file;
	bool queued = socket->queue_first && !(socket->hidden_in & 1);

	if (socket->state == SIM_SOCK_LISTENING)
		return (queued ? (uint32_t)EPOLLIN : 0)
		       | (socket->shut_read ? (uint32_t)(EPOLLIN | EPOLLRDHUP) : 0);
	if (socket->state == SIM_SOCK_CONNECTING)
		return 0;
	return sim_stream_ready(socket);
}

static int64_t
socket_read(struct sim_file *file, void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -ENOSYS; /* table.c calls recv instead */
}

static int64_t
socket_write(struct sim_file *file, const void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -ENOSYS;
}

static void
socket_end(struct sim_file *file)
{
	struct sim_socket *socket = (struct sim_socket *)file;

	sim_name_drop(socket);
	queue_drop(socket);
	sim_stream_close(socket);
}

const struct sim_file_ops sim_socket_ops = {
	.name = "socket",
	.kind = WEFT__FD_SOCKET,
	.waits = true,
	.ready = socket_ready,
	.read = socket_read,
	.write = socket_write,
	.end = socket_end,
};
