/* op_scenarios.c - ops that are canceled, time out, are finished by other threads, or are
 * refused for lack of memory.
 *
 *   1. An op that was started finishes once; one that was refused, never.
 *   2. Bytes that were received are reported, whatever requested the end of the op.
 */
#include <poll.h>
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

static uint64_t
draw_deadline(void)
{
	switch (sim_random_below(6)) {
	case 0:
		return WEFT_NOWAIT;
	case 1:
	case 2:
		return weft_after(sim_random_below(500) * WEFT_US);
	default:
		return WEFT_NEVER;
	}
}

static bool
is_refusal(int rc)
{
	return rc == WEFT_ENOMEM || rc == WEFT_ESHUTDOWN;
}

/* --- custom ops, finished by other threads ---------------------------- */

enum { REQUESTS = 10, REPLIERS = 2, ACTS = 200 };
enum { IDLE, OPEN, CLAIMED };

struct request {
	weft_op op;
	weft_node node; /* for an answer that comes later */
	struct once once;
	weft__a32 word; /* IDLE, OPEN or CLAIMED */
	int64_t result; /* set by the thread that claimed it */
};

static struct {
	struct host host;
	struct request requests[REQUESTS];
	weft_timer timer;
	int acts;
	weft__a32 done, over;
	bool ended;
} own;

static bool
claim(struct request *request)
{
	uint32_t word = OPEN;

	return weft__cas(&request->word, &word, CLAIMED, WEFT__ACQ_REL);
}

static void
answer(struct request *request, int64_t result)
{
	request->result = result;
	sim_check(weft_op_finish(&request->op, result) == 0);
}

static void
answer_later(void *arg)
{
	struct request *request = arg;

	answer(request, request->result);
}

static void
on_cancel(weft_op *op, int why, void *arg)
{
	struct request *request = arg;

	sim_check(op == &request->op && op->pending);
	sim_check(why == WEFT_ECANCELED || why == WEFT_ETIMEDOUT || why == WEFT_ESHUTDOWN);
	if (!claim(request))
		return;
	request->result = why;
	request->node.fn = answer_later;
	request->node.arg = request;
	if (sim_random_below(3) || weft_loop_post_node(NULL, &request->node) < 0)
		answer(request, why);
}

static void
begin_request(struct request *request)
{
	int rc = weft_op_begin(&request->op, on_cancel, request, draw_deadline());

	sim_check(rc == 0 || is_refusal(rc));
	if (rc < 0)
		return;
	once_begin(&request->once);
	weft__store(&request->word, OPEN, WEFT__RELEASE);
}

static void
on_request(weft_op *op, int64_t result, void *arg)
{
	struct request *request = arg;

	if (own.ended)
		sim_fail("runs after the end");
	sim_check(op == &request->op && !op->pending);
	once_end(&request->once);
	sim_check(weft__load(&request->word, WEFT__ACQUIRE) == CLAIMED);
	sim_check(result == request->result);
	weft__store(&request->word, IDLE, WEFT__RELAXED);
	if (own.acts > 0 && sim_random_below(2))
		begin_request(request);
}

static void
act_on_request(weft_timer *timer, void *arg)
{
	struct request *request = &own.requests[sim_random_below(REQUESTS)];

	(void)arg;
	if (request->op.pending)
		weft_op_cancel(&request->op);
	else
		begin_request(request);
	if (--own.acts == 0) {
		(void)weft_timer_stop(timer);
		count_up(&own.done);
	}
}

static void
begin_own(void *arg)
{
	(void)arg;
	for (int i = 0; i < REQUESTS; i++) {
		struct request *request = &own.requests[i];

		sim_check(weft_op_init(&request->op, NULL, on_request, request) == 0);
		begin_request(request);
	}
	while (weft_timer_start(NULL, &own.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(40 * WEFT_US), act_on_request, NULL)
	       == WEFT_ENOMEM)
		continue;
}

static void
reply(void *arg)
{
	(void)arg;
	while (!weft__load(&own.over, WEFT__ACQUIRE)) {
		uint64_t index = sim_random_below(REQUESTS);
		struct request *request = &own.requests[index];

		if (claim(request)) {
			if (sim_random_below(2))
				pause_briefly();
			answer(request, (int64_t)index);
		}
		pause_ns(sim_random_below(30 * WEFT_US));
	}
}

