/* search.c - the tree of choices, walked depth first, and the choice of the next thread.
 *
 * An execution is the sequence of its choices: which thread does the next operation, which
 * message a load reads, which thread a wake reaches.  The path of choices is kept.  The next
 * execution replays it up to the last choice that has an option left, takes that option, and
 * takes the first option of every choice after it.  No state is saved.
 *
 * When a thread is chosen, each thread is stopped just before an operation that others can
 * notice.  A thread that was just woken or started first runs up to that point.
 *
 * Executions that differ only in the order of adjacent independent operations are equivalent.
 * Sleep sets (Godefroid) skip them: when every execution in which thread t goes first has been
 * explored, t sleeps in the branches where another thread goes first, until a thread does an
 * operation that t's operation depends on.  If all threads that could run are asleep, the rest
 * was already explored: the execution is redundant.
 *
 *   1. Operations on different atomics are independent.  Views are private, messages do not
 *      change, and a seq_cst operation changes the common view for one atomic only.
 *   2. Two stores to one atomic are independent: each may be inserted before or after the
 *      other, regardless of which is executed first.
 *   3. An operation that reads depends on a store in one direction only: whatever it can read
 *      before the store, it can also read after the store, with the same final state.  So a
 *      reader does not wake a sleeping store.  A store wakes a sleeping reader, but only for
 *      messages that are newer than its sleep: its floor.
 *   4. Two seq_cst operations on one atomic are dependent, because each raises the common
 *      view.  System calls depend on each other and on seq_cst operations, because they are
 *      fences.
 *   5. A barrier depends on everything: it changes what every thread may read.
 *   6. With a bound on preemptions no thread sleeps: the equivalent execution may have been
 *      out of bounds.
 *
 * Spinning.  A thread that yields, or repeats an operation that changed nothing, is guarded: it
 * continues only when another thread has changed a value since the previous round began, or
 * when it has itself read a stale value.  After two rounds with stale reads of an atomic it
 * reads the newest value.  Only rounds that see nothing new are lost.  If nothing else can run,
 * the spinning threads continue, because a spin may have an end of its own; but only up to a
 * limit.
 */
#include <errno.h>
#include <stdio.h>
#include "internal.h"

enum { NODES_MAX = 16384 };

struct node {
	uint8_t is_thread;
	uint8_t chosen;
	uint8_t done;     /* threads: mask of those already explored */
	uint8_t todo;     /* threads: mask of those not yet explored */
	uint16_t options; /* otherwise: the number of options */
};

static struct {
	struct node nodes[NODES_MAX];
	uint32_t count;
	uint32_t at; /* nodes passed in this execution */
	uint32_t steps;
	uint32_t fresh;                /* mask: threads not yet stopped before an operation */
	uint32_t sleep;                /* mask: the sleep set */
	int16_t floor[EXPLORE__SLOTS]; /* for sleeping readers */
	int last;                      /* the thread that did the last operation */
	int preempted;
	int steps_max;
	bool bounded;
} search;

/* Called once per run. */
void
explore__search_begin(void)
{
	const struct explore_model *model = explore__run.model;

	search.count = 0;
	search.bounded = model->preemptions > 0;
	search.steps_max = model->steps_max > 0 ? model->steps_max : 1000;
}

/* Called once per execution. */
void
explore__search_rewind(void)
{
	search.at = 0;
	search.steps = 0;
	search.sleep = 0;
	search.fresh = (1u << explore__run.model->threads) - 1;
	search.last = EXPLORE__MAIN;
	search.preempted = 0;
}

/* Advance to the next path; false if there is none. */
bool
explore__search_next(void)
{
	while (search.count > 0) {
		struct node *node = &search.nodes[search.count - 1];

		if (!node->is_thread && ++node->chosen < node->options)
			return true;
		if (node->is_thread && node->todo) {
			node->done |= (uint8_t)(1u << node->chosen);
			node->chosen = (uint8_t)__builtin_ctz(node->todo);
			node->todo &= (uint8_t)(node->todo - 1);
			return true;
		}
		search.count--;
	}
	return false;
}

uint32_t
explore__search_depth(void)
{
	return search.count;
}

/* The node at this point of the path: the recorded one in a replay, otherwise `made`. */
static struct node *
node_pass(struct node made)
{
	struct node *node = &search.nodes[search.at++];
	bool same;

	if (search.at <= search.count) {
		same = node->is_thread == made.is_thread && node->options == made.options;
		if (!same)
			explore_fail("the model is not deterministic: a replay "
			             "came to another choice");
		return node;
	}
	if (search.count == NODES_MAX)
		explore__stop(EXPLORE__PRUNED);
	*node = made;
	search.count++;
	return node;
}

