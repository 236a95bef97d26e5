/* oracle.c - oracles and helpers of the scenarios. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "backend/backend.h"
#include "sim/scenarios/oracle.h"
#include "loop/core/loop.h"

/* --- oracles ---------------------------------------------------------- */

void
once_begin(struct once *once)
{
	if (once_is_open(once))
		sim_fail("begun while in flight");
	once->begun++;
}

void
once_end(struct once *once)
{
	if (!once_is_open(once))
		sim_fail("finished more often than it was started");
	once->ended++;
}

bool
once_is_open(const struct once *once)
{
	return once->begun != once->ended;
}

void
once_check(const struct once *once)
{
	if (once_is_open(once))
		sim_fail("was started and has not finished");
}

static unsigned char
byte_at(uint64_t key, uint64_t at)
{
	uint64_t mixed = (key + at) * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned char)((mixed >> 56) ^ at);
}

void
stream_fill(struct stream *stream, void *buf, size_t size)
{
	if (stream->offered < stream->made + size)
		stream->offered = stream->made + size;
	for (size_t i = 0; i < size; i++)
		((unsigned char *)buf)[i] = byte_at(stream->key, stream->made + i);
}

void
stream_sent(struct stream *stream, size_t size)
{
	stream->made += size;
}

void
stream_take(struct stream *stream, const void *buf, size_t size)
{
	const unsigned char *bytes = buf;

	for (size_t i = 0; i < size; i++, stream->taken++) {
		if (stream->taken == stream->offered)
			sim_fail("bytes that nobody sent");
		if (bytes[i] != byte_at(stream->key, stream->taken))
			sim_fail("a wrong byte at %llu", (unsigned long long)stream->taken);
	}
}

void
order_take(struct order *order, uint32_t source, uint64_t number)
{
	if (number != order->taken[source])
		sim_fail("number %llu of source %u arrives as %llu", (unsigned long long)number,
		         source, (unsigned long long)order->taken[source]);
	order->taken[source]++;
}

void
order_check(const struct order *order)
{
	for (int i = 0; i < ORDER_SOURCES; i++)
		if (order->given[i] != order->taken[i])
			sim_fail("source %d gave %llu, and %llu arrived", i,
			         (unsigned long long)order->given[i],
			         (unsigned long long)order->taken[i]);
}

void
time_check(uint64_t due_ns)
{
	if (sim_time() < due_ns)
		sim_fail("%llu ns early", (unsigned long long)(due_ns - sim_time()));
}

void
late_check(int64_t result, uint64_t arrived_ns, uint64_t deadline_ns)
{
	if (result != WEFT_ETIMEDOUT)
		return;
	time_check(deadline_ns);
	if (arrived_ns > 0 && arrived_ns <= deadline_ns)
		sim_fail("a timeout, though something arrived %llu ns before the deadline",
		         (unsigned long long)(deadline_ns - arrived_ns));
}

void
owner_check(uint64_t wanted, uint64_t got)
{
	if (wanted != got)
		sim_fail("a callback of %llu reached %llu", (unsigned long long)wanted,
		         (unsigned long long)got);
}

/* Errors with which any op on a descriptor may end: a requested end, or no memory. */
static bool
is_early_end(int64_t result)
{
	return result == WEFT_ECANCELED || result == WEFT_ETIMEDOUT || result == WEFT_ESHUTDOWN
	       || result == WEFT_ENOMEM;
}

/* Errors of opening the backend or registering with it. */
static bool
is_unarmed(int64_t result)
{
	return result == -ENOSPC || result == -EMFILE || result == -ENFILE || result == -ENODEV;
}

static bool
is_lost(int64_t result)
{
	return result == -ECONNRESET || result == -EPIPE || result == -ENOBUFS
	       || result == -ENOTCONN || result == -EHOSTUNREACH || result == -ENETDOWN
	       || result == -ENETUNREACH || result == -ECONNREFUSED;
}

