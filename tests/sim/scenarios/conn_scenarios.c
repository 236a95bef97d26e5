/* conn_scenarios.c - connections that fail, are closed under their waiters, and whose
 * descriptor numbers are reused.
 *
 *   1. A callback is for the descriptor that it was started on, never for the next one with the
 *      same number.
 *   2. A connect succeeds only if there is a listener.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

static bool
is_refusal(int rc)
{
	return rc == WEFT_ENOMEM || rc == WEFT_ESHUTDOWN;
}

/* --- connects with deadlines ------------------------------------------ */

enum { CALLS = 8, CALL_ROUNDS = 12 };

struct call {
	weft_op op, close;
	struct once once, close_once;
	struct sockaddr_in name;
	int fd, left;
};

static struct {
	struct host host;
	struct call calls[CALLS];
	int listener;
	struct sockaddr_in open, shut; /* with and without a listener */
	weft__a32 done, over;
} dial;

static void dial_again(struct call *call);

static void
on_call_closed(weft_op *op, int64_t result, void *arg)
{
	struct call *call = arg;

	(void)op;
	once_end(&call->close_once);
	result_check(OP_CLOSE, result, 0);
	dial_again(call);
}

static void
on_dialled(weft_op *op, int64_t result, void *arg)
{
	struct call *call = arg;

	sim_check(!op->pending && !op->more);
	once_end(&call->once);
	result_check(OP_CONNECT, result, 0);
	if (call->name.sin_port == dial.shut.sin_port)
		sim_check(result < 0);
	sim_check(weft_op_close(&call->close, call->fd) == 0);
	once_begin(&call->close_once);
}

static void
dial_again(struct call *call)
{
	uint64_t due_ns;
	int rc = -1;

	while (call->left > 0 && rc < 0) {
		call->left--;
		call->fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
		if (call->fd < 0)
			continue;
		call->name = sim_random_below(3) ? dial.open : dial.shut;
		due_ns = sim_random_below(8) == 0 ? WEFT_NEVER
		                                  : weft_after(sim_random_below(
							  UINT64_C(1) << sim_random_below(31)));
		rc = weft_op_connect(&call->op, call->fd, (struct sockaddr *)&call->name,
		                     sizeof(call->name), due_ns);
		sim_check(rc == 0 || is_refusal(rc));
		if (rc < 0)
			(void)weft__sys->close(call->fd);
	}
	if (rc == 0)
		once_begin(&call->once);
	else
		count_up(&dial.done);
}

static void
begin_dial(void *arg)
{
	(void)arg;
	for (int i = 0; i < CALLS; i++) {
		struct call *call = &dial.calls[i];

		call->left = CALL_ROUNDS;
		sim_check(weft_op_init(&call->op, NULL, on_dialled, call) == 0);
		sim_check(weft_op_init(&call->close, NULL, on_call_closed, call) == 0);
		dial_again(call);
	}
}

/* Accept occasionally, so that the queue is full at times. */
static void
answer_calls(void *arg)
{
	(void)arg;
	while (!weft__load(&dial.over, WEFT__ACQUIRE)) {
		int fd = weft__sys->accept(dial.listener);

		if (fd >= 0)
			(void)weft__sys->close(fd);
		else
			(void)peer_wait(dial.listener, POLLIN, WEFT_S);
	}
}

static void
run_connect(void *arg)
{
	uint64_t thread;
	int fd;

	(void)arg;
	memset(&dial, 0, sizeof(dial));
	dial.listener = peer_listen(&dial.open, 1 + (int)sim_random_below(3));
	fd = peer_listen(&dial.shut, 1);
	(void)weft__sys->close(fd);
	host_make(&dial.host);
	host_run(&dial.host);
	thread = thread_start("answerer", answer_calls, NULL);
	host_call(&dial.host, begin_dial, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (14 + sim_random_below(16))));
	sim_heal();
	while (count_of(&dial.done) < CALLS)
		pause_ns(100 * WEFT_MS); /* some take minutes to fail */
	host_end(&dial.host);
	weft__store(&dial.over, 1, WEFT__RELEASE);
	thread_join(thread);
	for (int i = 0; i < CALLS; i++) {
		once_check(&dial.calls[i].once);
		once_check(&dial.calls[i].close_once);
	}
	(void)weft__sys->close(dial.listener);
}

const struct sim_scenario sim_scenario_connect = { .name = "fd_connect", .run = run_connect };

/* --- closing under waiters -------------------------------------------- */

enum { LINES = 3, GENERATIONS = 100 };

/* A socket pair.  Every byte sent through it is its tag. */
struct line {
	weft_op recv, close;
	weft_watch watch;
	struct once recv_once, close_once;
	unsigned char tag, buf[8];
	int ends[2]; /* the second is the peer's */
	bool watched;
};

static struct {
	struct host host;
	struct line lines[LINES];
	weft_timer timer;
	unsigned char tags;
	int left;
	weft__a32 done;
} wires;

static void
check_bytes(const struct line *line, const unsigned char *buf, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		owner_check(line->tag, buf[i]);
}

