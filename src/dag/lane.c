/* lane.c - steps that wait for a thread, and the threads that come for them.
 *
 * A run has a queue for each kind of place.  For the pools it is emptied by hands: threads
 * that were asked to come by a ticket in the queue of the pool, and, for the CPU, a plain
 * thread that waits for the run.  A ticket says no more than "come and look".
 *
 *   1. A hand leaves a lane under the lock and with its queue empty (or in favour of
 *      another that it has called).  Who queues something calls a hand if none is there, or
 *      if those that are there are at long steps.  So nothing waits for nobody.
 *   2. Waking a thread costs WAKE_NS.  As many are called as have more than that to do: what
 *      a step will take is what it took before, and much if that is not known.  For steps
 *      that take next to nothing none is called: counting between threads would cost more.
 *   3. A ticket is with the pool, or with the thread that came for it until the pool has
 *      let go of it; or it is free.  One that becomes free is sent off again, if by then
 *      somebody is to be called and no other was free.
 */
#include "dag/dag.h"

#define WAKE_NS     5000u
#define SHARE_NS    200u /* a step that takes less costs as much to be shared */
#define BATCH_MAX   32u  /* steps taken out of the queue by one hand at once */
#define ROUNDS_MAX  16u  /* of a pool's thread, while others wait for it */
#define TICKETS_MAX 64u

/* --- memory -------------------------------------------------------------- */

static uint32_t
tickets_of(const weft_dag *dag, int place)
{
	if (place == WEFT_DAG_LOOP)
		return 0;
	/* One more than there are: what steps add has to be run by somebody. */
	return dag->work[place] < TICKETS_MAX ? dag->work[place] + 1 : TICKETS_MAX;
}

static uint32_t
levels_of(const weft_dag *dag)
{
	return dag->levels ? dag->levels : 1;
}

size_t
weft__dag_lanes_size(const weft_dag *dag)
{
	size_t size = 3 * levels_of(dag) * sizeof(struct weft__dag_list);

	for (int place = 0; place < 3; place++)
		size += tickets_of(dag, place) * sizeof(struct weft__dag_ticket);
	return size;
}

/* Tickets are filled when they are first used. */
void
weft__dag_lanes_init(weft_dag_run *run, void *memory)
{
	const weft_dag *dag = run->dag;
	struct weft__dag_ticket *tickets = memory;
	struct weft__dag_list *lists;

	for (int place = 0; place < 3; place++) {
		struct weft__dag_lane *lane = &run->lanes[place];

		lane->run = run;
		lane->tickets = tickets;
		lane->tickets_max = tickets_of(dag, place);
		tickets += lane->tickets_max;
	}
	lists = (struct weft__dag_list *)(void *)tickets;
	for (int place = 0; place < 3; place++) {
		run->lanes[place].levels = lists;
		for (uint32_t i = 0; i < levels_of(dag); i++)
			*lists++ = (struct weft__dag_list){ 0 };
	}
	run->lanes[WEFT_DAG_CPU].pool = run->opts.cpu;
	run->lanes[WEFT_DAG_BLOCKING].pool = run->opts.blocking;
	for (int place = 0; place < 3; place++)
		if (run->lanes[place].pool == WEFT_CPU || run->lanes[place].pool == WEFT_BLOCKING)
			run->lanes[place].pool = NULL; /* the loop's: home.c */
}

/* --- the queue, under the run's lock ------------------------------------- */

static void
put(struct weft__dag_lane *lane, struct weft__dag_step *step)
{
	weft__dag_append(&lane->levels[weft__dag_level_of(step)], step);
	lane->queued++;
	lane->queued_ns += weft__dag_cost(step);
}

static struct weft__dag_step *
get(struct weft__dag_lane *lane)
{
	struct weft__dag_list *level = lane->levels;
	struct weft__dag_step *step;
	uint64_t cost;

	if (lane->queued == 0)
		return NULL;
	while (!level->first)
		level++;
	step = weft__dag_pop(level);
	cost = weft__dag_cost(step); /* may have changed meanwhile */
	lane->queued--;
	lane->queued_ns -= lane->queued_ns < cost ? lane->queued_ns : cost;
	if (lane->queued == 0)
		lane->queued_ns = 0;
	return step;
}

struct weft__dag_list
weft__dag_take_all(struct weft__dag_lane *lane)
{
	struct weft__dag_list all = { 0 };
	struct weft__dag_step *step;

	while ((step = get(lane)))
		weft__dag_append(&all, step);
	return all;
}

/* --- calling threads ----------------------------------------------------- */

/* Who is to be called: tickets in a list, the thread that waits. */
struct call {
	struct weft__dag_ticket *tickets;
	bool waiter;
};

/* How many hands more the lane could use. */
static uint32_t
wanted(const struct weft__dag_lane *lane)
{
	uint64_t count = lane->queued;

	if (count == 0)
		return 0;
	if (lane == &lane->run->lanes[WEFT_DAG_CPU]) {
		uint64_t worth = lane->queued_ns / WAKE_NS;

		if (lane->queued_ns / SHARE_NS < count)
			worth = 0;
		count = worth < count ? worth : count;
		if (lane->active == lane->busy && count == 0)
			count = 1; /* invariant 1 */
	}
	return count < TICKETS_MAX ? (uint32_t)count : TICKETS_MAX;
}