static bool
is_plausible(enum op_kind kind, int64_t result, size_t size)
{
	switch (kind) {
	case OP_SLEEP:
		return result == 0 || result == WEFT_ECANCELED || result == WEFT_ESHUTDOWN;
	case OP_POLL:
		return (result > 0 && result < 16) || is_early_end(result) || is_unarmed(result);
	case OP_RECV:
	case OP_SEND:
	case OP_RECV_MULTI:
		return (result >= 0 && (uint64_t)result <= size) || is_early_end(result)
		       || is_lost(result) || is_unarmed(result);
	case OP_CONNECT:
		return result <= 0 && result != -EAGAIN && result != -EINTR
		       && result != -EINPROGRESS && result != -EALREADY;
	case OP_ACCEPT:
		return result != -EAGAIN && result != -EINTR && result != -ECONNABORTED;
	case OP_CLOSE:
		return result == 0 || result == -EIO || result == -ENOSPC || result == -EDQUOT
		       || result == WEFT_ENOMEM;
	default:
		return true;
	}
}

void
result_check(enum op_kind kind, int64_t result, size_t size)
{
	if (!is_plausible(kind, result, size))
		sim_fail("kind %d has result %lld of %zu", (int)kind, (long long)result, size);
}

/* --- threads ---------------------------------------------------------- */

uint64_t
thread_start(const char *name, void (*fn)(void *arg), void *arg)
{
	struct weft__thread_opts opts = { .name = name, .fn = fn, .arg = arg };
	uint64_t thread = 0;

	while (weft__sys->thread_start(&opts, &thread) < 0)
		continue;
	return thread;
}

void
thread_join(uint64_t thread)
{
	sim_check(weft__sys->thread_join(thread) == 0);
}

void
pause_briefly(void)
{
	for (uint64_t left = sim_random_below(6); left > 0; left--)
		weft__sys->yield();
}

void
pause_ns(uint64_t ns)
{
	weft__a32 word = { 0 };
	uint64_t until_ns = sim_time() + ns;

	while (sim_time() < until_ns)
		(void)weft__sys->park(&word, 0, until_ns);
}

void
count_up(weft__a32 *word)
{
	(void)weft__add(word, 1, WEFT__RELEASE);
	weft__sys->unpark(word);
}

uint32_t
count_of(weft__a32 *word)
{
	return weft__load(word, WEFT__ACQUIRE);
}

void
await_count(weft__a32 *word, uint32_t value)
{
	uint64_t until_ns = sim_time() + LIVE_NS;
	uint32_t seen;

	while ((seen = count_of(word)) < value) {
		if (sim_time() > until_ns)
			sim_fail("not live: %u of %u after 60 s", seen, value);
		(void)weft__sys->park(word, seen, until_ns + 1);
	}
}

/* --- loops ------------------------------------------------------------ */

weft_loop *
loop_make(weft_loop_opts *opts)
{
	static const char *const names[] = { "poll", "epoll" };
	const char *there[2];
	uint64_t count = 0;
	weft_loop *loop;

	for (size_t i = 0; i < 2; i++)
		if (weft__backend_exists(names[i]))
			there[count++] = names[i];
	opts->backend = there[sim_random_below(count)];
	opts->name = "simulated";
	opts->flags |= WEFT_LOOP_NO_SPIN;
	opts->flags |= sim_random_below(2) ? WEFT_LOOP_METRICS : 0;
	while (!(loop = weft_loop_new(opts)))
		continue;
	/* Producer queues become HOT sooner than by default, so that it happens at all. */
	loop->inbox.hot_after = 1u << sim_random_below(10);
	return loop;
}

void
host_make(struct host *host)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP };

	*host = (struct host){ .loop = loop_make(&opts) };
}

static void
run_host(void *arg)
{
	struct host *host = arg;
	int rc = weft_loop_run(host->loop);

	/* Otherwise it was stopped before, or another thread runs it. */
	sim_check(rc == 0 || rc == WEFT_EALREADY || rc == WEFT_EBUSY);
}

void
host_run(struct host *host)
{
	int rc;

	if (sim_random_below(2)) {
		host->thread = thread_start("host", run_host, host);
		return;
	}
	while ((rc = weft_loop_start(host->loop)) == WEFT_EAGAIN)
		continue;
	sim_check(rc == 0);
}

struct call {
	weft_node node;
	weft_fn fn;
	void *arg;
	weft__a32 *done;
};

static void
run_call(void *arg)
{
	struct call *call = arg;

	call->fn(call->arg);
	count_up(call->done);
}

