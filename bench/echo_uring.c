/* echo_uring.c - a hand-written echo server on io_uring, with every feature that makes it fast.
 *
 * One multishot request accepts connections into the ring's file table.  One multishot request
 * per connection receives into provided buffers; a buffer returns to the ring when its bytes are
 * sent.  Each iteration submits requests and fetches results in one system call, and the
 * kernel's task work runs in that call.
 */
#include "bench.h"
#include <liburing.h>
#include "echo_clients.h"

#define BUFFERS     4096 /* a power of two */
#define BUFFER_SIZE 2048
#define DEPTH       4096

enum { ACCEPT, RECV, SEND };

static struct io_uring ring;
static struct io_uring_buf_ring *given;
static char *buffers;
static int listening, open_peers;

/* The user data of a result contains the kind of request, the file and the buffer. */
static struct io_uring_sqe *
request(uint64_t kind, uint64_t file, uint64_t buffer)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	while (!sqe) {
		BENCH_CHECK(io_uring_submit(&ring) >= 0);
		sqe = io_uring_get_sqe(&ring);
	}
	sqe->user_data = kind | file << 8 | buffer << 40;
	return sqe;
}

static void
give(unsigned buffer)
{
	io_uring_buf_ring_add(given, buffers + (size_t)buffer * BUFFER_SIZE, BUFFER_SIZE,
	                      (unsigned short)buffer, io_uring_buf_ring_mask(BUFFERS), 0);
	io_uring_buf_ring_advance(given, 1);
}

static void
start_accept(void)
{
	io_uring_prep_multishot_accept_direct(request(ACCEPT, 0, 0), listening, NULL, NULL, 0);
}

static void
start_recv(uint64_t file)
{
	struct io_uring_sqe *sqe = request(RECV, file, 0);

	io_uring_prep_recv_multishot(sqe, (int)file, NULL, 0, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT);
}

static void
start_send(uint64_t file, unsigned buffer, size_t size)
{
	struct io_uring_sqe *sqe = request(SEND, file, buffer);

	io_uring_prep_send(sqe, (int)file, buffers + (size_t)buffer * BUFFER_SIZE, size,
	                   MSG_WAITALL | MSG_NOSIGNAL);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
}

static void
on_recv(const struct io_uring_cqe *cqe, uint64_t file)
{
	if (cqe->res > 0)
		start_send(file, cqe->flags >> IORING_CQE_BUFFER_SHIFT, (size_t)cqe->res);
	if (cqe->flags & IORING_CQE_F_MORE)
		return;
	if (cqe->res > 0 || cqe->res == -ENOBUFS) {
		start_recv(file);
		return;
	}
	io_uring_prep_close_direct(request(SEND, 0, BUFFERS), (unsigned)file);
	open_peers--;
}

static void
on_result(const struct io_uring_cqe *cqe)
{
	uint64_t file = cqe->user_data >> 8 & UINT32_MAX;

	switch (cqe->user_data & 0xff) {
	case ACCEPT:
		BENCH_CHECK(cqe->res >= 0 && cqe->flags & IORING_CQE_F_MORE);
		open_peers++;
		start_recv((uint64_t)cqe->res);
		break;
	case RECV:
		on_recv(cqe, file);
		break;
	case SEND:
		if (cqe->user_data >> 40 < BUFFERS) /* otherwise it is the close */
			give((unsigned)(cqe->user_data >> 40));
	}
}

static void
echo_open(int fd, const char *backend)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN
		         | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
		.cq_entries = 4 * DEPTH,
	};
	struct io_uring_buf_reg reg = { .ring_entries = BUFFERS };

	(void)backend;
	listening = fd;
	BENCH_CHECK(io_uring_queue_init_params(DEPTH, &ring, &params) == 0);
	BENCH_CHECK(io_uring_register_ring_fd(&ring) == 1);
	BENCH_CHECK(io_uring_register_files_sparse(&ring, ECHO_MAX + 1) == 0);
	given = aligned_alloc(4096, BUFFERS * sizeof(struct io_uring_buf));
	buffers = bench_array(BUFFERS, BUFFER_SIZE);
	BENCH_CHECK(given);
	io_uring_buf_ring_init(given);
	reg.ring_addr = (uintptr_t)given;
	BENCH_CHECK(io_uring_register_buf_ring(&ring, &reg, 0) == 0);
	for (unsigned i = 0; i < BUFFERS; i++)
		give(i);
	start_accept();
}

static void
echo_run(void)
{
	do {
		struct io_uring_cqe *cqe;
		unsigned head, count = 0;

		BENCH_CHECK(io_uring_submit_and_wait(&ring, 1) >= 0);
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			on_result(cqe);
			count++;
		}
		io_uring_cq_advance(&ring, count);
	} while (open_peers > 0);
}

#include "echo_bench.h"
