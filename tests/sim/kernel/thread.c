/* thread.c - the thread calls of the sys table: start, join, park, unpark, yield.
 *
 * A thread's stack belongs to its slot in the table of threads.  It is mapped at first use and
 * kept from run to run, with an inaccessible page below it.
 *
 *   1. A parked thread is found by the address of its word.  The word is read when the thread
 *      goes to sleep, and never by the thread that wakes it.
 *   2. A late wake counts as sent: the receiver is no longer found by its word, and nothing
 *      else wakes it.
 *   3. An ended thread keeps its slot and stack until it is joined.
 *
 * Simulated signals do not interrupt a sleep; an injected fault does that.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/run/rng.h"
#include "sim/kernel/thread.h"
#include "sim/run/trace.h"

#define STACK_BYTES ((size_t)256 << 10)
#define GUARD_BYTES ((size_t)4096)

static char *stacks[SIM_THREADS_MAX]; /* by slot */

static uint64_t
soon(struct sim_fault *hit)
{
	return hit ? sim_clock.now_ns + sim_fault_delay_ns(hit, WEFT_S) : WEFT_NEVER;
}

int
sim_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	int rc = -EAGAIN;

	sim_point(SIM_MEET_WEIGHT);
	if (word->raw == value)
		rc = sim_wait(&(struct sim_wait){
			.channel = word,
			.what = "park while the word is",
			.what_arg = value,
			.deadline_ns = deadline_ns,
			.interrupt_ns = soon(sim_fault(SIM_EINTR, SIM_CALL_park)),
			.spurious_ns = soon(sim_fault(SIM_SPURIOUS, SIM_CALL_park)),
		});
	sim_trace(SIM_CALL_park, value, (int64_t)deadline_ns, rc);
	return rc;
}

/* Rule 2. */
static void
wake_late(struct sim_thread *thread, struct sim_fault *hit)
{
	thread->version++;
	thread->wait.channel = NULL;
	thread->wait.what = "a wake that is on its way";
	sim_thread_wake_at(thread, soon(hit), 0);
}

void
sim_unpark(weft__a32 *word)
{
	struct sim_thread *thread;
	struct sim_fault *hit;

	sim_point(SIM_CALL_WEIGHT);
	thread = sim_thread_asleep(word);
	if (thread) {
		hit = sim_fault(SIM_LATE, SIM_CALL_unpark);
		if (hit)
			wake_late(thread, hit);
		else
			sim_thread_wake(thread, 0);
	}
	sim_trace(SIM_CALL_unpark, 0, 0, thread ? (int64_t)thread->id : -1);
	if (thread)
		sim_point(SIM_MEET_WEIGHT);
}

/* Nothing to do: threads run one at a time and see everything that was done before. */
int
sim_barrier(void)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	rc = sim_fault_errno(SIM_CALL_barrier);
	sim_trace(SIM_CALL_barrier, 0, 0, rc);
	return rc;
}

void
sim_yield(void)
{
	sim_point(SIM_CALL_WEIGHT);
	sim_trace(SIM_CALL_yield, 0, 0, 0);
	sim_thread_pass();
}

static struct weft__context *
thread_main(void *arg)
{
	struct sim_thread *thread = arg;

	thread->opts.fn(thread->opts.arg);
	if (thread->has_self)
		weft__thread_end(&thread->self);
	sim_thread_end(thread); /* switches away */
	return NULL;
}

static char *
stack_of(uint32_t slot)
{
	char *mem;

	if (stacks[slot])
		return stacks[slot];
	mem = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
	           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED || mprotect(mem, GUARD_BYTES, PROT_NONE) < 0)
		sim_fail("the simulator has no memory for stacks");
	stacks[slot] = mem + GUARD_BYTES;
	return stacks[slot];
}

struct sim_thread *
sim_thread_make(const struct weft__thread_opts *opts)
{
	struct sim_thread *thread = sim_thread_take();

	if (!thread)
		return NULL;
	thread->opts = *opts;
	if (opts->name)
		memcpy(thread->name, opts->name, strnlen(opts->name, sizeof(thread->name) - 1));
	weft__context_make(&thread->context, stack_of(thread->slot), STACK_BYTES, thread_main,
	                   thread);
	thread->resume = &thread->context;
	sim_thread_ready(thread);
	return thread;
}

int
sim_thread_start(const struct weft__thread_opts *opts, uint64_t *out)
{
	struct sim_thread *thread = NULL;
	int rc = 0;

	sim_point(SIM_CALL_WEIGHT);
	if (sim_fault(SIM_THREAD, SIM_CALL_thread_start))
		rc = -EAGAIN;
	if (rc == 0)
		rc = sim_fault_errno(SIM_CALL_thread_start);
	if (rc == 0) {
		thread = sim_thread_make(opts);
		rc = thread ? 0 : -EAGAIN;
	}
	if (rc == 0)
		*out = thread->id;
	sim_trace(SIM_CALL_thread_start, thread ? (int64_t)thread->id : -1, 0, rc);
	if (thread)
		sim_point(SIM_MEET_WEIGHT);
	return rc;
}

int
sim_thread_join(uint64_t id)
{
	struct sim_thread *thread;

	sim_point(SIM_CALL_WEIGHT);
	thread = sim_thread_find(id);
	if (!thread || thread == sim_thread_current())
		sim_fail("joins thread %llu, which is %s", (unsigned long long)id,
		         thread ? "itself" : "not there or was joined before");
	while (thread->state != SIM_THREAD_ENDED)
		(void)sim_wait(&(struct sim_wait){
			.channel = thread,
			.what = "the end of thread",
			.what_arg = (int64_t)id,
			.deadline_ns = WEFT_NEVER,
			.interrupt_ns = WEFT_NEVER,
			.spurious_ns = WEFT_NEVER,
		});
	weft__context_fini(&thread->context);
	thread->state = SIM_THREAD_FREE;
	sim_trace(SIM_CALL_thread_join, (int64_t)id, 0, 0);
	return 0;
}

struct weft__thread *
sim_thread_self(void)
{
	struct sim_thread *thread = sim_thread_current();

	thread->has_self = true;
	weft__thread_ptr = &thread->self;
	return weft__thread_ptr;
}
