/* dgram.c - datagram sockets of AF_INET, on the loopback.
 *
 * A sent datagram (struct letter) has its own delay, so that others may overtake it.  It may be
 * lost, and it may arrive twice.  If no socket has the destination port, a connected sender
 * gets ECONNREFUSED, once.
 *
 *   1. `flying` counts the datagrams of a socket that have not arrived.  While it is at this
 *      seed's maximum, the socket is not writable.
 *   2. A socket queues up to `queue_max` datagrams; further ones are lost.
 *   3. Datagram ports are independent of stream ports.
 *
 * AF_UNIX, multicast and options are not simulated.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "sim/kernel/clock.h"
#include "sim/kernel/dgram.h"
#include "sim/kernel/socket.h"
#include "sim/run/fault.h"
#include "sim/run/rng.h"

enum { PORT_FIRST = 20000, PORTS = 10000, LETTER_MAX = 65507 };

struct letter {
	struct letter *next;
	struct sim_dgram *sender;
	uint64_t sender_id, version;
	in_port_t from, to;
	bool lost;
	size_t size;
	unsigned char *bytes;
};

struct sim_dgram {
	struct sim_file file;
	in_port_t port;   /* 0: not bound */
	in_port_t target; /* if connected, else 0 */
	int error;
	uint32_t flying, count;
	struct letter *first, *last;
	struct sim_dgram *named_next;
};

static struct {
	struct sim_dgram *named;
	uint32_t next_port, queue_max, flying_max;
} mail;

static const struct sim_file_ops ops;

/* Uses draws that advance no stream, so that the draws of other sockets stay the same. */
void
sim_dgram_reset(void)
{
	mail.named = NULL;
	mail.next_port = (uint32_t)(sim_draw_at(SIM_CALL_sendmmsg, 1) % PORTS);
	mail.queue_max = 1u << sim_draw_at(SIM_CALL_sendmmsg, 2) % 8;
	mail.flying_max = 1u << sim_draw_at(SIM_CALL_sendmmsg, 3) % 8;
}

static struct sim_dgram *
dgram_of(int fd)
{
	struct sim_file *file = sim_fd_file(fd);

	return file && file->ops == &ops ? (struct sim_dgram *)file : NULL;
}

/* --- names ------------------------------------------------------------ */

static struct sim_dgram *
find(in_port_t port)
{
	for (struct sim_dgram *d = mail.named; d; d = d->named_next)
		if (d->port == port)
			return d;
	return NULL;
}

static int
give_name(struct sim_dgram *dgram, in_port_t port)
{
	while (port == 0) {
		port = htons((uint16_t)(PORT_FIRST + mail.next_port++ % PORTS));
		if (find(port))
			port = 0;
	}
	if (find(port))
		return -EADDRINUSE;
	dgram->port = port;
	dgram->named_next = mail.named;
	mail.named = dgram;
	return 0;
}

static void
fill_name(in_port_t port, void *addr, socklen_t *size)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = port };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(addr, &in, *size < sizeof(in) ? *size : sizeof(in));
	*size = sizeof(in);
}

/* Get the port of an address on this machine: 0 or -errno. */
static int
port_in(const void *addr, socklen_t size, in_port_t *out)
{
	struct sockaddr_in in;

	if (size < sizeof(in))
		return -EINVAL;
	memcpy(&in, addr, sizeof(in));
	if (in.sin_family != AF_INET)
		return -EAFNOSUPPORT;
	*out = in.sin_port;
	return 0;
}

/* --- in transit ------------------------------------------------------- */

static void
end_letter(struct letter *letter)
{
	sim_buffer_free(letter->bytes);
	letter->bytes = NULL;
}

static void
refuse(struct sim_dgram *sender, const struct letter *letter)
{
	if (!sender || sender->target != letter->to)
		return;
	sender->error = ECONNREFUSED;
	sim_file_notify(&sender->file, 0);
}

