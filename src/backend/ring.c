/* ring.c - the two rings of io_uring, as shared with the kernel.
 *
 * Own code, and not liburing, because every call into the kernel goes through the sys
 * table and Debian's liburing is older than the kernels it meets.
 *
 *   1. The kernel reads entries up to the shared tail: it is stored with release after
 *      they are written (S).  It moves the head when it has taken them.
 *   2. Completions lie between the shared head, ours, and the tail, the kernel's, which
 *      is loaded with acquire (C) before they are read.  A completion is copied out
 *      before the head is stored with release (H), so the callback it leads to may
 *      submit and wait without losing it.
 *   3. The ring is made disabled and enabled by the thread that first enters it, which
 *      is the one that runs the loop; from then on the kernel takes it from no other.
 *      One that is not bound has its requests completed by the threads that made
 *      them, which the kernel interrupts for that: they may be busy elsewhere, so
 *      nothing is left until they enter it on their own (no COOP_TASKRUN).
 *   4. A full completion ring loses nothing: the kernel keeps the rest (NODROP) and
 *      hands it over when entered.
 */
#include <errno.h>
#include "backend/ring.h"

#define CANCEL_NS (100 * WEFT_MS) /* a file may be slow to be read */
#define BOUND     (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

/* What is shared with the kernel is atomic to us too. */
static uint32_t
load_acquire(const uint32_t *word)
{
	return weft__load((const weft__a32 *)(const void *)word, WEFT__ACQUIRE);
}

static uint32_t
load_relaxed(const uint32_t *word)
{
	return weft__load((const weft__a32 *)(const void *)word, WEFT__RELAXED);
}

static void
store_release(uint32_t *word, uint32_t value)
{
	weft__store((weft__a32 *)(void *)word, value, WEFT__RELEASE);
}

static void
clear(struct weft__uring *ring, const char *failed)
{
	*ring = (struct weft__uring){ .fd = -1, .syscalls = ring->syscalls, .failed = failed };
}

static int
map_rings(struct weft__uring *ring, const struct io_uring_params *p)
{
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	char *mem;

	ring->ring_size = sq > cq ? sq : cq;
	ring->sqe_size = p->sq_entries * sizeof(struct io_uring_sqe);
	ring->ring_mem = weft__uring_kernel(ring)->map(ring->ring_size, ring->fd,
	                                               IORING_OFF_SQ_RING);
	ring->sqe_mem = weft__uring_kernel(ring)->map(ring->sqe_size, ring->fd, IORING_OFF_SQES);
	if (!ring->ring_mem || !ring->sqe_mem)
		return -ENOMEM;
	mem = ring->ring_mem;
	ring->sqes = ring->sqe_mem;
	ring->sq_head = (uint32_t *)(void *)(mem + p->sq_off.head);
	ring->sq_tail_shared = (uint32_t *)(void *)(mem + p->sq_off.tail);
	ring->sq_flags = (uint32_t *)(void *)(mem + p->sq_off.flags);
	ring->sq_mask = p->sq_entries - 1;
	ring->sq_entries = p->sq_entries;
	ring->cqes = (struct io_uring_cqe *)(void *)(mem + p->cq_off.cqes);
	ring->cq_head_shared = (uint32_t *)(void *)(mem + p->cq_off.head);
	ring->cq_tail = (uint32_t *)(void *)(mem + p->cq_off.tail);
	ring->cq_overflow = (uint32_t *)(void *)(mem + p->cq_off.overflow);
	ring->cq_mask = p->cq_entries - 1;
	/* Entry i of the array is entry i of the ring, for ever. */
	for (uint32_t i = 0; i < p->sq_entries; i++)
		((uint32_t *)(void *)(mem + p->sq_off.array))[i] = i;
	return 0;
}

static bool
is_denial(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
}

/* A filter of system calls may let a ring be made and not be used, of which the first
 * wait would learn too late: by then there are ops in it.  So ask for nothing by each
 * call; what they say to that does not matter, while they say it. */
static int
check_calls(struct weft__uring *ring)
{
	struct io_uring_probe none = { .last_op = 0 };
	int rc;

	ring->failed = "io_uring_register";
	rc = weft__uring_kernel(ring)->uring_register(ring->fd, IORING_REGISTER_PROBE, &none, 0);
	if (is_denial(rc))
		return rc;
	ring->failed = "io_uring_enter";
	rc = weft__uring_kernel(ring)->uring_enter(ring->fd, 0, 0, 0, NULL);
	return is_denial(rc) ? rc : 0;
}

int
weft__uring_open(struct weft__uring *ring, uint32_t entries, bool bound)
{
	const uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;
	struct io_uring_params p = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL
		         | IORING_SETUP_R_DISABLED
		         | (bound ? BOUND | IORING_SETUP_TASKRUN_FLAG : 0),
		.cq_entries = 4 * entries,
	};
	int rc;

	clear(ring, "io_uring_setup");
	rc = weft__uring_kernel(ring)->uring_setup(entries, &p);
	if (rc < 0)
		return rc;
	ring->fd = rc;
	ring->features = p.features;
	ring->failed = "io_uring features";
	rc = (p.features & needed) == needed ? check_calls(ring) : -ENOSYS;
	if (rc == 0) {
		ring->failed = "mmap";
		rc = map_rings(ring, &p);
	}
	if (rc < 0)
		weft__uring_close(ring);
	return rc;
}