static void
on_line_watch(weft_watch *watch, int what, void *arg)
{
	struct line *line = arg;
	int64_t rc;

	sim_check(watch == &line->watch && line->watched);
	if (what == WEFT_ESHUTDOWN) {
		line->watched = false;
		return;
	}
	rc = weft__sys->recv(line->ends[0], line->buf, sizeof(line->buf), 0);
	check_bytes(line, line->buf, rc);
	if (rc == 0) { /* the end would be reported forever */
		sim_check(weft_watch_stop(watch) == 1);
		line->watched = false;
	}
}

static void
wait_on_line(struct line *line)
{
	int rc;

	if (line->watched || once_is_open(&line->recv_once))
		return;
	if (sim_random_below(2)) {
		rc = weft_watch_start(NULL, &line->watch, line->ends[0], WEFT_READABLE,
		                      on_line_watch, line);
		line->watched = rc == 0;
		return;
	}
	rc = weft_op_recv(&line->recv, line->ends[0], line->buf, sizeof(line->buf), 0, WEFT_NEVER);
	sim_check(rc == 0 || is_refusal(rc));
	if (rc == 0)
		once_begin(&line->recv_once);
}

static void
on_line_recv(weft_op *op, int64_t result, void *arg)
{
	struct line *line = arg;

	(void)op;
	once_end(&line->recv_once);
	result_check(OP_RECV, result, sizeof(line->buf));
	check_bytes(line, line->buf, result);
	if (!once_is_open(&line->close_once) && result > 0)
		wait_on_line(line);
}

/* Gets the lowest free numbers, which were just closed. */
static void
open_line(struct line *line)
{
	while (sim_socketpair(line->ends) < 0)
		continue;
	line->tag = ++wires.tags;
	wait_on_line(line);
}

static void
on_line_closed(weft_op *op, int64_t result, void *arg)
{
	struct line *line = arg;

	(void)op;
	once_end(&line->close_once);
	result_check(OP_CLOSE, result, 0);
	once_check(&line->recv_once);
	(void)weft__sys->close(line->ends[1]);
	open_line(line);
}

static void
close_line(struct line *line)
{
	int rc;

	if (once_is_open(&line->close_once))
		return;
	/* Without the library's knowledge, if there is only a watch. */
	if (!once_is_open(&line->recv_once) && sim_random_below(2)) {
		(void)weft__sys->close(line->ends[0]);
		if (line->watched)
			sim_check(weft_watch_stop(&line->watch) == 1);
		line->watched = false;
		(void)weft__sys->close(line->ends[1]);
		open_line(line);
		return;
	}
	rc = weft_op_close(&line->close, line->ends[0]);
	sim_check(rc == 0);
	once_begin(&line->close_once);
}

/* Close; wait again; hang up; or send the tag. */
static void
act_on_line(weft_timer *timer, void *arg)
{
	struct line *line = &wires.lines[sim_random_below(LINES)];
	unsigned char tags[3] = { line->tag, line->tag, line->tag };

	(void)arg;
	if (once_is_open(&line->close_once))
		return;
	switch (sim_random_below(4)) {
	case 0:
		close_line(line);
		if (--wires.left == 0) {
			(void)weft_timer_stop(timer);
			count_up(&wires.done);
		}
		break;
	case 1:
		wait_on_line(line);
		break;
	case 2:
		if (sim_random_below(4) == 0)
			(void)weft__sys->shutdown(line->ends[1], SHUT_RDWR);
		break;
	default:
		(void)weft__sys->send(line->ends[1], tags, sizeof(tags), 0);
		break;
	}
}

static void
begin_wires(void *arg)
{
	(void)arg;
	for (int i = 0; i < LINES; i++) {
		struct line *line = &wires.lines[i];

		sim_check(weft_op_init(&line->recv, NULL, on_line_recv, line) == 0);
		sim_check(weft_op_init(&line->close, NULL, on_line_closed, line) == 0);
		open_line(line);
	}
	while (weft_timer_start(NULL, &wires.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(10 * WEFT_US), act_on_line, NULL)
	       == WEFT_ENOMEM)
		continue;
}

static void
run_reuse(void *arg)
{
	(void)arg;
	memset(&wires, 0, sizeof(wires));
	wires.left = GENERATIONS;
	host_make(&wires.host);
	host_run(&wires.host);
	host_call(&wires.host, begin_wires, NULL);
	pause_ns(sim_random_below(20 * WEFT_MS));
	sim_heal();
	await_count(&wires.done, 1);
	host_end(&wires.host);
	for (int i = 0; i < LINES; i++) {
		once_check(&wires.lines[i].recv_once);
		once_check(&wires.lines[i].close_once);
		sim_check(!wires.lines[i].watched);
		(void)weft__sys->close(wires.lines[i].ends[0]);
		(void)weft__sys->close(wires.lines[i].ends[1]);
	}
}

const struct sim_scenario sim_scenario_reuse = { .name = "fd_reuse", .run = run_reuse };