void
host_call(struct host *host, weft_fn fn, void *arg)
{
	weft__a32 done = { 0 };
	struct call call = { .fn = fn, .arg = arg, .done = &done };

	call.node.fn = run_call;
	call.node.arg = &call;
	sim_check(weft_loop_post_node(host->loop, &call.node) == 0);
	while (count_of(&done) == 0)
		(void)weft__sys->park(&done, 0, WEFT_NEVER);
}

void
host_stop(struct host *host)
{
	weft_loop_shutdown(host->loop);
	sim_check(weft_loop_wait_stopped(host->loop, WEFT_NEVER) == 0);
	sim_check(weft_loop_state(host->loop) == WEFT_STOPPED);
}

void
host_free(struct host *host)
{
	sim_check(weft_loop_free(host->loop) == 0);
	if (host->thread)
		thread_join(host->thread);
}

void
host_end(struct host *host)
{
	uint64_t since_ns;

	sim_heal();
	since_ns = sim_time();
	host_stop(host);
	host_free(host);
	if (sim_time() - since_ns > LIVE_NS)
		sim_fail("not live: stopping took more than 60 s");
}

/* --- peers ------------------------------------------------------------ */

bool
is_passing(int64_t rc)
{
	return rc == -EINTR || rc == -EAGAIN || rc == -ENOMEM || rc == -ENOBUFS;
}

int
peer_socket(void)
{
	int fd;

	while ((fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0)) < 0)
		pause_ns(100 * WEFT_US);
	return fd;
}

int
peer_listen(struct sockaddr_in *name, int backlog)
{
	socklen_t size = sizeof(*name);
	int fd = peer_socket();

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
		                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	while (weft__sys->bind(fd, (struct sockaddr *)name, size) < 0)
		continue;
	while (weft__sys->listen(fd, backlog) < 0)
		continue;
	while (weft__sys->sockname(fd, (struct sockaddr *)name, &size) < 0)
		continue;
	return fd;
}

int
peer_wait(int fd, int events, uint64_t ns)
{
	struct pollfd look = { .fd = fd, .events = (short)events };

	return weft__sys->poll(&look, 1, (int64_t)ns) > 0 ? look.revents : 0;
}

int
peer_connect(int fd, const struct sockaddr_in *name)
{
	int rc, error = 0;

	rc = weft__sys->connect(fd, (const struct sockaddr *)name, sizeof(*name));
	if (rc != -EINPROGRESS)
		return rc;
	for (int i = 0; !peer_wait(fd, POLLOUT, WEFT_S); i++)
		if (i == 5)
			return -ETIMEDOUT;
	rc = weft__sys->so_error(fd, &error);
	return rc < 0 ? rc : -error;
}

static bool
make_tcp_pair(int out[2])
{
	struct sockaddr_in name;
	int listener = peer_listen(&name, 1);

	out[1] = -EAGAIN;
	out[0] = peer_socket();
	if (peer_connect(out[0], &name) == 0)
		for (int i = 0; i < 30 && is_passing(out[1]); i++) {
			(void)peer_wait(listener, POLLIN, WEFT_S);
			out[1] = weft__sys->accept(listener);
		}
	(void)weft__sys->close(listener);
	if (out[1] < 0)
		(void)weft__sys->close(out[0]);
	return out[1] >= 0;
}

void
peer_pair(int out[2])
{
	if (sim_random_below(2)) {
		while (sim_socketpair(out) < 0)
			continue;
		return;
	}
	while (!make_tcp_pair(out))
		continue;
}

int
open_stream_pair(weft_stream **out_a, weft_stream **out_b)
{
	weft_stream *a;
	int fds[2], rc = sim_socketpair(fds);

	if (rc < 0)
		return rc;
	rc = weft_stream_open_fd(fds[0], false, &a);
	if (rc < 0) {
		(void)weft__sys->close(fds[0]);
		(void)weft__sys->close(fds[1]);
		return rc;
	}
	rc = weft_stream_open_fd(fds[1], false, out_b);
	if (rc < 0) {
		weft_stream_reset(a);
		(void)weft__sys->close(fds[1]);
		return rc;
	}
	*out_a = a;
	return 0;
}
