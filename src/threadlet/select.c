/* select.c - wait for the first of several events.
 *
 *   1. All waitables are entered, in the order of their addresses, before the first case is tried.
 *      They are left when one case was done or all have been queued.  So no waitable changes
 *      between checking and queueing, and when two selects meet, neither has to undo a claim.
 *   2. One waiter is in all queues: the claimer of the waiter chooses the case.
 *   3. Before select returns, the waiter is out of every queue.  Claiming happens inside the
 *      waitable, and so does the removal.
 */
#include <weft/select.h>
#include "threadlet/chan.h"

#define FEW       8u
#define CASES_MAX 1024u

struct entry {
	struct weft__wait wait;
	struct weft__waitable *waitable; /* NULL: an op, a join or a time */
};

struct choice {
	struct weft__shared_waiter w;
	weft_case *cases;
	size_t count;
	struct entry *entries;
	struct weft__waitable **waitables; /* in order, each once */
	size_t waitables_count;
	bool shared;             /* all sources are: a plain thread may wait */
	struct weft__wait *wake; /* to be woken after leaving the waitables */
};

/* --- waitables ---------------------------------------------------------- */

static struct weft__waitable *
waitable_of(const weft_case *c)
{
	if (c->recv)
		return weft__chan_waitable(c->recv);
	if (c->send)
		return weft__chan_waitable(c->send);
	return (struct weft__waitable *)(void *)c->event;
}

/* Insert a waitable in order, unless it is there. */
static void
add_waitable(struct choice *choice, struct weft__waitable *waitable)
{
	size_t at = choice->waitables_count;

	for (size_t i = 0; i < choice->waitables_count; i++)
		if (choice->waitables[i] == waitable)
			return;
	for (; at > 0 && choice->waitables[at - 1] > waitable; at--)
		choice->waitables[at] = choice->waitables[at - 1];
	choice->waitables[at] = waitable;
	choice->waitables_count++;
}

static void
leave_waitables(struct choice *choice, size_t count)
{
	while (count-- > 0)
		weft__waitable_leave(choice->waitables[count]);
}

static int
enter_waitables(struct choice *choice) /* invariant 1 */
{
	for (size_t i = 0; i < choice->waitables_count; i++) {
		int rc = weft__waitable_enter(choice->waitables[i]);

		if (rc < 0) {
			leave_waitables(choice, i);
			return rc;
		}
	}
	return 0;
}

/* --- trying ------------------------------------------------------------- */

static int
try_op(weft_case *c)
{
	const struct weft__op *op = weft__op_of(c->op);

	if (op->pending && op->loop != weft__thread_self()->loop)
		return weft__misuse(WEFT_EWRONGLOOP, "weft_select: an op belongs to another loop");
	if (op->pending)
		return op->on_done ? WEFT_EBUSY : WEFT_EAGAIN;
	c->result = op->kind == WEFT__OP_NONE ? WEFT_EINVAL : op->result;
	return 0;
}

static int
try_join(weft_case *c)
{
	int out;
	int rc = weft_join(c->joined, &out, WEFT_NOWAIT);

	c->result = rc < 0 ? rc : out;
	return rc == WEFT_ETIMEDOUT ? WEFT_EAGAIN : 0;
}

/* 0: done; WEFT_EAGAIN: not possible now; else an error of weft_select(). */
static int
try_case(struct choice *choice, weft_case *c)
{
	int rc = WEFT_EAGAIN;

	if (c->recv)
		rc = weft__chan_recv(c->recv, c->value, &choice->wake);
	else if (c->send)
		rc = weft__chan_send(c->send, c->value, &choice->wake);
	else if (c->event)
		rc = weft__event_is_set(c->event) ? 0 : WEFT_EAGAIN;
	else if (c->op)
		return try_op(c);
	else if (c->joined)
		return try_join(c);
	else if (c->until_ns && weft_now() >= c->until_ns)
		rc = 0;
	if (rc == WEFT_EAGAIN)
		return rc;
	c->result = rc;
	return 0;
}

/* The index of a case that was done, an error, or WEFT_EAGAIN. */
static int
try_all(struct choice *choice)
{
	uint32_t chance = weft__chance();
	size_t first = choice->count ? chance % choice->count : 0;

	for (size_t i = 0; i < choice->count; i++) {
		size_t at = first + i < choice->count ? first + i : first + i - choice->count;
		int rc = try_case(choice, &choice->cases[at]);

		if (rc != WEFT_EAGAIN)
			return rc < 0 ? rc : (int)at;
	}
	return WEFT_EAGAIN;
}

/* --- waiting ------------------------------------------------------------ */

static void
on_op_done(weft_op *op, int64_t result, void *arg)
{
	struct entry *entry = arg;

	if (op->more || !weft__claim(entry->wait.waiter))
		return;
	entry->wait.waiter->chosen = &entry->wait;
	if (weft__op_of(op)->kind == WEFT__OP_OWN && weft__op_of(op)->has_text)
		weft__pass_words((int)result, &entry->wait.waiter->threadlet->failure);
	weft__waitable_wake(entry->wait.waiter, result);
}