int
explore__choose(int options)
{
	if (options < 1 || options > 255)
		explore_fail("a choice of %d", options);
	if (options == 1)
		return 0;
	return node_pass((struct node){ .options = (uint16_t)options })->chosen;
}

/* --- dependence --------------------------------------------------------- */

static bool
is_atomic(const struct explore__op *op)
{
	return op->kind <= WEFT__CAS;
}

static bool
is_common(const struct explore__op *op)
{
	return !is_atomic(op) || op->order == WEFT__SEQ_CST || op->failed == WEFT__SEQ_CST;
}

/* Must the sleeping operation `z` wake when `e` is done?  Rules 1 to 5. */
static bool
depends(const struct explore__op *z, const struct explore__op *e)
{
	bool common = is_common(z) && is_common(e);

	if (z->kind == EXPLORE__BARRIER || e->kind == EXPLORE__BARRIER)
		return true;
	if (!is_atomic(z) || !is_atomic(e))
		return common || z->addr == e->addr;
	return common && z->addr == e->addr;
}

static bool
is_reader(const struct explore__op *op)
{
	return is_atomic(op) && op->kind != WEFT__STORE;
}

static bool
sleeps(int thread)
{
	const struct explore__op *op = &explore__run.slots[thread].op;

	if (!(search.sleep & 1u << thread))
		return false;
	return !is_reader(op) || explore__atom_count(op->addr) == search.floor[thread];
}

/* `thread` does its operation; the threads in `done` were already explored at this node. */
static void
sleep_update(int thread, uint32_t done)
{
	struct explore__slot *slots = explore__run.slots;
	uint32_t mask = (search.sleep | done) & ~(1u << thread);

	slots[thread].floor = search.sleep & 1u << thread && is_reader(&slots[thread].op)
	                              ? search.floor[thread]
	                              : 0;
	search.sleep = 0;
	for (; mask; mask &= mask - 1) {
		int other = __builtin_ctz(mask);

		if (done & 1u << other && is_reader(&slots[other].op))
			search.floor[other] = explore__atom_count(slots[other].op.addr);
		if (!depends(&slots[other].op, &slots[thread].op))
			search.sleep |= 1u << other;
	}
}

/* --- which threads can run ---------------------------------------------- */

static uint32_t
others_writes(const struct explore__slot *slot)
{
	return explore__run.writes - slot->writes;
}

static bool
enabled(const struct explore__slot *slot)
{
	if (slot->state != EXPLORE__READY)
		return false;
	if (slot->guarded && !slot->was_stale && others_writes(slot) == slot->bar)
		return false;
	if (slot->op.kind == EXPLORE__WAIT)
		return explore__event_ready(slot->op.addr) || slot->expired
		       || (explore__run.model->timeouts && slot->deadline_ns != WEFT_NEVER);
	return true;
}

static uint32_t
enabled_mask(void)
{
	uint32_t mask = 0;

	for (int i = 0; i < explore__run.model->threads; i++)
		if (enabled(&explore__run.slots[i]))
			mask |= 1u << i;
	return mask;
}

void
explore__spin(void)
{
	struct explore__slot *self = explore__self();

	self->round++;
	self->guarded = true;
	self->bar = self->mark;
	self->mark = others_writes(self);
}

/* --- when nothing can run ----------------------------------------------- */

static bool
waits_for_time(const struct explore__slot *slot)
{
	return slot->deadline_ns != WEFT_NEVER
	       && (slot->state == EXPLORE__PARKED
	           || (slot->state == EXPLORE__READY && slot->op.kind == EXPLORE__WAIT));
}

/* Advance time to the earliest deadline and wake one thread that has it. */
static bool
time_pass(void)
{
	struct explore__slot *slots = explore__run.slots;
	uint64_t first = WEFT_NEVER;
	int due[EXPLORE_THREADS_MAX], count = 0, slot;

	for (int i = 0; i < explore__run.model->threads; i++)
		if (waits_for_time(&slots[i]) && slots[i].deadline_ns < first)
			first = slots[i].deadline_ns;
	for (int i = 0; i < explore__run.model->threads; i++)
		if (waits_for_time(&slots[i]) && slots[i].deadline_ns == first)
			due[count++] = i;
	if (count == 0)
		return false;
	if (explore__run.now_ns < first)
		explore__run.now_ns = first;
	slot = due[explore__choose(count)];
	if (slots[slot].state == EXPLORE__PARKED)
		explore__wake(slot, -ETIMEDOUT);
	else
		slots[slot].expired = true;
	return true;
}

