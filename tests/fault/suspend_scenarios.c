/* suspend_scenarios.c - scenarios for time, descriptors, ops, other threadlets, scopes, and the
 * end.
 *
 * A threadlet that is interrupted repeats the call, now undisturbed.  A threadlet that must end
 * checks that every later call returns the same error, releases what it holds, and returns.  No
 * other threadlet may be left waiting because of that: a threadlet that ends shuts its end of a
 * connection down.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/sys.h"
#include "fault.h"
#include "suspend.h"
#include "threadlet/threadlet.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum went
how(int64_t rc, int64_t want)
{
	if (went_well(rc, want))
		return WELL;
	if (rc == WEFT_EINTR)
		return AGAIN;
	if (rc == WEFT_ESHUTDOWN) /* its object was closed; the threadlet itself is not canceled */
		return DISTURBED;
	EXPECT(weft_yield() == rc);
	EXPECT(weft_sleep_until(weft_after(SHORT_NS)) == rc);
	return DISTURBED;
}

int
nap(int times)
{
	enum went went = WELL;

	while (times > 0 && went != DISTURBED) {
		went = how(weft_sleep_until(weft_after(SHORT_NS)), 0);
		times -= went == WELL;
	}
	return went == DISTURBED ? weft_check_canceled() : 0;
}

static int
run_sleep(void *arg)
{
	(void)arg;
	if (nap(3) < 0)
		return WEFT_ECANCELED;
	for (int i = 0; i < 3; i++)
		if (how(weft_yield(), 0) == DISTURBED)
			break;
	return 0;
}

/* --- descriptors -------------------------------------------------------- */

struct player {
	int fd;
	bool begins;
};

/* Wait for readiness in a direction.  True if the descriptor is ready. */
static bool
await(int fd, uint32_t events)
{
	enum went went;
	int rc;

	do {
		rc = weft_wait_fd(fd, events, WEFT_NEVER);
		went = how(rc > 0 ? 1 : rc, 1);
	} while (went == AGAIN);
	return went == WELL;
}

static int
play(void *arg)
{
	const struct player *player = arg;
	char byte = 'b';

	if (player->begins)
		EXPECT(write(player->fd, &byte, 1) == 1);
	for (int i = 0; i < 3; i++) {
		if (!await(player->fd, WEFT_READABLE) || read(player->fd, &byte, 1) <= 0)
			break;
		if (!await(player->fd, WEFT_WRITABLE)
		    || send(player->fd, &byte, 1, MSG_NOSIGNAL) < 0)
			break;
	}
	(void)shutdown(player->fd, SHUT_RDWR);
	return 0;
}

static int
run_fd(void *arg)
{
	struct stage *stage = arg;
	struct player players[2] = { { stage->fds[0], true }, { stage->fds[1], false } };
	weft_scope scope;

	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < 2; i++)
		(void)start_in(&scope, NULL, play, &players[i]);
	EXPECT(weft_scope_close(&scope) == 0);
	return 0;
}

/* A wait that its own deadline ends. */
static int
run_fd_late(void *arg)
{
	struct stage *stage = arg;
	int rc;

	for (int i = 0; i < 2; i++) {
		rc = weft_wait_fd(stage->fds[i], WEFT_READABLE, weft_after(SHORT_NS));
		if (how(rc, WEFT_ETIMEDOUT) == DISTURBED)
			return rc;
	}
	return 0;
}

/* --- ops ---------------------------------------------------------------- */

static int
send_soon(void *arg)
{
	struct stage *stage = arg;
	enum went went = DISTURBED;
	weft_op op;

	if (nap(1) == 0)
		do {
			EXPECT(weft_op_init(&op, NULL, NULL, NULL) == 0);
			EXPECT(weft_op_send(&op, stage->fds[1], "s", 1, 0, WEFT_NEVER) == 0);
			went = how(weft_op_wait(&op, WEFT_NEVER), 1);
			EXPECT(!op.pending);
		} while (went == AGAIN);
	(void)shutdown(stage->fds[1], SHUT_WR);
	return 0;
}