static struct weft__dag_ticket *
get_ticket(struct weft__dag_lane *lane)
{
	struct weft__dag_ticket *ticket = lane->free_tickets;

	if (ticket) {
		lane->free_tickets = ticket->next;
		return ticket;
	}
	if (lane->tickets_made == lane->tickets_max
	    || lane->tickets_made >= lane->pool->set.threads_max)
		return NULL;
	return &lane->tickets[lane->tickets_made++];
}

/* Under the lock: choose whom to call. */
static void
choose(struct weft__dag_lane *lane, struct call *call)
{
	weft_dag_run *run = lane->run;
	uint32_t count = wanted(lane);

	if (count == 0)
		return;
	if (run->waiter_parked && lane == &run->lanes[WEFT_DAG_CPU]) {
		run->waiter_parked = false;
		weft__store(&run->bell, 1, WEFT__RELAXED);
		call->waiter = true;
		lane->active++;
		count--;
	}
	for (; count > 0 && lane->pool; count--) {
		struct weft__dag_ticket *ticket = get_ticket(lane);

		if (!ticket)
			return;
		if (run->alone)
			run->alone = false;
		ticket->lane = lane;
		ticket->next = call->tickets;
		call->tickets = ticket;
		lane->active++;
		weft__dag_run_ref(run);
		weft__pool_enter(lane->pool); /* until it is sent */
	}
}

static int help(void *arg);
static void on_helped(weft_op *op, int64_t result, void *arg);

static void
prepare_ticket(struct weft__dag_ticket *ticket)
{
	ticket->again = false;
	ticket->op = (struct weft__op){ .on_done = on_helped, .arg = ticket };
	weft__op_set_work(&ticket->op, help, ticket);
}

/* Send a ticket to the pool: 0, or an error, and it was not sent. */
static int
send_ticket(struct weft__dag_ticket *ticket)
{
	weft_pool *pool = ticket->lane->pool;
	int rc = WEFT_EAGAIN;

	prepare_ticket(ticket);
	if (weft__pool_reserve(pool)) {
		rc = weft__pool_push(pool, &ticket->op);
		if (rc < 0)
			weft__pool_give_back(pool);
	}
	weft__pool_leave(pool);
	return rc;
}

/* Nobody comes.  If others are there they do it, else it cannot be done. */
static void
come_to_nothing(struct weft__dag_hand *hand, struct weft__dag_ticket *ticket, int rc)
{
	struct weft__dag_lane *lane = ticket->lane;
	weft_dag_run *run = lane->run;
	struct weft__dag_step *step;
	struct weft__dag_list lost = { 0 };

	weft__lock_take(&run->lock);
	ticket->next = lane->free_tickets;
	lane->free_tickets = ticket;
	if (--lane->active == 0)
		while ((step = get(lane)))
			weft__dag_append(&lost, step);
	weft__lock_give(&run->lock);
	while ((step = weft__dag_pop(&lost))) {
		(void)weft_fail(rc, "no thread of the pool is to be had");
		weft__dag_finish(hand, step, rc, (weft_value){ 0 });
	}
	weft__dag_run_unref(run);
}

/* Outside of the lock: call them. */
static void
ring(struct weft__dag_hand *hand, struct call *call)
{
	struct weft__dag_ticket *ticket;
	int rc;

	if (__builtin_expect(!call->waiter && !call->tickets, 1))
		return;
	if (call->waiter)
		weft__sys->unpark(&hand->run->bell);
	while ((ticket = call->tickets)) {
		call->tickets = ticket->next;
		rc = send_ticket(ticket);
		if (rc < 0)
			come_to_nothing(hand, ticket, rc);
	}
}

void
weft__dag_queue(struct weft__dag_hand *hand, struct weft__dag_list *steps)
{
	weft_dag_run *run = hand->run;
	struct call call = { 0 };
	struct weft__dag_step *step;

	weft__lock_take(&run->lock);
	while ((step = weft__dag_pop(steps)))
		put(&run->lanes[step->node->place], step);
	choose(&run->lanes[WEFT_DAG_CPU], &call);
	choose(&run->lanes[WEFT_DAG_BLOCKING], &call);
	if (run->lanes[WEFT_DAG_LOOP].queued > 0)
		weft__dag_poke(run, WEFT__DAG_POKE_LOOK);
	weft__lock_give(&run->lock);
	ring(hand, &call);
}

/* --- hands --------------------------------------------------------------- */

/* Others wait for this thread of a pool, and it has been here for long: it goes to the end
 * of the queue, if there is room for that. */
static bool
goes_behind(struct weft__dag_hand *hand, const struct weft__dag_lane *lane)
{
	if (!hand->ticket || ++hand->rounds < ROUNDS_MAX || lane->queued == 0
	    || lane->run->waiter_parked || weft__load(&lane->pool->places, WEFT__RELAXED) == 0
	    || !weft__pool_reserve(lane->pool))
		return false;
	hand->ticket->again = true;
	return true;
}

