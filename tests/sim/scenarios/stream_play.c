/* stream_play.c - clients and servers on two loops, over simulated TCP and Unix sockets.
 *
 * A client connects, or makes a pair, and sends the number of its connection.  Then both ends
 * read and write at random, with deadlines, from threadlets or by callbacks.  They are closed
 * by others, interrupted and canceled.
 *
 *   1. What is read is what was written, in order; at the end all of it, unless an error was
 *      reported.
 *   2. A call returns once, with a result that has a cause.
 *   3. A stream that was made is closed, and that is reported, once.
 *   4. All waits are bounded: everything ends by itself.
 */
#include <errno.h>
#include <string.h>
#include <weft/weft.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/stream_play.h"

enum { HOSTS = 2, CLIENTS = 8, CONNS = 40, STEPS = 12, PIECE = 700 };

/* A connection: the bytes of both directions. */
struct conn {
	struct stream up, down;
};

/* One end of a connection. */
struct end {
	struct conn *conn;   /* NULL: its number is not known yet */
	weft_stream *stream; /* NULL: closed */
	bool serves, closed; /* `closed`: by another threadlet */
	bool broken;         /* an error was reported */
	bool mute, shut;     /* writes no more; has half-closed */
	bool helped;         /* a helper may close it */
	bool sends;          /* `op` is pending */
	uint32_t interrupts;
	struct once once;
	weft_op op;
	weft_span span;
	unsigned char out[PIECE];
};

static struct {
	struct host hosts[HOSTS];
	weft_listener *listener;
	char address[WEFT_ADDR_TEXT_MAX];
	bool local; /* the listener has a Unix socket */
	struct conn conns[CONNS];
	struct end ends[2 * CONNS];
	uint32_t conns_used, ends_used;
	weft_threadlet ids[CLIENTS];
	weft__a32 started, ended, clients, over;
	enum spoil spoil;
} play;

/* --- checks --------------------------------------------------------------- */

/* Plant that bug now?  True at most once. */
static bool
spoils(enum spoil spoil)
{
	if (play.spoil != spoil)
		return false;
	play.spoil = SPOIL_NOTHING;
	return true;
}

static struct stream *
flow_of(const struct end *end, bool in)
{
	return end->serves == in ? &end->conn->up : &end->conn->down;
}

static uint64_t
draw_deadline(void)
{
	return weft_after(sim_random_below(UINT64_C(1) << (8 + sim_random_below(17))));
}

static bool
is_of_connection(int64_t rc)
{
	return rc == WEFT_ECONNRESET || rc == WEFT_EPIPE || rc == WEFT_EOF || rc == WEFT_ENOMEM
	       || rc == -ENOBUFS || rc == -ENOTCONN || rc == -EIO || rc == -ENOSPC
	       || rc == -ECONNABORTED || rc == -EMFILE || rc == -ENFILE
	       || rc == -ENODEV; /* of the backend */
}

/* Does the result have a cause?  True if the end can continue. */
static bool
judge(struct end *end, int64_t rc, uint64_t deadline_ns)
{
	if (rc >= 0)
		return !end->closed;
	if (rc == WEFT_ETIMEDOUT) {
		if (weft_check_canceled() != rc)
			time_check(deadline_ns);
	} else if (rc == WEFT_EINTR) {
		sim_check(end->interrupts > 0);
		end->interrupts--;
	} else if (rc == WEFT_ECANCELED) {
		sim_check(weft_check_canceled() == rc);
	} else if (rc == WEFT_ESHUTDOWN) {
		if (!end->closed)
			sim_fail("shut down, and nobody has closed it");
	} else {
		if (!is_of_connection(rc))
			sim_fail("a stream tells %lld", (long long)rc);
		end->broken = true;
	}
	return !end->closed && (rc == WEFT_ETIMEDOUT || rc == WEFT_EINTR);
}

