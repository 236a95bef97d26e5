/* uring.c - the io_uring calls of the failing sys table.
 *
 * The wrappers of uring_setup and map record where the rings are.  So uring_enter can inspect
 * the requests before the kernel takes them, and the completions before the library does
 * (request.c).  Only the newest ring is recorded: no scenario has two.
 *
 *   1. If uring_enter fails, it fails without the real call: the kernel has taken nothing.
 *   2. A short count of uring_enter is real: the wrapper submits only the first request and
 *      does not wait.  The kernel does the same when it is short of memory.
 *   3. Small rings have the smallest submission ring, and a completion ring that really
 *      overflows.  The kernel delivers the entries that do not fit later (NODROP).
 */
#include <errno.h>
#include "fault.h"
#include "strike.h"
#include "uring.h"

#define real     weft__sys_real
#define SMALL_SQ 1u
#define SMALL_CQ 4u

static struct fault_ring ring = { .fd = -1 };
static bool small;
static weft__a64 overflows;

bool
fault_has_rings(void)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN
		         | IORING_SETUP_R_DISABLED,
	};
	int fd = real.uring_setup(1, &params);

	if (fd >= 0)
		(void)real.close(fd);
	return fd >= 0;
}

void
fault_set_small_rings(bool on)
{
	small = on;
}

bool
fault_has_small_rings(void)
{
	return small;
}

uint64_t
fault_overflows(void)
{
	return weft__load(&overflows, WEFT__RELAXED);
}

static int
on_uring_setup(uint32_t entries, struct io_uring_params *params)
{
	int rc = fault_strike(FAULT_uring_setup);

	if (rc)
		return rc;
	if (small) {
		entries = SMALL_SQ;
		params->cq_entries = SMALL_CQ;
	}
	rc = real.uring_setup(entries, params);
	if (rc >= 0)
		ring = (struct fault_ring){ .fd = rc, .params = *params };
	return rc;
}

static void *
on_map(size_t size, int fd, uint64_t offset)
{
	void *mem = fault_strike(FAULT_map) ? NULL : real.map(size, fd, offset);

	if (mem)
		fault_hold(1);
	if (fd >= 0 && fd == ring.fd && offset == IORING_OFF_SQ_RING)
		ring.mem = mem;
	if (fd >= 0 && fd == ring.fd && offset == IORING_OFF_SQES)
		ring.sqes = mem;
	return mem;
}

static void
on_unmap(void *mem, size_t size)
{
	if (mem)
		fault_hold(-1);
	if (mem && (mem == (void *)ring.mem || mem == (void *)ring.sqes))
		ring = (struct fault_ring){ .fd = -1 };
	real.unmap(mem, size);
}

static int
on_uring_register(int fd, uint32_t what, void *arg, uint32_t count)
{
	int rc = fault_strike(FAULT_uring_register);

	if (rc)
		return rc;
	rc = real.uring_register(fd, what, arg, count);
	if (rc == 0 && fd == ring.fd && what == IORING_REGISTER_PBUF_RING) {
		const struct io_uring_buf_reg *reg = arg;

		ring.buffers = (void *)(uintptr_t)reg->ring_addr;
		ring.buffer_count = reg->ring_entries;
	}
	return rc;
}

static void
note_overflow(void)
{
	const void *flags = ring.mem + ring.params.sq_off.flags;

	if (weft__load((const weft__a32 *)flags, WEFT__RELAXED) & IORING_SQ_CQ_OVERFLOW)
		(void)weft__add(&overflows, 1, WEFT__RELAXED);
}

static int
on_uring_enter(int fd, uint32_t submit, uint32_t wait, uint32_t flags, const void *arg)
{
	int rc = fault_strike(FAULT_uring_enter);
	uint64_t n = fault_count(FAULT_uring_enter);
	bool known = fd == ring.fd && ring.mem && ring.sqes;

	if (rc)
		return rc; /* invariant 1 */
	if (submit > 1 && fault_is_aimed(FAULT_uring_enter, FAULT_SHORT, n)) {
		fault_hit();
		submit = 1; /* invariant 2 */
		wait = 0;
	}
	if (known)
		fault_inspect_requests(&ring, submit);
	rc = real.uring_enter(fd, submit, wait, flags, arg);
	if (known) {
		note_overflow();
		fault_inspect_completions(&ring);
	}
	return rc;
}

void
fault_wrap_uring(struct weft__sys *table)
{
	table->uring_setup = on_uring_setup;
	table->uring_enter = on_uring_enter;
	table->uring_register = on_uring_register;
	table->map = on_map;
	table->unmap = on_unmap;
}
