/* stream.c - bytes between two sockets, and what poll reports about them.
 *
 * Sent bytes are copied at once into the receiver's ring, and count as arrived when their
 * packet arrives.  Bytes that were read free room for the sender when the acknowledgment
 * arrives.  AF_UNIX has no packets: everything arrives at once.
 *
 *   1. Packets to a socket arrive in the order in which they were sent to it.
 *   2. hidden_in and hidden_out are odd while input or room is hidden.  So a readiness that was
 *      reported may turn out to be false.  When it is shown again, the file is notified as for
 *      an arrival.
 *
 * There is no urgent data, no segment size, and no window other than the ring.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/run/rng.h"
#include "sim/kernel/socket.h"

enum { LOCAL_ROOM_MIN = 256, ROOM_MAX = 65536 };

static struct {
	uint64_t latency_ns; /* maximum in this seed */
	bool steady;         /* every packet takes 0 ns */
	size_t room_min, room_max;
} net;

void
sim_net_reset(bool calm)
{
	static const uint64_t most_ns[] = { 1, 20000, 1000000, 300000000 };

	net.latency_ns = most_ns[calm ? 0 : sim_below(SIM_DRAW_SETUP, 4)];
	net.steady = net.latency_ns == 1;
	net.room_min = calm ? ROOM_MAX : sim_scaled(SIM_DRAW_SETUP, 1, 4096);
	net.room_max = sim_scaled(SIM_DRAW_SETUP, net.room_min, ROOM_MAX);
}

void
sim_calm_net(void)
{
	sim_net_reset(true);
}

/* --- packets ---------------------------------------------------------- */

static bool
is_local(const struct sim_socket *socket)
{
	return socket->domain == AF_UNIX;
}

static uint64_t
arrival_ns(struct sim_socket *socket)
{
	uint64_t at_ns = sim_clock.now_ns;
	struct sim_fault *hit;

	if (!net.steady)
		at_ns += sim_scaled(SIM_DRAW_NET, 0, net.latency_ns);
	hit = sim_fault(SIM_DELAY, SIM_CALL_packet);
	if (hit)
		at_ns += sim_fault_delay_ns(hit, 2 * WEFT_S);
	return at_ns > socket->in.last_ns ? at_ns : socket->in.last_ns;
}

void
sim_sock_at(struct sim_socket *socket, uint64_t at_ns, void (*fn)(void *socket, uint64_t arg),
            uint64_t arg)
{
	sim_event_add(&(struct sim_event){
		.at_ns = at_ns,
		.fn = fn,
		.object = socket,
		.arg = arg,
		.version = &socket->file.id,
		.wanted = socket->file.id,
	});
}

void
sim_packet(struct sim_socket *socket, void (*fn)(void *socket, uint64_t arg), uint64_t arg)
{
	uint64_t now_ns = sim_clock.now_ns, at_ns;

	if (is_local(socket)) {
		fn(socket, arg);
		return;
	}
	at_ns = arrival_ns(socket);
	if (at_ns <= now_ns && socket->in.last_ns < now_ns) {
		fn(socket, arg);
		return;
	}
	socket->in.last_ns = at_ns;
	sim_sock_at(socket, at_ns, fn, arg);
}

/* --- readiness -------------------------------------------------------- */

static size_t
unread(const struct sim_socket *socket)
{
	return (size_t)(socket->in.arrived - socket->in.taken);
}

static size_t
in_use(const struct sim_flow *flow)
{
	return (size_t)(flow->sent - flow->credited);
}

/* Is there enough room to report it?  Linux requires a third of the buffer to be free, for
 * AF_UNIX three quarters. */
static bool
is_writable(const struct sim_socket *socket)
{
	const struct sim_flow *flow = socket->peer ? &socket->peer->in : NULL;
	size_t used;

	if (socket->hidden_out & 1)
		return false;
	if (!flow || !flow->bytes)
		return true;
	used = in_use(flow);
	if (is_local(socket))
		return used * 4 <= flow->capacity;
	return used < flow->capacity && flow->capacity - used >= used / 2;
}

static uint32_t
input_ready(const struct sim_socket *socket)
{
	uint32_t ready = 0;

	if (socket->shut_read)
		ready |= EPOLLIN | EPOLLRDHUP;
	if (unread(socket) > 0 && !(socket->hidden_in & 1))
		ready |= EPOLLIN;
	return ready;
}

static uint32_t
output_ready(struct sim_socket *socket)
{
	if (socket->shut_write && !is_local(socket))
		return EPOLLOUT;
	if (is_writable(socket))
		return EPOLLOUT;
	socket->no_space = true; /* the caller wants to be notified */
	return 0;
}

uint32_t
sim_stream_ready(struct sim_socket *socket)
{
	uint32_t ready = socket->error ? (uint32_t)EPOLLERR : 0;
	bool unused = socket->state != SIM_SOCK_CONNECTED;

	if (unused || (socket->shut_read && socket->shut_write))
		ready |= EPOLLHUP;
	return ready | input_ready(socket) | output_ready(socket);
}

/* --- faults that take readiness back ---------------------------------- */