/* The simulated kernel returns these errors only if they are injected. */
static bool
is_injected(int rc)
{
	static const int errors[] = { -EMFILE,        -ENFILE, -ENOBUFS, -ENOMEM,     -EACCES,
		                      -EADDRNOTAVAIL, -ENOSPC, -ENODEV,  -ENETUNREACH };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (rc == errors[i])
			return sim_has_failed(SIM_ERRNO);
	return false;
}

/* Does the failure of a call that makes a stream have a cause?  An accepted peer may be gone
 * before the call returns. */
static void
judge_opening(const char *what, int rc, uint64_t deadline_ns)
{
	bool tcp = !play.local;

	if (rc == 0 || is_injected(rc) || (rc == WEFT_ENOMEM && sim_has_failed(SIM_ALLOC))
	    || (rc == WEFT_ECANCELED && weft_check_canceled() == rc)
	    || (tcp && (rc == WEFT_ECONNRESET || rc == WEFT_EPIPE)))
		return;
	if (tcp && (rc == WEFT_ECONNREFUSED || rc == -EHOSTUNREACH || rc == -ENETUNREACH)
	    && sim_has_failed(SIM_REFUSE))
		return;
	if (rc == WEFT_ETIMEDOUT && deadline_ns != WEFT_NOWAIT)
		time_check(deadline_ns);
	else
		sim_fail("nothing has caused that %s tells %d", what, rc);
}

static void
took(struct end *end, const void *bytes, size_t size)
{
	const char *at = bytes;

	if (size > 1 && spoils(SPOIL_BYTE)) {
		at++;
		size--;
	}
	stream_take(flow_of(end, true), at, size);
}

/* Invariant 1. */
static void
end_told(struct end *end)
{
	const struct stream *flow = flow_of(end, true);

	/* A writer may be about to get a reset. */
	if (!end->broken && !end->sends && flow->taken < flow->made)
		sim_fail("the end comes after %llu of %llu", (unsigned long long)flow->taken,
		         (unsigned long long)flow->made);
}

static struct end *
end_new(weft_stream *stream, bool serves)
{
	struct end *end = &play.ends[play.ends_used++];

	sim_check(play.ends_used <= 2 * CONNS);
	end->stream = stream;
	end->serves = serves;
	once_begin(&end->once);
	count_up(&play.started);
	return end;
}

static void
close_told(struct end *end)
{
	once_end(&end->once);
	if (spoils(SPOIL_CLOSE))
		once_end(&end->once);
}

static void
close_end(struct end *end)
{
	weft_stream *stream = end->stream;

	if (!stream)
		return;
	end->stream = NULL;
	if (sim_random_below(4) == 0)
		weft_stream_reset(stream);
	else
		weft_stream_close(stream);
	close_told(end);
}

/* --- threadlets ----------------------------------------------------------- */

static int64_t
look(struct end *end, size_t size, uint64_t deadline_ns)
{
	const void *seen;
	int64_t n = weft_stream_peek(end->stream, size, &seen, deadline_ns);

	if (n > 0) {
		size = 1 + sim_random_below((uint64_t)n);
		took(end, seen, size);
		sim_check(weft_stream_skip(end->stream, size) == 0);
	}
	return n;
}

/* True if the end can continue. */
static bool
act_read(struct end *end)
{
	uint64_t deadline_ns = draw_deadline(), way = sim_random_below(4);
	size_t size = 1 + sim_random_below(sim_random_below(2) ? 20 : PIECE);
	char delimiter[2] = { (char)(1 + sim_random_below(255)), 0 };
	unsigned char buf[PIECE];
	int64_t n;

	if (way == 0)
		n = look(end, size, deadline_ns);
	else if (way == 1)
		n = weft_stream_read_exact(end->stream, buf, size, deadline_ns);
	else if (way == 2)
		n = weft_stream_read_until(end->stream, delimiter, buf, size, deadline_ns);
	else
		n = weft_stream_read(end->stream, buf, size, deadline_ns);
	if (n > 0 && spoils(SPOIL_ERROR))
		n = WEFT_ESHUTDOWN;
	if (way > 0 && n > 0)
		took(end, buf, (size_t)n);
	if (n > 0 && spoils(SPOIL_END))
		flow_of(end, true)->taken = 0, n = 0;
	if (n == 0 && !end->closed)
		end_told(end);
	if (way == 1 && n == WEFT_EOF && !end->closed)
		return true; /* the rest can still be read */
	if (way == 2 && (n == WEFT_EMSGSIZE || n == WEFT_EOF))
		return !end->closed;
	return judge(end, n, deadline_ns) && n != 0;
}