/* Outside of the lock, by a hand that goes on, or leaves. */
static void
ring_apart(weft_dag_run *run, struct call *call)
{
	struct weft__dag_hand hand = { .run = run, .place = -1 };

	ring(&hand, call);
	weft__dag_let_go(&hand);
}

/* Take steps out of the lane; false if the hand has left it. */
static bool
take(struct weft__dag_hand *hand)
{
	struct weft__dag_lane *lane = &hand->run->lanes[hand->place];
	struct call call = { 0 };
	uint64_t cost = 0;
	uint32_t count = 0, max = hand->place == WEFT_DAG_CPU ? BATCH_MAX : 1;
	struct weft__dag_step *step;
	bool behind;

	weft__lock_take(&hand->run->lock);
	behind = goes_behind(hand, lane);
	while (!behind && count < max && cost < WEFT__DAG_BATCH_NS && (step = get(lane))) {
		weft__dag_append(&hand->taken, step);
		cost += weft__dag_cost(step);
		count++;
	}
	if (count == 0 && !behind) {
		lane->active--;
		choose(lane, &call);
	}
	weft__lock_give(&hand->run->lock);
	if (call.tickets || call.waiter)
		ring_apart(hand->run, &call);
	return count > 0;
}

/* It will be long: what it has taken goes back, and somebody else is called for it. */
static void
begin_long(struct weft__dag_hand *hand)
{
	struct weft__dag_lane *lane = &hand->run->lanes[WEFT_DAG_CPU];
	struct call call = { 0 };
	struct weft__dag_step *step;

	weft__lock_take(&hand->run->lock);
	lane->busy++;
	while ((step = weft__dag_pop(&hand->taken)))
		put(lane, step);
	choose(lane, &call);
	weft__lock_give(&hand->run->lock);
	if (call.tickets || call.waiter)
		ring_apart(hand->run, &call);
}

static void
end_long(struct weft__dag_hand *hand)
{
	weft__lock_take(&hand->run->lock);
	hand->run->lanes[WEFT_DAG_CPU].busy--;
	weft__lock_give(&hand->run->lock);
}

static void
run_step(struct weft__dag_hand *hand, struct weft__dag_step *step)
{
	bool is_long = hand->place == WEFT_DAG_CPU
	               && (weft__dag_cost(step) > WAKE_NS || (step->node->flags & WEFT__DAG_TIMED));

	if (is_long)
		begin_long(hand);
	weft__dag_run_step(hand, step);
	if (is_long)
		end_long(hand);
}

static struct weft__dag_step *
next_step(struct weft__dag_hand *hand)
{
	struct weft__dag_step *step = hand->next;

	hand->next = NULL;
	if (!step)
		step = weft__dag_pop(&hand->taken);
	if (!hand->taken.first)
		hand->kept_ns = 0;
	return step;
}

static bool
is_over(const weft_dag_run *run)
{
	return weft__load(&run->state, WEFT__RELAXED) == WEFT__DAG_OVER;
}

/* What is ready is there for others before a step is run, however long that is. */
void
weft__dag_work(struct weft__dag_hand *hand)
{
	struct weft__dag_step *step;

	for (;;) {
		if (hand->own.first || hand->ready.first)
			weft__dag_settle(hand);
		if (hand->is_waiter && !hand->run->loop)
			weft__dag_tell_news(hand->run);
		step = next_step(hand);
		if (step) {
			run_step(hand, step);
			continue;
		}
		weft__dag_let_go(hand);
		if (!hand->next && !hand->taken.first && (is_over(hand->run) || !take(hand)))
			return;
	}
}

/* A thread of a pool has come.  What runs there may itself wait for another run. */
static int
help(void *arg)
{
	struct weft__dag_ticket *ticket = arg;
	struct weft__dag_lane *lane = ticket->lane;
	struct weft__thread *self = weft__thread_self();
	struct weft__dag_hand hand = { .run = lane->run,
		                       .ticket = ticket,
		                       .place = (int)(lane - lane->run->lanes) };

	self->canceled = weft__dag_canceled;
	self->canceled_arg = &hand;
	weft__dag_work(&hand);
	self->canceled = NULL;
	return 0;
}

/* The pool has let go of the ticket. */
static void
on_helped(weft_op *op, int64_t result, void *arg)
{
	struct weft__dag_ticket *ticket = arg;
	struct weft__dag_lane *lane = ticket->lane;
	weft_dag_run *run = lane->run;
	struct weft__dag_hand hand = { .run = run, .place = -1 };
	struct call call = { 0 };

	(void)op;
	(void)result;
	if (ticket->again) { /* it has a place, and this thread is there */
		prepare_ticket(ticket);
		(void)weft__pool_push(lane->pool, &ticket->op);
		return;
	}
	weft__lock_take(&run->lock);
	ticket->next = lane->free_tickets;
	lane->free_tickets = ticket;
	choose(lane, &call); /* invariant 3 */
	weft__lock_give(&run->lock);
	ring(&hand, &call);
	weft__dag_let_go(&hand);
	weft__dag_run_unref(run);
}
