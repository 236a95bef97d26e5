/* dgram_batch.c - one system call for many datagrams.
 *
 * Consecutive messages of one size to one address pass through the network stack as one train,
 * which the kernel splits where it leaves the stack (UDP_SEGMENT).  The way through the stack is
 * most of the cost of a small datagram.  The last message of a train may be shorter.
 *
 *   1. The kernel accepts a train as a whole or not at all.  So the result is counted in
 *      trains, and returned in messages.
 *   2. The kernel may refuse a train although it would send the messages alone: the device does
 *      not support trains, or a message needs fragments.  So the messages are tried alone before an
 *      error is returned.
 *      After EMSGSIZE, messages of that size or larger are not joined again; after other
 *      errors, none are.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/uio.h>
#include "net/dgram/dgram.h"

#define TRIES_MAX 16     /* of a call that a signal interrupts */
#define TRAIN_MAX 65000u /* bytes: less than 64 KiB with all headers */

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
};

struct batch {
	uint32_t trains;
	uint8_t counts[WEFT__DGRAM_BATCH]; /* messages of each train */
	struct weft__mmsg msgs[WEFT__DGRAM_BATCH];
	struct iovec spans[WEFT__DGRAM_BATCH];
	struct sockaddr_in6 names[WEFT__DGRAM_BATCH];
	union control controls[WEFT__DGRAM_BATCH];
};

/* Set the destination.  An IPv6 socket takes IPv4 as an IPv4-mapped address. */
static void
set_name(const weft_dgram *dgram, struct msghdr *hdr, const weft_addr *to,
         struct sockaddr_in6 *room)
{
	if (to->size == 0)
		return;
	hdr->msg_name = (void *)(uintptr_t)to->bytes; /* the kernel only reads it */
	hdr->msg_namelen = to->size;
	if (dgram->family == AF_INET6 && weft__addr_family(to) == AF_INET) {
		weft_addr mapped = *to;

		weft__addr_map(&mapped);
		__builtin_memcpy(room, mapped.bytes, sizeof(*room));
		hdr->msg_name = room;
		hdr->msg_namelen = sizeof(*room);
	}
}

/* The number of messages that make up the next train. */
static uint32_t
train_of(const weft_dgram *dgram, const weft_message *messages, uint32_t count)
{
	size_t size = messages[0].size, total = size;
	uint32_t n = 1;

	if (size == 0 || size > dgram->join_max || !WEFT__DGRAM_SEGMENT)
		return 1;
	while (n < count && messages[n - 1].size == size && messages[n].size > 0
	       && messages[n].size <= size && messages[n].addr.size == messages[0].addr.size
	       && __builtin_memcmp(messages[n].addr.bytes, messages[0].addr.bytes,
	                           messages[0].addr.size)
	                  == 0
	       && (total += messages[n].size) <= TRAIN_MAX)
		n++;
	return n;
}

/* Set the size at which a train is split. */
static void
set_segment(struct msghdr *hdr, union control *control, uint16_t size)
{
	*control = (union control){ .align = { CMSG_LEN(sizeof(size)), SOL_UDP, UDP_SEGMENT } };
	__builtin_memcpy(CMSG_DATA(&control->align), &size, sizeof(size));
	hdr->msg_control = control->bytes;
	hdr->msg_controllen = sizeof(control->bytes);
}

static void
dgram_batch_prepare(const weft_dgram *dgram, struct batch *batch, const weft_message *messages,
                    uint32_t count, bool join)
{
	uint32_t n;

	batch->trains = 0;
	for (uint32_t i = 0; i < count; i += n) {
		uint32_t train = batch->trains++;
		struct msghdr *hdr = &batch->msgs[train].hdr;

		n = join ? train_of(dgram, messages + i, count - i) : 1;
		for (uint32_t k = i; k < i + n; k++)
			batch->spans[k] = (struct iovec){ messages[k].data, messages[k].size };
		batch->counts[train] = (uint8_t)n;
		batch->msgs[train] = (struct weft__mmsg){
			.hdr = { .msg_iov = &batch->spans[i], .msg_iovlen = n },
		};
		set_name(dgram, hdr, &messages[i].addr, &batch->names[train]);
		if (n > 1)
			set_segment(hdr, &batch->controls[train], (uint16_t)messages[i].size);
	}
}

static int
send_trains(weft_dgram *dgram, struct batch *batch)
{
	const struct weft__sys *sys = weft__dgram_kernel(dgram);
	int rc = -EINTR, sent = 0;

	for (int i = 0; rc == -EINTR && i < TRIES_MAX; i++)
		rc = sys->sendmmsg(dgram->fd, batch->msgs, batch->trains, 0);
	if (rc > 0 && rc < (int)batch->trains)
		weft__dgram_keep_error(dgram, batch->msgs[rc].error);
	for (int i = 0; i < rc; i++)
		sent += batch->counts[i];
	return rc <= 0 ? rc : sent;
}

static bool
may_be_for_joining(int error)
{
	return error == -EIO || error == -EINVAL || error == -EMSGSIZE || error == -EOPNOTSUPP
	       || error == -ENOPROTOOPT;
}

int
weft__dgram_send_batch(weft_dgram *dgram, const weft_message *messages, uint32_t count)
{
	struct batch batch;
	int rc;

	dgram_batch_prepare(dgram, &batch, messages, count, true);
	rc = send_trains(dgram, &batch);
	if (may_be_for_joining(rc) && batch.counts[0] > 1) {
		dgram->join_max = rc == -EMSGSIZE ? messages[0].size - 1 : 0;
		dgram_batch_prepare(dgram, &batch, messages, count, false);
		rc = send_trains(dgram, &batch);
	}
	return rc == -EINTR || rc == -EWOULDBLOCK ? -EAGAIN : rc;
}