/* The buffer and the op are on the stack.  They must not be written to after the wait. */
static int
receive(const struct stage *stage, char *byte)
{
	int64_t rc;
	weft_op op;

	do {
		EXPECT(weft_op_init(&op, NULL, NULL, NULL) == 0);
		EXPECT(weft_op_recv(&op, stage->fds[0], byte, 1, 0, WEFT_NEVER) == 0);
		rc = weft_op_wait(&op, WEFT_NEVER);
		EXPECT(!op.pending);
	} while (how(rc < 0 ? rc : 1, 1) == AGAIN);
	return (int)rc;
}

static int
run_op(void *arg)
{
	struct stage *stage = arg;
	weft_scope scope;
	char byte = 0;

	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, send_soon, stage);
	if (receive(stage, &byte) == 1) {
		EXPECT(byte == 's');
		(void)receive(stage, &byte); /* the end of the stream */
	}
	EXPECT(weft_scope_close(&scope) == 0);
	return 0;
}

/* --- joining ------------------------------------------------------------ */

struct worker {
	weft_threadlet id;
	int number, returned;
	bool ended;
};

static int
work(void *arg)
{
	struct worker *worker = arg;
	int rc = nap(1 + worker->number % 2);

	worker->returned = rc < 0 ? rc : 100 + worker->number;
	worker->ended = true;
	return worker->returned;
}

/* Join it.  False if the caller must end. */
static bool
join(const struct worker *worker)
{
	enum went went = WELL;
	int out = 0;

	if (worker->id <= 0)
		return true;
	do {
		went = how(weft_join(worker->id, &out, WEFT_NEVER), 0);
		if (went == WELL)
			EXPECT(worker->ended && out == worker->returned);
		else
			EXPECT(out == 0);
	} while (went == AGAIN);
	return went == WELL;
}

static int
join_too(void *arg)
{
	(void)join(arg);
	return 0;
}

/* If the workers run on another loop, their ends are reported by messages between the loops. */
static int
run_join(void *arg)
{
	const struct stage *stage = arg;
	struct worker workers[3];
	weft_scope scope;

	memset(workers, 0, sizeof(workers));
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < 3; i++) {
		workers[i].number = i;
		workers[i].id = start_in(&scope, stage->there, work, &workers[i]);
	}
	(void)start_in(&scope, NULL, join_too, &workers[1]);
	for (int i = 0; i < 3 && join(&workers[i]); i++)
		continue;
	EXPECT(weft_scope_close(&scope) == 0);
	for (int i = 0; i < 3; i++)
		EXPECT(workers[i].ended == (workers[i].id > 0));
	return 0;
}

/* --- scopes ------------------------------------------------------------- */

static int
fail_late(void *arg)
{
	int rc;

	(void)arg;
	(void)nap(2);
	rc = weft_check_canceled(); /* its failure is ignored then */
	return rc < 0 ? rc : WEFT_EPROTO;
}

static int
sleep_long(void *arg)
{
	int rc, *ended = arg;

	do
		rc = weft_sleep_until(WEFT_NEVER);
	while (rc == WEFT_EINTR);
	EXPECT(rc == WEFT_ECANCELED || rc == WEFT_ETIMEDOUT);
	EXPECT(weft_check_canceled() == rc && weft_yield() == rc);
	++*ended;
	return rc;
}

/* Wait for the threadlet that fails.  If it was canceled first, no threadlet has failed the
 * scope. */
static void
await_failure(weft_scope *scope, weft_threadlet id)
{
	enum went went;
	int out = 0;

	do
		went = id > 0 ? how(weft_join(id, &out, WEFT_NEVER), 0) : DISTURBED;
	while (went == AGAIN);
	if (out != WEFT_EPROTO)
		weft_scope_cancel(scope);
}

/* The first failure cancels the other threadlet, in a scope inside another one whose child
 * sleeps. */
static int
run_nested(void *arg)
{
	weft_scope outer, inner;
	int ended = 0, started, rc;

	(void)arg;
	EXPECT(weft_scope_open(&outer, 0, WEFT_NEVER) == 0);
	(void)start_in(&outer, NULL, run_sleep, NULL);
	EXPECT(weft_scope_open(&inner, WEFT_FAIL_FAST, WEFT_NEVER) == 0);
	started = start_in(&inner, NULL, sleep_long, &ended) > 0;
	await_failure(&inner, start_in(&inner, NULL, fail_late, NULL));
	rc = weft_scope_close(&inner);
	EXPECT(rc == WEFT_EPROTO || rc == 0);
	EXPECT(rc == inner.error);
	if (rc == 0)
		(void)how(weft_yield(), 0); /* a threadlet was disturbed */
	EXPECT(ended == started);
	EXPECT(weft_scope_close(&outer) == 0);
	return 0;
}