void
weft__uring_close(struct weft__uring *ring)
{
	weft__sys->unmap(ring->ring_mem, ring->ring_size);
	weft__sys->unmap(ring->sqe_mem, ring->sqe_size);
	if (ring->fd >= 0)
		(void)weft__uring_kernel(ring)->close(ring->fd);
	clear(ring, ring->failed);
}

/* Cancelling by io_uring_register(2) also completes what it cancels.  If that is refused, too,
 * the kernel cancels because the ring is closed; a bound ring executes nothing more then,
 * since that is left to the thread that enters it.  A number that is no ring any more was
 * closed behind our back. */
void
weft__uring_abandon(struct weft__uring *ring, int error)
{
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
		.timeout = { 0, (int64_t)CANCEL_NS },
	};

	if (error != -EBADF && error != -EOPNOTSUPP) {
		(void)weft__uring_kernel(ring)->uring_register(
			ring->fd, IORING_REGISTER_SYNC_CANCEL, &all, 1);
		(void)weft__uring_kernel(ring)->close(ring->fd);
	}
	ring->fd = -1;
	ring->dead = true;
}

/* Entries that the kernel has not taken yet. */
static uint32_t
unsubmitted(const struct weft__uring *ring)
{
	return ring->sq_tail - load_acquire(ring->sq_head);
}

int
weft__uring_enable(struct weft__uring *ring)
{
	int rc;

	if (ring->enabled)
		return 0;
	rc = weft__uring_kernel(ring)->uring_register(ring->fd, IORING_REGISTER_ENABLE_RINGS, NULL,
	                                              0);
	ring->enabled = rc == 0;
	return rc;
}

struct io_uring_sqe *
weft__uring_get(struct weft__uring *ring)
{
	struct io_uring_sqe *sqe;

	if (unsubmitted(ring) == ring->sq_entries && ring->enabled)
		(void)weft__uring_enter(ring, 0);
	if (unsubmitted(ring) == ring->sq_entries || ring->dead)
		return NULL;
	sqe = &ring->sqes[ring->sq_tail++ & ring->sq_mask];
	__builtin_memset(sqe, 0, sizeof(*sqe));
	return sqe;
}

/* A request that does nothing, and whose completion is nobody's, stays in its place. */
bool
weft__uring_withdraw(struct weft__uring *ring, const void *user_data)
{
	for (uint32_t at = load_acquire(ring->sq_head); at != ring->sq_tail; at++) {
		struct io_uring_sqe *sqe = &ring->sqes[at & ring->sq_mask];

		if (sqe->user_data != (uint64_t)(uintptr_t)user_data)
			continue;
		__builtin_memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = IORING_OP_NOP;
		return true;
	}
	return false;
}

int
weft__uring_enter(struct weft__uring *ring, int64_t timeout_ns)
{
	struct __kernel_timespec ts = { timeout_ns / (int64_t)WEFT_S,
		                        timeout_ns % (int64_t)WEFT_S };
	struct io_uring_getevents_arg arg = { .ts = (uint64_t)(uintptr_t)&ts };
	bool timed, wait = timeout_ns != 0 && load_acquire(ring->cq_tail) == ring->cq_head;
	int rc = weft__uring_enable(ring);

	if (rc < 0)
		return rc;
	store_release(ring->sq_tail_shared, ring->sq_tail); /* S */
	timed = wait && timeout_ns > 0;
	rc = weft__uring_kernel(ring)->uring_enter(
		ring->fd, unsubmitted(ring), wait,
		IORING_ENTER_GETEVENTS | (timed ? IORING_ENTER_EXT_ARG : 0), timed ? &arg : NULL);
	return rc == -EINTR ? 0 : rc < 0 ? rc : 0;
}

bool
weft__uring_is_behind(const struct weft__uring *ring)
{
	return load_relaxed(ring->sq_flags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

bool
weft__uring_has_work(const struct weft__uring *ring)
{
	return load_acquire(ring->cq_tail) != ring->cq_head
	       || ring->sq_tail != load_relaxed(ring->sq_head) || weft__uring_is_behind(ring);
}

bool
weft__uring_has_result(const struct weft__uring *ring, const void *user_data)
{
	uint32_t end = load_acquire(ring->cq_tail); /* C */

	for (uint32_t at = ring->cq_head; at != end; at++)
		if (ring->cqes[at & ring->cq_mask].user_data == (uint64_t)(uintptr_t)user_data)
			return true;
	return false;
}

bool
weft__uring_next(struct weft__uring *ring, struct io_uring_cqe *out)
{
	if (load_acquire(ring->cq_tail) == ring->cq_head) /* C */
		return false;
	*out = ring->cqes[ring->cq_head++ & ring->cq_mask];
	/* What the next one is of, to be there by then; small ones lead nowhere. */
	__builtin_prefetch(
		(const void *)(uintptr_t)ring->cqes[ring->cq_head & ring->cq_mask].user_data);
	store_release(ring->cq_head_shared, ring->cq_head); /* H */
	return true;
}