static void
run_own(void *arg)
{
	uint64_t threads[REPLIERS];

	(void)arg;
	memset(&own, 0, sizeof(own));
	own.acts = ACTS;
	host_make(&own.host);
	host_run(&own.host);
	host_call(&own.host, begin_own, NULL);
	for (int i = 0; i < REPLIERS; i++)
		threads[i] = thread_start("replier", reply, NULL);
	pause_ns(sim_random_below(12 * WEFT_MS));
	sim_heal();
	if (sim_random_below(2))
		await_count(&own.done, 1);
	host_stop(&own.host);
	own.ended = true;
	for (int i = 0; i < REQUESTS; i++)
		once_check(&own.requests[i].once);
	host_free(&own.host); /* a replier may still be inside a call */
	weft__store(&own.over, 1, WEFT__RELEASE);
	for (int i = 0; i < REPLIERS; i++)
		thread_join(threads[i]);
}

const struct sim_scenario sim_scenario_own = { .name = "op_own", .run = run_own };

/* --- cancel at any moment --------------------------------------------- */

enum { SLOTS = 8, PAIRS = 3, CLOSERS = 48, BUF = 512 };

struct slot {
	weft_op op;
	enum op_kind kind;
	struct once once;
	int fd;
	unsigned char buf[BUF];
};

struct closer {
	weft_op op;
	struct once once;
};

static struct {
	struct host host;
	struct slot slots[SLOTS];
	struct closer closers[CLOSERS];
	struct stream in, out; /* bytes of the second pair */
	int pairs[PAIRS][2];
	int listener;
	struct sockaddr_in name;
	weft_timer timer;
	int acts;
	weft__a32 done, over;
} mix;

static void
on_closed(weft_op *op, int64_t result, void *arg)
{
	struct closer *closer = arg;

	sim_check(op == &closer->op);
	once_end(&closer->once);
	result_check(OP_CLOSE, result, 0);
}

/* Close, through the library, a descriptor that it has opened or connected. */
static void
close_fd(int fd)
{
	for (int i = 0; i < CLOSERS; i++) {
		struct closer *closer = &mix.closers[i];

		if (once_is_open(&closer->once))
			continue;
		sim_check(weft_op_init(&closer->op, NULL, on_closed, closer) == 0);
		if (weft_op_close(&closer->op, fd) == 0)
			once_begin(&closer->once);
		return;
	}
	sim_fail("too many closes in flight");
}

static void
take_result(struct slot *slot, int64_t result)
{
	if (slot->kind == OP_ACCEPT && result >= 0)
		close_fd((int)result);
	if (slot->kind == OP_SEND && result > 0)
		stream_sent(&mix.out, (size_t)result);
	if (slot->kind == OP_RECV && result > 0)
		stream_take(&mix.in, slot->buf, (size_t)result);
	if (slot->kind == OP_CONNECT) {
		close_fd(slot->fd);
		slot->fd = -1;
	}
}

static void
on_slot(weft_op *op, int64_t result, void *arg)
{
	struct slot *slot = arg;

	sim_check(op == &slot->op);
	result_check(slot->kind, result, slot->kind == OP_RECV_MULTI ? SIZE_MAX : BUF);
	if (op->more) {
		sim_check(op->pending && result >= 0);
		sim_check(slot->kind == OP_RECV_MULTI || slot->kind == OP_ACCEPT
		          || slot->kind == OP_POLL);
	} else {
		sim_check(!op->pending);
		once_end(&slot->once);
	}
	take_result(slot, result);
	if (mix.acts == 0 && !op->more)
		count_up(&mix.done);
}

/* Connect a new socket; WEFT_ENOMEM if there is none now. */
static int
start_connect(struct slot *slot, uint64_t deadline_ns)
{
	int rc;

	slot->fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	if (slot->fd < 0)
		return WEFT_ENOMEM;
	rc = weft_op_connect(&slot->op, slot->fd, (struct sockaddr *)&mix.name, sizeof(mix.name),
	                     deadline_ns);
	if (rc < 0)
		(void)weft__sys->close(slot->fd);
	return rc;
}

static int
start_slot(struct slot *slot, uint64_t deadline_ns)
{
	weft_op *op = &slot->op;
	uint32_t multi = sim_random_below(2) ? WEFT_MULTI : 0;

	switch (slot->kind) {
	case OP_SLEEP:
		return weft_op_sleep(op, deadline_ns);
	case OP_POLL:
		return weft_op_poll(op, slot->fd,
		                    slot == mix.slots ? WEFT_READABLE | multi : WEFT_WRITABLE,
		                    deadline_ns);
	case OP_RECV:
		return weft_op_recv(op, slot->fd, slot->buf, 1 + sim_random_below(BUF), 0,
		                    deadline_ns);
	case OP_SEND:
		stream_fill(&mix.out, slot->buf, BUF);
		return weft_op_send(op, slot->fd, slot->buf, BUF, 0, deadline_ns);
	case OP_RECV_MULTI:
		return weft_op_recv_multi(op, slot->fd, deadline_ns);
	case OP_ACCEPT:
		return weft_op_accept(op, slot->fd, multi, deadline_ns);
	default:
		return start_connect(slot, deadline_ns);
	}
}