static int
run_deadline(void *arg)
{
	weft_scope scope;
	int ended = 0, started, rc;

	(void)arg;
	EXPECT(weft_scope_open(&scope, 0, weft_after(3600 * WEFT_S)) == 0);
	started = start_in(&scope, NULL, sleep_long, &ended) > 0;
	rc = weft_scope_set_deadline(&scope, weft_after(2 * SHORT_NS));
	EXPECT(rc == 0 || rc == WEFT_EALREADY);
	do
		rc = weft_sleep_until(WEFT_NEVER);
	while (rc == WEFT_EINTR);
	EXPECT(rc == WEFT_ETIMEDOUT || rc == WEFT_ECANCELED);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(ended == started);
	rc = weft_yield();
	(void)how(rc, 0);
	return 0;
}

static int
nap_shielded(void *arg)
{
	int rc;

	(void)arg;
	do
		rc = weft_sleep_until(weft_after(SHORT_NS));
	while (!went_well_shielded(rc, 0));
	return 0;
}

/* Runs as a threadlet: a disturbance of its owner does not affect it. */
static int
nap_inside(void *arg)
{
	(void)arg;
	if (nap(1) < 0)
		EXPECT(weft_self() == target());
	return 0;
}

static int
run_shield(void *arg)
{
	weft_scope shield;
	int napped = nap(1);

	EXPECT(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER) == 0);
	EXPECT(weft_check_canceled() == 0);
	(void)start_in(&shield, NULL, nap_inside, NULL);
	(void)nap_shielded(arg);
	EXPECT(weft_scope_close(&shield) == 0);
	if (napped < 0)
		EXPECT(weft_yield() == napped);
	else
		(void)nap(1);
	return 0;
}

/* The end of the threadlet closes its scopes and waits for its children. */
static int
leave_open(void *arg)
{
	weft_scope scope, inner;

	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	EXPECT(weft_scope_open(&inner, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, work, arg);
	(void)start_in(&inner, NULL, run_sleep, NULL);
	(void)nap(1);
	return 0;
}

static int
run_left(void *arg)
{
	struct worker worker = { .number = 1 };
	weft_scope scope;

	(void)arg;
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, leave_open, &worker);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(worker.ended || worker.returned == 0);
	return 0;
}

/* --- cleanups ----------------------------------------------------------- */

struct block {
	struct weft__node node;
	int *freed;
};

static void
free_block(void *arg)
{
	struct block *block = arg;

	(void)nap_shielded(NULL);
	++*block->freed;
	weft__sys->release(block);
}

static int
hold_blocks(void *arg)
{
	for (int i = 0; i < 3; i++) {
		struct block *block = weft__sys->alloc(sizeof(*block));

		*block = (struct block){ { .fn = free_block, .arg = block }, arg };
		weft__cleanup_push(&block->node);
		if (nap(1) < 0)
			break;
	}
	return 0;
}

static int
run_cleanup(void *arg)
{
	weft_scope scope;
	int freed = 0;

	(void)arg;
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	if (start_in(&scope, NULL, hold_blocks, &freed) < 0)
		freed = 1;
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(freed >= 1 && freed <= 3);
	return 0;
}

/* --- the loop stops ----------------------------------------------------- */

static int
run_stop(void *arg)
{
	weft_scope scope, shield;
	int ended = 0, started, rc;

	(void)arg;
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	started = start_in(&scope, NULL, sleep_long, &ended) > 0;
	(void)nap(1);
	weft_loop_shutdown(NULL);
	do
		rc = weft_sleep_until(WEFT_NEVER);
	while (rc == WEFT_EINTR);
	EXPECT(rc == WEFT_ECANCELED || rc == WEFT_ETIMEDOUT);
	EXPECT(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER) == 0);
	(void)nap_shielded(NULL);
	EXPECT(weft_scope_close(&shield) == 0);
	EXPECT(weft_yield() == rc);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(ended == started);
	return 0;
}

/* --- planted ------------------------------------------------------------ */