static void
on_land(void *object, uint64_t arg)
{
	struct letter *letter = object;
	struct sim_dgram *to = find(letter->to), *sender = letter->sender;

	(void)arg;
	if (sender->file.id != letter->sender_id)
		sender = NULL;
	if (sender) {
		sender->flying--;
		sim_file_notify(&sender->file, EPOLLOUT);
	}
	sim_trace(SIM_CALL_packet, 'L', (int64_t)letter->size, letter->lost);
	if (!letter->lost && (!to || (to->target && to->target != letter->from)))
		refuse(sender, letter);
	else if (!letter->lost && to->count < mail.queue_max) {
		letter->next = NULL;
		if (to->last)
			to->last->next = letter;
		else
			to->first = letter;
		to->last = letter;
		to->count++;
		sim_file_notify(&to->file, EPOLLIN);
		return;
	}
	end_letter(letter);
}

static struct letter *
write_letter(struct sim_dgram *from, in_port_t to, const struct msghdr *msg)
{
	struct letter *letter = sim_keep(sizeof(*letter));

	*letter = (struct letter){
		.sender = from, .sender_id = from->file.id, .from = from->port, .to = to
	};
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		letter->size += msg->msg_iov[i].iov_len;
	letter->bytes = sim_buffer_new(letter->size + 1);
	for (size_t i = 0, at = 0; i < msg->msg_iovlen; i++) {
		memcpy(letter->bytes + at, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		at += msg->msg_iov[i].iov_len;
	}
	return letter;
}

static void
fly(struct letter *letter)
{
	uint64_t at_ns = sim_clock.now_ns + sim_scaled(SIM_DRAW_NET, 1, WEFT_MS);
	struct sim_fault *hit = sim_fault(SIM_DELAY, SIM_CALL_packet);

	if (hit)
		at_ns += sim_fault_delay_ns(hit, 2 * WEFT_S);
	letter->sender->flying++;
	letter->lost = sim_fault(SIM_RESET, SIM_CALL_packet) != NULL;
	sim_event_add(&(struct sim_event){
		.at_ns = at_ns, .fn = on_land, .object = letter, .version = &letter->version });
}

/* --- the calls -------------------------------------------------------- */

int
sim_any_new(int domain, int type, int protocol)
{
	struct sim_dgram *dgram;
	int rc;

	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_DGRAM)
		return sim_sock_new(domain, type, protocol);
	if (domain != AF_INET)
		return -EAFNOSUPPORT;
	rc = sim_fd_room(1);
	if (rc < 0)
		return rc;
	dgram = sim_file_new(&ops, sizeof(*dgram));
	return sim_fd_new(&dgram->file);
}

int
sim_any_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	struct sim_dgram *dgram = dgram_of(fd);
	in_port_t port;
	int rc;

	if (!dgram)
		return sim_sock_bind(fd, addr, size);
	rc = port_in(addr, size, &port);
	if (rc < 0)
		return rc;
	return dgram->port ? -EINVAL : give_name(dgram, port);
}

int
sim_any_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	struct sim_dgram *dgram = dgram_of(fd);
	in_port_t port;
	int rc;

	if (!dgram)
		return sim_sock_connect(fd, addr, size);
	rc = port_in(addr, size, &port);
	if (rc == 0 && !dgram->port)
		rc = give_name(dgram, 0);
	if (rc == 0)
		dgram->target = port;
	return rc;
}

int
sim_any_error(int fd, int *out)
{
	struct sim_dgram *dgram = dgram_of(fd);

	if (!dgram)
		return sim_sock_error(fd, out);
	*out = dgram->error;
	dgram->error = 0;
	return 0;
}

void
sim_any_give_back(int fd, int error)
{
	struct sim_dgram *dgram = dgram_of(fd);

	if (dgram)
		dgram->error = error;
}

int
sim_any_name(int fd, struct sockaddr *addr, socklen_t *size)
{
	struct sim_dgram *dgram = dgram_of(fd);

	if (!dgram)
		return sim_sock_name(fd, addr, size);
	fill_name(dgram->port, addr, size);
	return 0;
}

