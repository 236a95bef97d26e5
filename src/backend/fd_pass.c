/* fd_pass.c - receives bytes together with a descriptor, over a Unix stream (SCM_RIGHTS).
 *
 * With recv(2) the kernel would close a descriptor that came with the bytes, so this receives
 * with room for one.  The descriptor is kept until it is taken; the next receive closes it
 * otherwise.  If several descriptors come at once, the rest is closed.
 */
#include <string.h>
#include "backend/backend.h"

int
weft__fd_pass_take(struct weft__backend *backend)
{
	int fd = backend->received_fd - 1;

	backend->received_fd = 0;
	return fd;
}

void
weft__fd_pass_drop(struct weft__backend *backend)
{
	int fd = weft__fd_pass_take(backend);

	if (fd >= 0)
		(void)weft__kernel(backend)->close(fd);
}

/* Keep the first descriptor, close the others. */
static void
fd_pass_keep(struct weft__backend *backend, const struct cmsghdr *head)
{
	size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
		if (backend->received_fd)
			(void)weft__kernel(backend)->close(fd);
		else
			backend->received_fd = fd + 1;
	}
}

int64_t
weft__fd_pass_receive(struct weft__backend *backend, int fd, void *buf, size_t size)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec part = { buf, size };
	/* CMSG_LEN, not CMSG_SPACE: the padding would have room for a second descriptor. */
	struct msghdr msg = { .msg_iov = &part,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = CMSG_LEN(sizeof(int)) };
	struct cmsghdr *head;
	int64_t n;

	weft__fd_pass_drop(backend);
	n = weft__kernel(backend)->recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return n;
	for (head = CMSG_FIRSTHDR(&msg); head; head = CMSG_NXTHDR(&msg, head))
		if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
			fd_pass_keep(backend, head);
	return n;
}