static int64_t
write_by_op(struct end *end, uint64_t deadline_ns)
{
	weft_op op;
	int rc;

	sim_check(weft_op_init(&op, NULL, NULL, NULL) == 0);
	rc = weft_stream_write_op(end->stream, &end->span, 1, &op, deadline_ns);
	return rc < 0 ? rc : weft_op_wait(&op, WEFT_NEVER);
}

static bool
act_write(struct end *end)
{
	struct stream *flow = flow_of(end, false);
	uint64_t deadline_ns = draw_deadline();
	size_t size = 1 + sim_random_below(PIECE);
	int64_t n;

	if (end->mute)
		return true;
	stream_fill(flow, end->out, size);
	end->span = (weft_span){ end->out, size };
	n = sim_random_below(2) ? write_by_op(end, deadline_ns)
	                        : weft_stream_write(end->stream, end->out, size, deadline_ns);
	sim_check(n < 0 || n == (int64_t)size);
	if (n > 0)
		stream_sent(flow, size);
	else
		end->mute = true; /* a part may have been sent */
	return judge(end, n, deadline_ns);
}

static bool
act_shut(struct end *end)
{
	uint64_t deadline_ns = draw_deadline();
	int rc;

	if (end->mute)
		return true;
	end->mute = true;
	rc = weft_stream_shutdown(end->stream, deadline_ns);
	end->shut = rc == 0;
	return judge(end, rc, deadline_ns);
}

static int
meddle(void *arg)
{
	struct end *end = arg;
	weft_stream *stream;

	for (int i = 0; i < 3 && end->stream; i++) {
		(void)weft_sleep_until(draw_deadline());
		if (end->stream && sim_random_below(2)) {
			end->interrupts++;
			weft_stream_interrupt(end->stream);
		}
	}
	stream = end->stream;
	if (stream && sim_random_below(2)) {
		end->stream = NULL;
		end->closed = true;
		if (sim_random_below(2))
			weft_stream_close(stream);
		else
			weft_stream_reset(stream);
		close_told(end);
	}
	count_up(&play.ended);
	return 0;
}

/* Read the number of the connection, which its client sends. */
static bool
learn_number(struct end *end)
{
	uint64_t deadline_ns = draw_deadline() + WEFT_MS;
	unsigned char number;
	int64_t n = weft_stream_read_exact(end->stream, &number, 1, deadline_ns);

	if (n != 1) {
		if (n != WEFT_EOF)
			(void)judge(end, n, deadline_ns);
		return false;
	}
	sim_check(number < play.conns_used);
	end->conn = &play.conns[number];
	return true;
}

static bool
take_step(struct end *end)
{
	uint64_t what = sim_random_below(16);

	if (what == 0)
		return act_shut(end);
	return what < 8 ? act_write(end) : act_read(end);
}

static void
start_helper(struct end *end)
{
	if (end->helped || sim_random_below(4) > 0)
		return;
	end->helped = weft_go(meddle, end) > 0;
	if (end->helped)
		count_up(&play.started);
}

/* Limit the time that a close takes. */
static void
limit_linger(weft_stream *stream)
{
	(void)weft_stream_set(stream, "linger_ns", (int64_t)sim_random_below(WEFT_S / 4));
}

static int
run_end(void *arg)
{
	struct end *end = arg;
	bool more = end->conn || learn_number(end);

	if (end->stream) {
		limit_linger(end->stream);
		start_helper(end);
	}
	for (int i = 0; i < STEPS && more && end->stream; i++)
		more = take_step(end);
	if (more && end->stream && sim_random_below(2) && act_shut(end))
		while (end->stream && end->shut && act_read(end))
			continue;
	close_end(end);
	if (!spoils(SPOIL_WAKE))
		count_up(&play.ended);
	return 0;
}