int
sim_any_check(int fd)
{
	struct sim_socket *socket;

	return dgram_of(fd) ? 0 : sim_sock_of(fd, &socket);
}

static int
take_error(struct sim_dgram *dgram)
{
	int error = dgram->error;

	dgram->error = 0;
	return -error;
}

static struct letter *
take_letter(struct sim_dgram *dgram)
{
	struct letter *letter = dgram->first;

	dgram->first = letter->next;
	if (!dgram->first)
		dgram->last = NULL;
	dgram->count--;
	return letter;
}

int64_t
sim_any_recv(enum sim_call call, int fd, struct msghdr *msg, int flags)
{
	struct sim_dgram *dgram = dgram_of(fd);
	struct letter *letter;
	size_t done = 0;
	int rc;

	if (!dgram)
		return sim_sock_recv(call, fd, msg, flags);
	rc = take_error(dgram);
	if (rc < 0)
		return rc;
	if (!dgram->first || sim_fault(SIM_EAGAIN, call))
		return -EAGAIN;
	letter = take_letter(dgram);
	for (size_t i = 0; i < msg->msg_iovlen && done < letter->size; i++) {
		size_t part = msg->msg_iov[i].iov_len;

		part = part < letter->size - done ? part : letter->size - done;
		memcpy(msg->msg_iov[i].iov_base, letter->bytes + done, part);
		done += part;
	}
	msg->msg_flags = done < letter->size ? MSG_TRUNC : 0;
	msg->msg_controllen = 0;
	if (msg->msg_name)
		fill_name(letter->from, msg->msg_name, &msg->msg_namelen);
	end_letter(letter);
	return (int64_t)done;
}

int64_t
sim_any_send(enum sim_call call, int fd, const struct msghdr *msg, int flags)
{
	struct sim_dgram *dgram = dgram_of(fd);
	in_port_t to = dgram ? dgram->target : 0;
	struct letter *letter;
	int rc;

	if (!dgram)
		return sim_sock_send(call, fd, msg, flags);
	rc = take_error(dgram);
	if (rc == 0 && msg->msg_name)
		rc = port_in(msg->msg_name, msg->msg_namelen, &to);
	if (rc == 0 && !to)
		rc = -EDESTADDRREQ;
	if (rc == 0 && !dgram->port)
		rc = give_name(dgram, 0);
	if (rc == 0 && dgram->flying >= mail.flying_max)
		rc = -EAGAIN;
	if (rc < 0)
		return rc;
	letter = write_letter(dgram, to, msg);
	if (letter->size > LETTER_MAX) {
		end_letter(letter);
		return -EMSGSIZE;
	}
	fly(letter);
	if (sim_fault(SIM_SPURIOUS, SIM_CALL_packet))
		fly(write_letter(dgram, to, msg));
	return (int64_t)letter->size;
}

/* --- the file --------------------------------------------------------- */

static uint32_t
ready(struct sim_file *file)
{
	struct sim_dgram *dgram = (struct sim_dgram *)file;

	return (dgram->first ? (uint32_t)EPOLLIN : 0)
	       | (dgram->flying < mail.flying_max ? (uint32_t)EPOLLOUT : 0)
	       | (dgram->error ? (uint32_t)EPOLLERR : 0);
}

static int64_t
no_read(struct sim_file *file, void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -ENOSYS;
}

static int64_t
no_write(struct sim_file *file, const void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -ENOSYS;
}

static void
end(struct sim_file *file)
{
	struct sim_dgram *dgram = (struct sim_dgram *)file, **link;

	for (link = &mail.named; *link && *link != dgram; link = &(*link)->named_next)
		;
	if (*link)
		*link = dgram->named_next;
	while (dgram->first)
		end_letter(take_letter(dgram));
}

static const struct sim_file_ops ops = {
	.name = "datagram socket",
	.kind = WEFT__FD_SOCKET,
	.waits = true,
	.ready = ready,
	.read = no_read,
	.write = no_write,
	.end = end,
};
