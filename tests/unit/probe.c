/* probe.c - helpers for the tests of loops. */
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include "base/sys.h"
#include "loop/core/loop.h"
#include "unit/probe.h"

char trace[64];

void
note(void *arg)
{
	size_t used = strlen(trace);

	CHECK(used + 1 < sizeof(trace));
	trace[used] = (char)(intptr_t)arg;
	trace[used + 1] = '\0';
}

void
note_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	note(arg);
}

weft_loop *
make_with(const weft_loop_opts *opts)
{
	weft_loop *loop = weft_loop_new(opts);

	CHECK(loop != NULL);
	trace[0] = '\0';
	return loop;
}

weft_loop *
make(void)
{
	return make_with(NULL);
}

weft_loop *
make_started(void)
{
	weft_loop *loop = make();

	OK(weft_loop_start(loop));
	return loop;
}

void
stop_and_free(weft_loop *loop)
{
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	OK(weft_loop_free(loop));
}

void
stop_idle(weft_loop *loop)
{
	weft_loop_shutdown(loop);
	if (weft_loop_state(loop) != WEFT_STOPPED)
		OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

void
turn(weft_loop *loop)
{
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
}

void
turns(weft_loop *loop, int count)
{
	while (count-- > 0)
		turn(loop);
}

void
watch_for(const weft_loop *loop, weft_state state)
{
	while (weft_loop_state(loop) != state)
		sched_yield();
}

pthread_t
thread(void *(*fn)(void *), void *arg)
{
	pthread_t made;

	OK(pthread_create(&made, NULL, fn, arg));
	return made;
}

/* --- sockets ------------------------------------------------------------ */

struct pair
make_pair(void)
{
	int fds[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	return (struct pair){ fds[0], fds[1] };
}

void
close_pair(struct pair pair)
{
	OK(close(pair.fd));
	OK(close(pair.peer));
}

void
put(int fd, const char *text)
{
	size_t size = strlen(text);

	CHECK_EQ(send(fd, text, size, MSG_DONTWAIT), size);
}

void
take(int fd)
{
	char byte;

	CHECK_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
}

void
fill(int fd)
{
	static const char zeros[4096];

	while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
}

int64_t
drain(int fd)
{
	char buf[4096];
	ssize_t size;
	int64_t all = 0;

	while ((size = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		all += size;
	return all;
}

int
make_listener(int backlog, struct sockaddr_in *addr)
{
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(*addr);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(fd, (struct sockaddr *)addr, size));
	OK(listen(fd, backlog));
	OK(getsockname(fd, (struct sockaddr *)addr, &size));
	return fd;
}

int
make_client(const struct sockaddr_in *addr)
{
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	(void)connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	return fd;
}

/* --- ops ---------------------------------------------------------------- */

void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct probe *p = arg;

	CHECK(op == &p->op);
	CHECK(weft_loop_current() == op->loop);
	CHECK_EQ(op->result, result);
	CHECK_EQ(op->pending, op->more);
	CHECK(p->not_before_ns == 0 || weft_now() >= p->not_before_ns);
	p->results++;
	p->ends += !op->more;
	p->result = result;
	if (p->name)
		note(MARK(p->name));
	if (p->act)
		p->act(p);
}

/* Note the request in capitals.  Unless the probe is lazy, finish the op. */
void
on_cancel(weft_op *op, int why, void *arg)
{
	struct probe *p = arg;

	CHECK(op == &p->op);
	CHECK(op->pending);
	p->cancels++;
	p->why = why;
	if (p->name)
		note(MARK(p->name - 'a' + 'A'));
	if (!p->lazy)
		OK(weft_op_finish(op, why));
}

static int
start_msg(struct probe *p, int fd, uint64_t deadline_ns)
{
	p->iov = (struct iovec){ p->buf, sizeof(p->buf) };
	p->msg = (struct msghdr){ .msg_iov = &p->iov, .msg_iovlen = 1 };
	return weft__op_sendmsg(&p->op, fd, &p->msg, 0, deadline_ns);
}

int
try_start(struct probe *p, enum kind kind, int fd, uint64_t deadline_ns)
{
	weft_op *op = &p->op;

	switch (kind) {
	case SLEEP:
		return weft_op_sleep(op, deadline_ns);
	case OWN:
		return weft_op_begin(op, on_cancel, p, deadline_ns);
	case POLL_READ:
		return weft_op_poll(op, fd, WEFT_READABLE, deadline_ns);
	case POLL_WRITE:
		return weft_op_poll(op, fd, WEFT_WRITABLE, deadline_ns);
	case POLL_MULTI:
		return weft_op_poll(op, fd, WEFT_READABLE | WEFT_MULTI, deadline_ns);
	case RECV:
		return weft_op_recv(op, fd, p->buf, sizeof(p->buf), 0, deadline_ns);
	case RECV_MULTI:
		return weft_op_recv_multi(op, fd, deadline_ns);
	case ACCEPT:
	case ACCEPT_MULTI:
		return weft_op_accept(op, fd, kind == ACCEPT ? 0 : WEFT_MULTI, deadline_ns);
	case SEND:
		return weft_op_send(op, fd, p->buf, sizeof(p->buf), 0, deadline_ns);
	case CONNECT:
		return weft_op_connect(op, fd, (struct sockaddr *)&p->addr, sizeof(p->addr),
		                       deadline_ns);
	default:
		return start_msg(p, fd, deadline_ns);
	}
}

void
init(weft_loop *loop, struct probe *p)
{
	OK(weft_op_init(&p->op, loop, on_done, p));
	CHECK(!p->op.pending);
}

void
start(weft_loop *loop, struct probe *p, enum kind kind, int fd)
{
	init(loop, p);
	p->fd = fd;
	OK(try_start(p, kind, fd, WEFT_NEVER));
}

char gathered[64];
size_t gathered_size;

void
gather(struct probe *p)
{
	if (p->result <= 0)
		return;
	CHECK(gathered_size + (size_t)p->result <= sizeof(gathered));
	memcpy(gathered + gathered_size, weft_op_data(&p->op), (size_t)p->result);
	gathered_size += (size_t)p->result;
}

/* --- watches ------------------------------------------------------------ */

void
on_ready(weft_watch *watch, int what, void *arg)
{
	struct watcher *w = arg;

	CHECK(watch == &w->watch);
	CHECK(weft_loop_current() == watch->loop);
	CHECK_EQ(watch->id, w->fd);
	if (what < 0) {
		CHECK(what == WEFT_ESHUTDOWN || what == WEFT_EBADF);
		CHECK_EQ(weft_watch_stop(watch), 0);
		w->ends++;
	} else {
		CHECK(what > 0);
		CHECK_EQ(w->ends, 0);
		w->calls++;
		w->what = what;
	}
	if (w->act)
		w->act(w);
}

void
watch(weft_loop *loop, struct watcher *w, int fd, uint32_t events)
{
	w->fd = fd;
	OK(weft_watch_start(loop, &w->watch, fd, events, on_ready, w));
}

/* --- counting ----------------------------------------------------------- */

struct calls calls;
static const struct weft__sys *uncounted;

static void
add(weft__a64 *count)
{
	(void)weft__add(count, 1, WEFT__RELAXED);
}

static void
add_wait(void)
{
	if (!calls.only || calls.only == weft_loop_current())
		add(&calls.waits);
}

static int
count_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	add_wait();
	add(&calls.parks);
	return uncounted->park(word, value, deadline_ns);
}

static int
count_poll(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	add_wait();
	return uncounted->poll(fds, count, timeout_ns);
}

static int
count_epoll_wait(int ep, struct epoll_event *events, int max, int64_t timeout_ns)
{
	add_wait();
	return uncounted->epoll_wait(ep, events, max, timeout_ns);
}

static int
count_uring_enter(int ring, uint32_t submit, uint32_t wait, uint32_t flags, const void *arg)
{
	add_wait();
	return uncounted->uring_enter(ring, submit, wait, flags, arg);
}

static int
count_kind(int fd)
{
	add(&calls.arms);
	return uncounted->kind(fd);
}

static int
count_epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	add(&calls.arms);
	return uncounted->epoll_ctl(ep, op, fd, event);
}

static int
count_accept(int fd)
{
	add(&calls.accepts);
	return uncounted->accept(fd);
}

static void *
count_alloc(size_t size)
{
	add(&calls.allocs);
	return uncounted->alloc(size);
}

static void *
count_resize(void *mem, size_t size)
{
	add(&calls.allocs);
	return uncounted->resize(mem, size);
}

void
count_calls(void)
{
	static struct weft__sys counting;

	CHECK(!uncounted);
	uncounted = weft__sys;
	calls = (struct calls){ 0 };
	counting = *uncounted;
	counting.park = count_park;
	counting.poll = count_poll;
	counting.epoll_wait = count_epoll_wait;
	counting.uring_enter = count_uring_enter;
	counting.kind = count_kind;
	counting.epoll_ctl = count_epoll_ctl;
	counting.accept = count_accept;
	counting.alloc = count_alloc;
	counting.resize = count_resize;
	weft__sys = &counting;
}

void
count_no_more(void)
{
	weft__sys = uncounted;
	uncounted = NULL;
}

int64_t
counted(const weft__a64 *count)
{
	return (int64_t)weft__load(count, WEFT__RELAXED);
}