/* Inside the waitables. */
static void
queue_case(struct choice *choice, size_t i)
{
	weft_case *c = &choice->cases[i];
	struct entry *entry = &choice->entries[i];

	entry->wait = (struct weft__wait){ .waiter = &choice->w.waiter, .value = c->value };
	if (c->recv) {
		weft__wait_push(&c->recv->receivers, &entry->wait);
	} else if (c->send) {
		weft__wait_push(&c->send->senders, &entry->wait);
	} else if (c->event) {
		weft__wait_push(weft__event_waits(c->event), &entry->wait);
	} else if (c->op) {
		c->op->on_done = on_op_done;
		c->op->arg = entry;
	} else if (c->joined) {
		entry->wait.value = &c->result;
		weft__join_push(c->joined, &entry->wait);
	}
}

/* Inside the waitables; invariant 3. */
static void
unqueue(struct choice *choice)
{
	for (size_t i = 0; i < choice->count; i++) {
		weft_case *c = &choice->cases[i];

		weft__wait_drop(&choice->entries[i].wait);
		if (c->op && c->op->on_done == on_op_done) {
			c->op->on_done = NULL;
			c->op->arg = NULL;
		}
	}
}

/* The case with the earliest `until_ns`, or count. */
static size_t
first_time(const struct choice *choice)
{
	size_t first = choice->count;

	for (size_t i = 0; i < choice->count; i++)
		if (choice->cases[i].until_ns && !choice->entries[i].waitable
		    && !choice->cases[i].op && !choice->cases[i].joined
		    && (first == choice->count
		        || choice->cases[i].until_ns < choice->cases[first].until_ns))
			first = i;
	return first;
}

/* All cases are queued: wait for the first. */
static int
wait_for_first(struct choice *choice, uint64_t deadline_ns)
{
	size_t time = first_time(choice);
	struct weft__wait *chosen;
	uint64_t until_ns = time < choice->count ? choice->cases[time].until_ns : WEFT_NEVER;
	int64_t result;
	int rc;

	result = weft__shared_wait(&choice->w, until_ns < deadline_ns ? until_ns : deadline_ns);
	rc = enter_waitables(choice);
	weft__assert(rc == 0);
	unqueue(choice);
	leave_waitables(choice, choice->waitables_count);
	chosen = weft__get(choice->w.waiter.chosen);
	if (!chosen && result == WEFT_ETIMEDOUT && until_ns <= deadline_ns && time < choice->count
	    && weft_now() >= until_ns) {
		choice->cases[time].result = 0;
		return (int)time;
	}
	if (!chosen)
		return (int)result;
	time = (size_t)((struct entry *)(void *)chosen - choice->entries);
	if (!choice->cases[time].joined)
		choice->cases[time].result = result;
	return (int)time;
}

/* --- the call ----------------------------------------------------------- */

static int
choose(struct choice *choice, uint64_t deadline_ns)
{
	int rc = enter_waitables(choice);

	if (rc < 0)
		return rc;
	rc = try_all(choice);
	if (rc == WEFT_EAGAIN) {
		rc = weft__waitable_may_wait(choice->shared, deadline_ns);
		if (rc == 0) {
			for (size_t i = 0; i < choice->count; i++)
				queue_case(choice, i);
			leave_waitables(choice, choice->waitables_count);
			return wait_for_first(choice, deadline_ns);
		}
	}
	leave_waitables(choice, choice->waitables_count);
	if (choice->wake)
		weft__waitable_wake(choice->wake->waiter, 0);
	(void)weft__maybe_yield(weft__self());
	return rc;
}

static bool
has_one_source(const weft_case *c)
{
	return (c->recv != NULL) + (c->send != NULL) + (c->event != NULL) + (c->op != NULL)
	               + (c->joined != 0) + (c->until_ns != 0)
	       <= 1;
}

/* Returns 0, or WEFT_EINVAL. */
static int
note_waitables(struct choice *choice)
{
	choice->shared = true;
	choice->w.may_spin = false;
	for (size_t i = 0; i < choice->count; i++) {
		const weft_case *c = &choice->cases[i];
		struct weft__waitable *waitable = waitable_of(c);

		if (!has_one_source(c))
			return weft__misuse(WEFT_EINVAL,
			                    "weft_select: a case has more than one source");
		choice->entries[i] = (struct entry){ .waitable = waitable };
		if (waitable)
			add_waitable(choice, waitable);
		if (waitable && waitable->flags & WEFT_SHARED)
			choice->w.may_spin = true;
		if (c->op || c->joined || (waitable && !(waitable->flags & WEFT_SHARED)))
			choice->shared = false;
	}
	return 0;
}

int
weft_select(weft_case *cases, size_t count, uint64_t deadline_ns)
{
	struct entry few[FEW];
	struct weft__waitable *few_waitables[FEW];
	struct choice choice = {
		.cases = cases, .count = count, .entries = few, .waitables = few_waitables
	};
	int rc;

	if ((!cases && count > 0) || count > CASES_MAX)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_select: cases is NULL, or count is larger than 1024");
	rc = weft__check_requests(deadline_ns);
	if (rc < 0)
		return rc;
	if (count > FEW) {
		choice.entries = weft__sys->alloc(count
		                                  * (sizeof(few[0]) + sizeof(few_waitables[0])));
		if (!choice.entries)
			return weft__fail(WEFT_ENOMEM, "weft_select: out of memory");
		choice.waitables = (struct weft__waitable **)(void *)(choice.entries + count);
	}
	weft__shared_waiter_init(&choice.w, "select", cases);
	rc = note_waitables(&choice);
	if (rc == 0)
		rc = choose(&choice, deadline_ns);
	if (count > FEW)
		weft__sys->release(choice.entries);
	return rc;
}