static void
show_in(void *object, uint64_t version)
{
	struct sim_socket *socket = object;

	if (socket->hidden_in != version)
		return;
	socket->hidden_in++;
	sim_file_notify(&socket->file, EPOLLIN);
}

static void
show_out(void *object, uint64_t version)
{
	struct sim_socket *socket = object;

	if (socket->hidden_out != version)
		return;
	socket->hidden_out++;
	socket->no_space = !is_writable(socket); /* then a credit notifies */
	if (!socket->no_space)
		sim_file_notify(&socket->file, EPOLLOUT);
}

static void
hide(struct sim_socket *socket, bool in, uint64_t until_ns)
{
	uint64_t *hidden = in ? &socket->hidden_in : &socket->hidden_out;

	assert(!(*hidden & 1));
	++*hidden;
	sim_sock_at(socket, until_ns, in ? show_in : show_out, *hidden);
}

void
sim_stream_hide(struct sim_socket *socket, bool in, struct sim_fault *hit)
{
	uint64_t delay_ns = sim_fault_delay_ns(hit, 100 * WEFT_MS);

	hide(socket, in, sim_clock.now_ns + delay_ns);
}

static void
notify_again(void *object, uint64_t key)
{
	sim_file_notify(object, (uint32_t)key);
}

/* According to epoll(7), a short count means that there is no more.  So a notification must
 * follow that there is; half of the time the rest is hidden until then. */
static size_t
shorten(enum sim_call call, struct sim_socket *socket, size_t size)
{
	size_t less = sim_fault_short(call, size);
	bool in = call == SIM_CALL_recv || call == SIM_CALL_recvmsg || call == SIM_CALL_recvmmsg
	          || call == SIM_CALL_read;
	uint64_t at_ns;

	if (less == size)
		return size;
	at_ns = sim_clock.now_ns + sim_scaled(SIM_DRAW_NET, 1, WEFT_MS);
	if (sim_below(SIM_DRAW_NET, 2) == 0 && !(in && socket->shut_read))
		hide(socket, in, at_ns);
	else
		sim_sock_at(socket, at_ns, notify_again, in ? EPOLLIN : EPOLLOUT);
	return less;
}

/* --- receiving -------------------------------------------------------- */

static void
copy_out(const struct sim_flow *flow, unsigned char *buf, size_t size, size_t skip)
{
	size_t at = (size_t)((flow->taken + skip) % flow->capacity);
	size_t first = flow->capacity - at < size ? flow->capacity - at : size;

	memcpy(buf, flow->bytes + at, first);
	memcpy(buf + first, flow->bytes, size - first);
}

static void
on_credit(void *object, uint64_t upto)
{
	struct sim_socket *socket = object; /* the receiver */
	struct sim_socket *peer = socket->peer;

	if (upto > socket->in.credited)
		socket->in.credited = upto;
	if (!peer || !is_writable(peer) || (!peer->no_space && !is_local(peer)))
		return;
	peer->no_space = false;
	sim_file_notify(&peer->file, EPOLLOUT);
}

/* A sender that waits for room learns of it after the latency of a packet. */
static void
take(struct sim_socket *socket, size_t size)
{
	struct sim_flow *flow = &socket->in;
	uint64_t at_ns = sim_clock.now_ns;

	flow->taken += size;
	if (!socket->peer || is_local(socket) || !socket->peer->no_space || net.steady) {
		on_credit(socket, flow->taken);
		return;
	}
	at_ns += sim_scaled(SIM_DRAW_NET, 0, net.latency_ns);
	sim_sock_at(socket, at_ns, on_credit, flow->taken);
}

static size_t
msg_size(const struct msghdr *msg)
{
	size_t size = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		size += msg->msg_iov[i].iov_len;
	return size;
}

static int64_t
recv_nothing(struct sim_socket *socket)
{
	int error = socket->error;

	if (socket->fin)
		return 0;
	if (error) {
		socket->error = 0;
		return -error;
	}
	if (socket->shut_read)
		return 0;
	if (is_local(socket) && socket->state != SIM_SOCK_CONNECTED)
		return -EINVAL;
	if (socket->state == SIM_SOCK_CONNECTED || socket->state == SIM_SOCK_CONNECTING)
		return -EAGAIN;
	return -ENOTCONN;
}

/* What made the socket readable may turn out to be missing. */
static bool
recv_hides(enum sim_call call, struct sim_socket *socket)
{
	struct sim_fault *hit;

	if (socket->hidden_in & 1)
		return true;
	if (is_local(socket) || socket->shut_read)
		return false;
	hit = sim_fault(SIM_EAGAIN, call);
	if (hit)
		sim_stream_hide(socket, true, hit);
	return hit != NULL;
}