/* Let the spinning thread that has continued least often continue, if there is one.  Time
 * passes, too. */
static bool
spin_alone(void)
{
	struct explore__slot *least = NULL;

	for (int i = 0; i < explore__run.model->threads; i++) {
		struct explore__slot *slot = &explore__run.slots[i];

		if (slot->state == EXPLORE__READY && slot->guarded && slot->op.kind != EXPLORE__WAIT
		    && (!least || slot->lonely < least->lonely))
			least = slot;
	}
	if (!least)
		return false;
	explore__run.now_ns += 1000;
	if (++least->lonely > EXPLORE__LONELY_MAX)
		explore_fail("%s spins forever after %s:%d: nothing else can run",
		             explore__slot_name((int)(least - explore__run.slots)),
		             explore__base_name(least->last.file), least->last.line);
	least->guarded = false;
	return true;
}

static _Noreturn void
fail_deadlock(void)
{
	char text[256] = "";
	size_t used = 0;

	for (int i = 0; i < explore__run.model->threads; i++) {
		const struct explore__slot *slot = &explore__run.slots[i];

		if (slot->state != EXPLORE__ENDED && used < sizeof text)
			used += (size_t)snprintf(
				text + used, sizeof text - used, "%s%s waits after %s:%d",
				used ? ", " : "", explore__slot_name(i),
				explore__base_name(slot->last.file), slot->last.line);
	}
	explore_fail("deadlock: %s", text);
}

static bool
all_ended(void)
{
	for (int i = 0; i < explore__run.model->threads; i++)
		if (explore__run.slots[i].state != EXPLORE__ENDED)
			return false;
	return true;
}

/* --- choosing a thread -------------------------------------------------- */

/* The threads that may continue within the bound on preemptions. */
static uint32_t
within_bound(uint32_t mask)
{
	bool stays = search.last != EXPLORE__MAIN && mask & 1u << search.last
	             && !explore__run.slots[search.last].guarded;

	if (stays && search.preempted == explore__run.model->preemptions)
		return 1u << search.last;
	return mask;
}

static int
thread_choose(uint32_t mask, uint32_t *done)
{
	int first = mask & 1u << search.last ? search.last : __builtin_ctz(mask);
	struct node *node;

	*done = 0;
	if (!(mask & (mask - 1)))
		return first;
	node = node_pass((struct node){
		.is_thread = 1,
		.chosen = (uint8_t)first,
		.todo = (uint8_t)(mask & ~(1u << first)),
		.options = (uint16_t)mask,
	});
	*done = node->done;
	return node->chosen;
}

static int
thread_take(uint32_t mask)
{
	struct explore__slot *slots = explore__run.slots;
	uint32_t awake = 0, done;
	int thread;

	for (uint32_t left = mask; left; left &= left - 1)
		if (!sleeps(__builtin_ctz(left)))
			awake |= left & -left;
	if (!awake)
		explore__stop(EXPLORE__REDUNDANT);
	if (search.bounded)
		awake = within_bound(awake);
	thread = thread_choose(awake, &done);
	if (search.bounded)
		search.preempted += search.last != thread && search.last != EXPLORE__MAIN
		                    && mask & 1u << search.last && !slots[search.last].guarded;
	else
		sleep_update(thread, done);
	slots[thread].guarded = false;
	slots[thread].was_stale = false;
	search.last = thread;
	return thread;
}

static int
next(void)
{
	uint32_t mask;

	for (;;) {
		if (search.fresh) {
			int slot = __builtin_ctz(search.fresh);

			search.fresh &= search.fresh - 1;
			return slot;
		}
		mask = enabled_mask();
		if (mask)
			break;
		if (all_ended())
			return EXPLORE__MAIN;
		if (!time_pass() && !spin_alone())
			fail_deadlock();
	}
	if (++search.steps > (uint32_t)search.steps_max)
		explore__stop(EXPLORE__PRUNED);
	return thread_take(mask);
}

void
explore__point(const struct explore__op *op)
{
	int slot;

	if (explore__run.current == EXPLORE__MAIN)
		return;
	explore__self()->op = *op;
	slot = next();
	if (slot != explore__run.current)
		explore__go(slot);
}

void
explore__block(void)
{
	int slot = next();

	if (slot != explore__run.current)
		explore__go(slot);
}

void
explore__wake(int slot, int result)
{
	explore__run.slots[slot].state = EXPLORE__READY;
	explore__run.slots[slot].wake_result = result;
	search.fresh |= 1u << slot;
}
