/* uring_ring.c - the submission and completion rings that io_uring shares with the kernel.
 *
 * Not liburing, because every system call must go through the sys table, and Debian's liburing
 * is older than the kernels it runs on.
 *
 *   1. The kernel reads submission entries up to the shared tail, which is stored with release
 *      after they are written (S).  It advances the head when it has taken them.
 *   2. Completions are between the shared head, which is ours, and the tail, which is the
 *      kernel's and is loaded with acquire (C) before they are read.  A completion is copied
 *      out before the head is stored with release (H), so its callback may submit and wait
 *      without losing it.
 *   3. The ring is created disabled.  The thread that first enters it, which runs the loop,
 *      enables it; a bound ring then accepts no other thread.  On a ring that is not bound, the
 *      kernel interrupts the thread that submitted a request to complete it.  That thread may
 *      be busy elsewhere, so completion must not wait until it enters the kernel by itself (no
 *      COOP_TASKRUN).
 *   4. A full completion ring loses nothing: the kernel keeps the rest (NODROP) and delivers it
 *      when entered.
 */
#include <errno.h>
#include "backend/uring_ring.h"

#define CANCEL_NS (100 * WEFT_MS) /* limit: a file read in progress may not end sooner */
#define BOUND     (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

/* Words shared with the kernel are accessed as atomics. */
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
backend_ring_clear(struct weft__uring *ring, const char *failed)
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
	/* Entry i of the array is always entry i of the ring. */
	for (uint32_t i = 0; i < p->sq_entries; i++)
		((uint32_t *)(void *)(mem + p->sq_off.array))[i] = i;
	return 0;
}

static bool
is_denial(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
}

/* A system call filter may allow creating a ring but not using it.  The first wait would detect
 * that too late: by then there are ops in the ring.  So make each call with nothing to do; any
 * result except a denial is fine. */
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

	backend_ring_clear(ring, "io_uring_setup");
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
	backend_ring_clear(ring, ring->failed);
}

/* Canceling through io_uring_register(2) also completes the canceled requests.  If that is
 * rejected too, weft__uring_close() cancels them, because the mappings keep the ring alive until
 * then.  A bound ring executes nothing more, because that is left to the thread that enters it.
 * If `error` shows that the number is no longer a ring, the program has closed it, and the number
 * must not be touched. */
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

/* The number of entries that the kernel has not taken yet. */
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

	if (ring->dead)
		return NULL;
	if (unsubmitted(ring) == ring->sq_entries && ring->enabled)
		(void)weft__uring_enter(ring, 0);
	if (unsubmitted(ring) == ring->sq_entries)
		return NULL;
	sqe = &ring->sqes[ring->sq_tail++ & ring->sq_mask];
	__builtin_memset(sqe, 0, sizeof(*sqe));
	return sqe;
}

/* The entry stays in the ring as a no-op, whose completion is ignored. */
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

	weft__assert(!ring->dead);
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
	uint32_t ready = load_acquire(ring->cq_tail) - ring->cq_head; /* C */

	if (ready == 0)
		return false;
	weft__assert(ready <= ring->cq_mask + 1); /* invariant 2 */
	*out = ring->cqes[ring->cq_head++ & ring->cq_mask];
	/* Prefetch the op of the next completion; small values are not pointers and do no harm. */
	__builtin_prefetch(
		(const void *)(uintptr_t)ring->cqes[ring->cq_head & ring->cq_mask].user_data);
	store_release(ring->cq_head_shared, ring->cq_head); /* H */
	return true;
}