int64_t
sim_sock_recv(enum sim_call call, int fd, struct msghdr *msg, int flags)
{
	struct sim_socket *socket;
	size_t size = msg_size(msg), done = 0;
	int rc = sim_sock_of(fd, &socket);

	if (rc < 0)
		return rc;
	msg->msg_flags = 0;
	msg->msg_controllen = 0;
	msg->msg_namelen = 0;
	if (unread(socket) == 0)
		return recv_nothing(socket);
	if (recv_hides(call, socket))
		return -EAGAIN;
	size = shorten(call, socket, size < unread(socket) ? size : unread(socket));
	for (size_t i = 0; done < size; i++) {
		size_t part_size = msg->msg_iov[i].iov_len;

		if (part_size > size - done)
			part_size = size - done;
		copy_out(&socket->in, msg->msg_iov[i].iov_base, part_size, done);
		done += part_size;
	}
	if (!(flags & MSG_PEEK))
		take(socket, size);
	return (int64_t)size;
}

/* --- sending ---------------------------------------------------------- */

/* The socket has shut down both directions: data is answered with a reset. */
static bool
is_deaf(const struct sim_socket *socket)
{
	return socket->shut_write && socket->shut_read && !socket->fin;
}

static void
on_arrive(void *object, uint64_t upto)
{
	struct sim_socket *socket = object;

	if (socket->state != SIM_SOCK_CONNECTED)
		return;
	if (!is_local(socket) && (is_deaf(socket) || sim_fault(SIM_RESET, SIM_CALL_packet))) {
		sim_stream_break(socket);
		return;
	}
	socket->in.arrived = upto;
	socket->hidden_in += socket->hidden_in & 1;
	sim_trace(SIM_CALL_packet, 'D', (int64_t)socket->file.id, (int64_t)upto);
	sim_file_notify(&socket->file, EPOLLIN);
}

static void
copy_in(struct sim_flow *flow, const unsigned char *buf, size_t size)
{
	size_t at = (size_t)(flow->sent % flow->capacity);
	size_t first = flow->capacity - at < size ? flow->capacity - at : size;

	memcpy(flow->bytes + at, buf, first);
	memcpy(flow->bytes, buf + first, size - first);
	flow->sent += size;
}

static void
make_ring(struct sim_flow *flow, bool local)
{
	if (flow->bytes)
		return;
	flow->capacity = sim_scaled(SIM_DRAW_NET, net.room_min, net.room_max);
	if (local && flow->capacity < LOCAL_ROOM_MIN)
		flow->capacity = LOCAL_ROOM_MIN;
	flow->bytes = sim_buffer_new(flow->capacity);
}

/* The reason why nothing can be sent at all: 0 or -errno. */
static int
send_error(struct sim_socket *socket)
{
	int error = socket->error;

	if (is_local(socket)) {
		if (socket->state != SIM_SOCK_CONNECTED)
			return -ENOTCONN;
		return socket->shut_write ? -EPIPE : 0;
	}
	if (error) {
		socket->error = 0;
		return -error;
	}
	if (socket->state == SIM_SOCK_CONNECTING)
		return -EAGAIN;
	if (socket->state != SIM_SOCK_CONNECTED || socket->shut_write)
		return -EPIPE;
	return 0;
}

/* How much of `size` fits now; 0 if none does. */
static size_t
send_room(enum sim_call call, struct sim_socket *socket, size_t size)
{
	struct sim_flow *flow = &socket->peer->in;
	struct sim_fault *hit;
	size_t room;

	make_ring(flow, is_local(socket));
	room = flow->capacity - in_use(flow);
	if (room > 0 && !(socket->hidden_out & 1) && !is_local(socket)) {
		hit = sim_fault(SIM_EAGAIN, call);
		if (hit)
			sim_stream_hide(socket, false, hit);
	}
	if (socket->hidden_out & 1)
		room = 0;
	if (room < size)
		socket->no_space = true;
	return shorten(call, socket, room < size ? room : size);
}

/* The peer is gone: the bytes are lost, and a reset will report that. */
static int64_t
send_lost(struct sim_socket *socket, size_t size)
{
	if (!socket->reset_sent)
		sim_packet(socket, sim_stream_reset, 0);
	socket->reset_sent = true;
	return (int64_t)size;
}

int64_t
sim_sock_send(enum sim_call call, int fd, const struct msghdr *msg, int flags)
{
	struct sim_socket *socket, *peer;
	size_t size = msg_size(msg), done = 0;
	int rc = sim_sock_of(fd, &socket);

	(void)flags; /* MSG_DONTWAIT and MSG_NOSIGNAL are always implied */
	if (rc == 0)
		rc = send_error(socket);
	if (rc < 0 || size == 0)
		return rc;
	if (!is_local(socket) && sim_fault(SIM_RESET, call)) {
		sim_stream_break(socket);
		return send_error(socket);
	}
	peer = socket->peer;
	if (!peer)
		return send_lost(socket, size);
	size = send_room(call, socket, size);
	if (size == 0)
		return -EAGAIN;
	for (size_t i = 0; done < size; i++) {
		size_t part_size = msg->msg_iov[i].iov_len;

		if (part_size > size - done)
			part_size = size - done;
		copy_in(&peer->in, msg->msg_iov[i].iov_base, part_size);
		done += part_size;
	}
	sim_packet(peer, on_arrive, peer->in.sent);
	return (int64_t)size;
}