static void
act_on_slot(weft_timer *timer, void *arg)
{
	struct slot *slot = &mix.slots[sim_random_below(SLOTS)];
	int rc = WEFT_EBUSY;

	(void)arg;
	if (slot->op.pending && sim_random_below(2))
		weft_op_cancel(&slot->op);
	else if (!slot->op.pending)
		rc = start_slot(slot, draw_deadline());
	if (rc == 0)
		once_begin(&slot->once);
	sim_check(rc == 0 || rc == WEFT_EBUSY || is_refusal(rc));
	if (--mix.acts == 0)
		(void)weft_timer_stop(timer);
	for (int i = 0; i < SLOTS && mix.acts == 0; i++) {
		weft_op_cancel(&mix.slots[i].op);
		if (!mix.slots[i].op.pending)
			count_up(&mix.done);
	}
}

static void
begin_mix(void *arg)
{
	static const enum op_kind kinds[SLOTS] = {
		OP_POLL, OP_SLEEP, OP_RECV, OP_SEND, OP_POLL, OP_RECV_MULTI, OP_ACCEPT, OP_CONNECT,
	};
	int fds[SLOTS] = { mix.pairs[0][0], -1,
		           mix.pairs[1][0], mix.pairs[1][0],
		           mix.pairs[2][0], mix.pairs[2][0],
		           mix.listener,    -1 };

	(void)arg;
	for (int i = 0; i < SLOTS; i++) {
		mix.slots[i].kind = kinds[i];
		mix.slots[i].fd = fds[i];
		sim_check(weft_op_init(&mix.slots[i].op, NULL, on_slot, &mix.slots[i]) == 0);
	}
	while (weft_timer_start(NULL, &mix.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(60 * WEFT_US), act_on_slot, NULL)
	       == WEFT_ENOMEM)
		continue;
}

/* Send and receive at the other ends; the bytes of the second pair are checked. */
static void
be_peer(void *arg)
{
	unsigned char buf[BUF];

	(void)arg;
	for (int i = 0; i < 300 && !weft__load(&mix.over, WEFT__ACQUIRE); i++) {
		uint64_t pair = sim_random_below(PAIRS);
		int fd = mix.pairs[pair][1];
		size_t size = 1 + sim_random_below(100);
		int64_t rc;

		if (pair == 1)
			stream_fill(&mix.in, buf, size);
		rc = sim_random_below(2) ? weft__sys->send(fd, buf, size, 0) : 0;
		if (rc > 0 && pair == 1)
			stream_sent(&mix.in, (size_t)rc);
		rc = weft__sys->recv(fd, buf, BUF, 0);
		if (rc > 0 && pair == 1)
			stream_take(&mix.out, buf, (size_t)rc);
		if (sim_random_below(200) == 0)
			sim_break(fd);
		pause_ns(sim_random_below(60 * WEFT_US));
	}
}

static void
run_mix(void *arg)
{
	uint64_t peer;

	(void)arg;
	memset(&mix, 0, sizeof(mix));
	mix.acts = 200;
	mix.in.key = sim_random();
	mix.out.key = sim_random();
	for (int i = 0; i < PAIRS; i++)
		peer_pair(mix.pairs[i]);
	mix.listener = peer_listen(&mix.name, 2);
	host_make(&mix.host);
	host_run(&mix.host);
	host_call(&mix.host, begin_mix, NULL);
	peer = thread_start("peer", be_peer, NULL);
	pause_ns(sim_random_below(20 * WEFT_MS));
	sim_heal();
	await_count(&mix.done, SLOTS);
	weft__store(&mix.over, 1, WEFT__RELEASE);
	thread_join(peer);
	host_end(&mix.host);
	for (int i = 0; i < SLOTS; i++)
		once_check(&mix.slots[i].once);
	for (int i = 0; i < CLOSERS; i++)
		once_check(&mix.closers[i].once);
	for (int i = 0; i < 2 * PAIRS; i++)
		(void)weft__sys->close(mix.pairs[i / 2][i % 2]);
	(void)weft__sys->close(mix.listener);
}

const struct sim_scenario sim_scenario_cancel = { .name = "op_cancel", .run = run_mix };
