/* wake_futex.c - two threads without loops, parked by futex(2): the lower bound. */
#include "bench.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct side {
	atomic_uint kicks;
	bool left; /* used by its own thread only */
} __attribute__((aligned(2 * BENCH_LINE)));

static void on_kick(struct side *side);

static void
side_open(struct side *side, bool may_spin)
{
	(void)side;
	BENCH_CHECK(!may_spin);
}

static void
side_kick(struct side *side)
{
	(void)atomic_fetch_add(&side->kicks, 1);
	(void)syscall(SYS_futex, &side->kicks, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void
side_run(struct side *side)
{
	for (unsigned seen = 0; !side->left; seen++) {
		while (atomic_load(&side->kicks) == seen)
			(void)syscall(SYS_futex, &side->kicks, FUTEX_WAIT_PRIVATE, seen, NULL, NULL,
			              0);
		on_kick(side);
	}
}

static void
side_leave(struct side *side)
{
	side->left = true;
}

#include "wake_bench.h"
