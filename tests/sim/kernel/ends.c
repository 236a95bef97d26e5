/* ends.c - how connections end: in order, by a reset, or by losing the peer.
 *
 * A FIN or a reset is a packet like any other and arrives after the data that was sent before
 * it.  Which end then sees which error, and what poll reports, is as in Linux's tcp.c and
 * af_unix.c.  AF_UNIX has no packets, so there every change is visible at once.
 *
 *   1. peer->peer == socket, while there is a peer.
 *   2. A socket without a peer loses what it sends, and receives a reset.
 *   3. Data that arrived before a reset can still be read.
 *   4. Once both ends have closed for sending, a reset has no effect.
 *   5. A sender that waits for room is notified although the receiver has closed.  Its next
 *      bytes are then answered with a reset.
 *
 * A close either does not linger or is a reset; there is no keep-alive.
 */
#include <assert.h>
#include <errno.h>
#include "sim/run/fault.h"
#include "sim/kernel/socket.h"

static bool
is_local(const struct sim_socket *socket)
{
	return socket->domain == AF_UNIX;
}

static bool
has_unread(const struct sim_socket *socket)
{
	return socket->in.arrived != socket->in.taken;
}

static void
part(struct sim_socket *socket)
{
	if (!socket->peer)
		return;
	assert(socket->peer->peer == socket);
	socket->peer->peer = NULL;
	socket->peer = NULL;
}

/* Rule 4. */
static bool
is_over(const struct sim_socket *socket)
{
	return socket->fin && socket->shut_write;
}

/* A connection, or an attempt at one, ends with `error`; 0 selects the error that Linux reports
 * for an RST in this state. */
void
sim_stream_reset(void *object, uint64_t error)
{
	struct sim_socket *socket = object;
	bool connecting = socket->state == SIM_SOCK_CONNECTING;

	if (!connecting && (socket->state != SIM_SOCK_CONNECTED || is_over(socket)))
		return;
	if (error == 0)
		error = connecting ? ECONNREFUSED : socket->fin ? EPIPE : ECONNRESET;
	socket->error = (int)error;
	socket->state = connecting ? SIM_SOCK_FAILED : SIM_SOCK_BROKEN;
	socket->shut_read = true;
	socket->shut_write = true;
	socket->hidden_in += socket->hidden_in & 1;
	socket->hidden_out += socket->hidden_out & 1;
	part(socket);
	sim_trace(SIM_CALL_packet, 'R', (int64_t)socket->file.id, (int64_t)error);
	sim_file_notify(&socket->file, 0);
}

static void
on_fin_seen(void *object, uint64_t arg)
{
	(void)arg;
	sim_file_notify(object, 0);
}

/* When the acknowledgment of the FIN arrives at the other end, Linux wakes all waiters there,
 * too. */
static void
on_fin(void *object, uint64_t arg)
{
	struct sim_socket *socket = object;

	(void)arg;
	if (socket->state != SIM_SOCK_CONNECTED)
		return;
	if (socket->peer)
		sim_packet(socket->peer, on_fin_seen, 0);
	socket->fin = true;
	socket->shut_read = true;
	socket->hidden_in += socket->hidden_in & 1; /* the end is not hidden */
	sim_trace(SIM_CALL_packet, 'F', (int64_t)socket->file.id, 0);
	sim_file_notify(&socket->file, 0);
}

void
sim_stream_break(struct sim_socket *socket)
{
	struct sim_socket *peer = socket->peer;

	if (peer)
		sim_packet(peer, sim_stream_reset, 0);
	sim_stream_reset(socket, 0);
}

void
sim_stream_join(struct sim_socket *a, struct sim_socket *b)
{
	a->peer = b;
	b->peer = a;
	b->state = SIM_SOCK_CONNECTED;
	b->reported = true;
}

static void
local_shutdown(struct sim_socket *peer, bool read, bool write)
{
	peer->shut_read |= write;
	peer->shut_write |= read;
	sim_file_notify(&peer->file, 0);
}

void
sim_stream_shutdown(struct sim_socket *socket, bool read, bool write)
{
	bool first = write && !socket->shut_write;

	socket->shut_read |= read;
	socket->shut_write |= write;
	sim_file_notify(&socket->file, 0);
	if (!socket->peer)
		return;
	if (is_local(socket))
		local_shutdown(socket->peer, read, write);
	else if (first)
		sim_packet(socket->peer, on_fin, 0);
}

static void
local_close(struct sim_socket *socket, struct sim_socket *peer)
{
	peer->shut_read = true;
	peer->shut_write = true;
	if (has_unread(socket))
		peer->error = ECONNRESET;
	sim_file_notify(&peer->file, 0);
}

static void
on_last_credit(void *object, uint64_t arg)
{
	struct sim_socket *socket = object; /* the sender */

	(void)arg;
	if (!socket->no_space)
		return;
	socket->no_space = false;
	sim_file_notify(&socket->file, EPOLLOUT);
}

/* Acknowledgments of bytes that were read before the close still arrive: rule 5. */
void
sim_stream_close(struct sim_socket *socket)
{
	struct sim_socket *peer = socket->peer;
	bool lost = socket->in.sent != socket->in.arrived;

	part(socket);
	if (peer && is_local(socket)) {
		local_close(socket, peer);
	} else if (peer && (has_unread(socket) || socket->aborts) && !is_over(socket)) {
		sim_packet(peer, sim_stream_reset, 0);
	} else if (peer) {
		if (!socket->shut_write)
			sim_packet(peer, on_fin, 0);
		if (peer->no_space)
			sim_packet(peer, on_last_credit, 0);
		if (lost) /* bytes for a closed socket are answered with a reset */
			sim_packet(peer, sim_stream_reset, 0);
	}
	sim_buffer_free(socket->in.bytes);
	socket->in.bytes = NULL;
}