/* --- callbacks ------------------------------------------------------------ */

static void
on_closed(void *arg)
{
	struct end *end = arg;

	sim_check(!end->stream && !end->sends);
	close_told(end);
	count_up(&play.ended);
}

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct end *end = arg;

	(void)op;
	sim_check(end->sends);
	end->sends = false;
	if (result == (int64_t)end->span.size) {
		stream_sent(flow_of(end, false), end->span.size);
		return;
	}
	sim_check(result < 0);
	end->mute = true;
	if (result != WEFT_ESHUTDOWN && result != WEFT_ETIMEDOUT)
		(void)judge(end, result, 0);
}

static void
close_face(struct end *end)
{
	weft_stream *stream = end->stream;

	end->stream = NULL;
	end->closed = true;
	if (sim_random_below(4) == 0)
		weft_stream_reset(stream);
	else
		weft_stream_close(stream);
}

static void
answer(struct end *end)
{
	size_t size = 1 + sim_random_below(PIECE);
	int rc;

	if (end->mute || end->sends || sim_random_below(3) == 0)
		return;
	stream_fill(flow_of(end, false), end->out, size);
	end->span = (weft_span){ end->out, size };
	sim_check(weft_op_init(&end->op, NULL, on_written, end) == 0);
	end->sends = true;
	rc = weft_stream_write_op(end->stream, &end->span, 1, &end->op,
	                          sim_random_below(2) ? WEFT_NEVER : draw_deadline());
	if (rc < 0) {
		end->sends = false;
		end->mute = true;
		(void)judge(end, rc, 0);
	}
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct end *end = arg;
	size_t part;

	sim_check(stream == end->stream);
	if (size <= 0) {
		if (size == 0 && end->conn)
			end_told(end);
		else if (size < 0)
			(void)judge(end, size, 0);
		close_face(end);
		return;
	}
	if (!end->conn) {
		unsigned char number = *(const unsigned char *)data;

		sim_check(number < play.conns_used);
		end->conn = &play.conns[number];
		sim_check(weft_stream_skip(stream, 1) == 0);
		return;
	}
	part = 1 + sim_random_below((uint64_t)size);
	took(end, data, part);
	sim_check(weft_stream_skip(stream, part) == 0);
	answer(end);
	if (sim_random_below(40) == 0)
		close_face(end);
}

static const weft_stream_events events = { .on_data = on_data, .on_close = on_closed };

/* --- accepting and connecting --------------------------------------------- */

/* With a threadlet on any loop, or with callbacks on the current loop. */
static void
serve(weft_stream *stream)
{
	weft_go_opts opts = { .loop = play.hosts[sim_random_below(HOSTS)].loop };
	struct end *end = end_new(stream, true);

	if (sim_random_below(2)) {
		if (weft_stream_start(stream, NULL, &events, end) == 0) {
			limit_linger(stream);
			return;
		}
	} else if (weft_go_with(&opts, run_end, end) > 0) {
		return;
	}
	close_end(end);
	count_up(&play.ended);
}

static int
run_acceptor(void *arg)
{
	(void)arg;
	while (!count_of(&play.over)) {
		uint64_t deadline_ns = draw_deadline();
		weft_stream *stream = NULL;
		int rc = weft_listener_accept(play.listener, &stream, deadline_ns);

		sim_check((rc == 0) == (stream != NULL));
		if (rc == WEFT_ETIMEDOUT && spoils(SPOIL_ACCEPT))
			rc = WEFT_ECONNREFUSED;
		judge_opening("an accept", rc, deadline_ns);
		if (rc == 0)
			serve(stream);
		else if (rc != WEFT_ETIMEDOUT)
			(void)weft_sleep_until(weft_after(WEFT_MS));
	}
	weft_listener_close(play.listener);
	count_up(&play.ended);
	return 0;
}