/* Leaks its memory when it must end.  The array keeps it reachable, so LeakSanitizer reports
 * nothing. */
static int
plant_leak(void *arg)
{
	static void *lost[32];
	static unsigned count;
	void *mem = weft__sys->alloc(10);

	(void)arg;
	lost[count++ % COUNT(lost)] = mem;
	if (nap(1) < 0)
		return 0;
	weft__sys->release(mem);
	return 0;
}

/* Leaks a descriptor when it must end. */
static int
plant_fd(void *arg)
{
	int fd = dup(((struct stage *)arg)->fds[0]);

	if (nap(1) < 0)
		return 0;
	fault_close(fd);
	return 0;
}

/* Reports another error than the one that the call returned. */
static int
plant_outcome(void *arg)
{
	int rc = weft_sleep_until(weft_after(SHORT_NS));

	(void)arg;
	(void)went_well(rc < 0 ? WEFT_EPROTO : rc, 0);
	return 0;
}

/* Must end, and continues as if only one call had failed. */
static int
plant_deaf(void *arg)
{
	int rc = weft_sleep_until(weft_after(SHORT_NS));

	(void)arg;
	if (!went_well(rc, 0))
		EXPECT(weft_yield() == 0);
	return 0;
}

/* --- all of them -------------------------------------------------------- */

const struct suspend_scenario suspend_scenarios[] = {
	{ "sleep", run_sleep, 6, false },
	{ "fd", run_fd, 8, false },
	{ "fd_late", run_fd_late, 2, false },
	{ "op", run_op, 4, false },
	{ "join", run_join, 8, false },
	{ "join_there", run_join, 8, true },
	{ "nested", run_nested, 8, false },
	{ "deadline", run_deadline, 4, false },
	{ "shield", run_shield, 4, false },
	{ "left", run_left, 6, false },
	{ "cleanup", run_cleanup, 7, false },
	{ "stop", run_stop, 5, false },
	{ "chan", run_chan, 14, false },
	{ "chan_there", run_chan, 14, true },
	{ "buffered", run_chan_buffered, 10, false },
	{ "buffered_there", run_chan_buffered, 10, true },
	{ "close", run_chan_close, 7, false },
	{ "close_there", run_chan_close, 7, true },
	{ "select", run_select, 6, false },
	{ "select_there", run_select, 6, true },
	{ "select_late", run_select_late, 2, false },
	{ "mutex", run_mutex, 12, false },
	{ "mutex_there", run_mutex, 12, true },
	{ "cond", run_cond, 14, false },
	{ "cond_there", run_cond, 14, true },
	{ "sem", run_sem, 12, false },
	{ "sem_there", run_sem, 12, true },
	{ "group", run_group, 6, false },
	{ "group_there", run_group, 6, true },
	{ "event", run_event, 6, false },
	{ "event_there", run_event, 6, true },
	{ "work", run_work, 5, false },
	{ "file", run_file, 4, false },
	{ "file_open", run_file_open, 3, false },
	{ "dgram", run_dgram, 6, false },
	{ "dgram_close", run_dgram_close, 4, false },
	{ "stream_read", run_stream_read, 8, false },
	{ "stream_write", run_stream_write, 6, false },
	{ "stream_file", run_stream_file, 5, false },
	{ "stream_pass", run_stream_pass, 7, false },
	{ "stream_close", run_stream_close, 5, false },
	{ "connect", run_connect, 4, false },
	{ "tls", run_tls, HAS_TLS ? 12 : 0, false },
	{ "tls_connect", run_tls_connect, HAS_TLS ? 8 : 0, false },
	{ "fetch", run_fetch, 12, false },
	{ "http", run_http, 15, false },
	{ "redis", run_redis, 12, false },
	{ "redis_there", run_redis, 12, true },
};
const size_t suspend_scenario_count = COUNT(suspend_scenarios);

const struct suspend_scenario suspend_plants[] = {
	{ "leak", plant_leak, 1, false },          { "forgets_fd", plant_fd, 1, false },
	{ "outcome", plant_outcome, 1, false },    { "deaf", plant_deaf, 1, false },
	{ "loses_value", plant_value, 1, false },  { "keeps_lock", plant_lock, 1, false },
	{ "hides_close", plant_closed, 1, false },
};
const size_t suspend_plant_count = COUNT(suspend_plants);