/* A stream to a served end, or NULL. */
static weft_stream *
reach(uint64_t deadline_ns)
{
	weft_stream *stream = NULL, *other = NULL;
	bool pair = sim_random_below(4) == 0;
	int rc = pair ? open_stream_pair(&stream, &other)
	              : weft_stream_connect(play.address, NULL, &stream, deadline_ns);

	sim_check((rc == 0) == (stream != NULL));
	if (rc == 0 && pair)
		serve(other);
	if (pair)
		judge_opening("a pair", rc, WEFT_NOWAIT);
	else
		judge_opening("a connect", rc < 0 && spoils(SPOIL_CONNECT) ? WEFT_ESHUTDOWN : rc,
		              deadline_ns);
	return stream;
}

static void
visit(void)
{
	uint64_t deadline_ns = weft_after(sim_random_below(WEFT_S / 4));
	weft_stream *stream;
	struct end *end;
	int64_t n;
	unsigned char number = (unsigned char)play.conns_used;

	if (play.conns_used == CONNS)
		return;
	play.conns_used++;
	stream = reach(deadline_ns);
	if (!stream)
		return;
	end = end_new(stream, false);
	end->conn = &play.conns[number];
	n = weft_stream_write(stream, &number, 1, deadline_ns);
	if (n == 1) {
		(void)run_end(end);
		return;
	}
	(void)judge(end, n, deadline_ns);
	close_end(end);
	count_up(&play.ended);
}

static int
run_client(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3 && weft_check_canceled() == 0; i++) {
		visit();
		(void)weft_sleep_until(draw_deadline());
	}
	count_up(&play.clients);
	return 0;
}

/* --- the play ------------------------------------------------------------- */

static void
begin(void)
{
	weft_addr addr;

	play.local = sim_random_below(2);
	for (uint64_t i = 0; i < CONNS; i++) {
		play.conns[i].up.key = sim_random();
		play.conns[i].down.key = sim_random();
	}
	for (int i = 0; i < HOSTS; i++) {
		host_make(&play.hosts[i]);
		host_run(&play.hosts[i]);
	}
	while (weft_listener_open(play.local ? "unix:@streams" : "tcp://127.0.0.1:0",
	                          &(weft_listener_opts){
					  .connections_max = 3 + (uint32_t)sim_random_below(20) },
	                          &play.listener)
	       < 0)
		continue;
	sim_check(weft_listener_local(play.listener, &addr) == 0);
	sim_check(weft_addr_format(&addr, play.address, sizeof(play.address)) > 0);
}

static weft_threadlet
start_on(uint32_t where, weft_threadlet_fn fn)
{
	weft_go_opts opts = { .loop = play.hosts[where].loop };
	weft_threadlet id;

	while ((id = weft_go_with(&opts, fn, NULL)) < 0)
		continue;
	return id;
}

/* Wait until everything that was started has ended. */
static void
await_all(void)
{
	uint64_t since_ns = sim_time();

	while (count_of(&play.ended) < count_of(&play.started)) {
		if (sim_time() - since_ns > LIVE_NS)
			sim_fail("not live: %u of %u have ended", count_of(&play.ended),
			         count_of(&play.started));
		pause_ns(WEFT_MS);
	}
}

void
stream_play(enum spoil spoil)
{
	memset(&play, 0, sizeof(play));
	play.spoil = spoil;
	begin();
	count_up(&play.started);
	(void)start_on(0, run_acceptor);
	for (uint32_t i = 0; i < CLIENTS; i++)
		play.ids[i] = start_on(i % HOSTS, run_client);
	pause_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(20))));
	for (uint32_t i = 0; i < CLIENTS; i++)
		if (sim_random_below(4) == 0)
			(void)weft_cancel(play.ids[i]);
	sim_heal();
	await_count(&play.clients, CLIENTS);
	weft__store(&play.over, 1, WEFT__RELEASE);
	await_all();
	for (int i = 0; i < HOSTS; i++)
		host_end(&play.hosts[i]);
	for (uint32_t i = 0; i < play.ends_used; i++)
		once_check(&play.ends[i].once);
}
