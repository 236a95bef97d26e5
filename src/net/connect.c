/* connect.c - connecting: the addresses of a name are tried, each a little after the one
 * before, and the first that answers is taken.
 *
 *   1. An attempt is one op on one socket.  At most one is started by a failure or by the
 *      timer, while none has won.  A name is found first, which counts as one.
 *   2. The connection is decided once: by the first success, by the last failure, or by
 *      whoever asks the op to end.  Then the attempts that are left are cancelled.
 *   3. The op finishes when it is decided; what is in library memory goes when the last
 *      attempt has ended.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <weft/dns.h>
#include "net/addr.h"
#include "net/stream.h"

#define ADDRESSES_MAX 8
#define STAGGER_NS    (250 * WEFT_MS)

struct connection;

struct attempt {
	weft_op op;
	int fd;
	weft_addr addr;
	struct connection *of;
};

struct connection {
	weft_loop *loop;
	weft_op *op; /* NULL: decided */
	weft_stream **out;
	weft_addr local;
	uint64_t stagger_ns;
	weft_timer timer;
	bool timed;
	uint32_t count, next, live;
	char text[WEFT_ADDR_TEXT_MAX]; /* as it was asked for */
	weft_op resolve;
	weft_addr found[ADDRESSES_MAX];
	struct attempt attempts[ADDRESSES_MAX];
};

static void try_next(struct connection *c);

/* --- the decision ------------------------------------------------------- */

static void
free_if_done(struct connection *c)
{
	if (c->op || c->live > 0)
		return;
	if (c->timed)
		(void)weft_timer_stop(&c->timer);
	weft__sys->release(c);
}

/* An error says whom it was about. */
static int
explain(const char *address, int error)
{
	if (error == 0 || error == WEFT_ECANCELED || error == WEFT_EINTR)
		return error;
	return weft_fail(error, "connect %s: %s", address,
	                 weft_strerror(error));
}

static void
decide(struct connection *c, int result)
{
	weft_op *op = c->op;

	c->op = NULL;
	c->next = c->count;
	weft_op_cancel(&c->resolve);
	for (uint32_t i = 0; i < c->count; i++)
		weft_op_cancel(&c->attempts[i].op);
	(void)weft_op_finish(op, explain(c->text, result));
}

static void
drop_socket(struct attempt *a)
{
	weft__ready_disown(&a->of->loop->backend, a->fd);
	(void)weft__kernel(&a->of->loop->backend)->close(a->fd);
}

static void
win(struct connection *c, struct attempt *a)
{
	weft_stream *stream = weft__stream_make(a->fd, 0);

	if (!stream) {
		drop_socket(a);
		decide(c, WEFT_ENOMEM);
		return;
	}
	weft__ready_disown(&c->loop->backend, a->fd);
	*c->out = stream;
	decide(c, 0);
}

static void
on_connected(weft_op *op, int64_t result, void *arg)
{
	struct attempt *a = arg;
	struct connection *c = a->of;

	(void)op;
	c->live--;
	if (result == 0 && c->op) {
		win(c, a);
	} else {
		drop_socket(a);
		if (c->op && c->next < c->count)
			try_next(c);
		else if (c->op && c->live == 0)
			decide(c, (int)result);
	}
	free_if_done(c);
}

/* --- attempts ----------------------------------------------------------- */

static int
prepare(const struct connection *c, const weft_addr *addr)
{
	int family = weft__addr_family(addr), on = 1, rc = 0;
	int fd =
		weft__kernel(&c->loop->backend)->socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		return fd;
	if (family != AF_UNIX)
		rc = weft__sys->set_option(fd, IPPROTO_TCP, TCP_NODELAY, &on,
		                           sizeof(on));
	if (rc == 0 && c->local.size > 0)
		rc = weft__sys->bind(fd, weft__addr_sockaddr(&c->local),
		                     c->local.size);
	if (rc < 0)
		(void)weft__sys->close(fd);
	return rc < 0 ? rc : fd;
}

static int
begin(struct connection *c, struct attempt *a)
{
	int rc = prepare(c, &a->addr);

	if (rc < 0)
		return rc;
	a->fd = rc;
	rc = weft_op_connect(&a->op, a->fd, weft__addr_sockaddr(&a->addr),
	                     a->addr.size, WEFT_NEVER);
	if (rc < 0)
		drop_socket(a);
	else
		c->live++;
	return rc;
}

static void
on_stagger(weft_timer *timer, void *arg)
{
	struct connection *c = arg;

	(void)timer;
	if (c->op && c->next < c->count)
		try_next(c);
	free_if_done(c);
}

/* Try addresses until one attempt is under way. */
static void
try_next(struct connection *c)
{
	int rc = WEFT_ENONAME;

	while (c->next < c->count) {
		rc = begin(c, &c->attempts[c->next++]);
		if (rc == 0)
			break;
	}
	if (rc < 0 && c->live == 0) {
		decide(c, rc);
		return;
	}
	if (c->next < c->count) {
		c->timed = weft_timer_start(c->loop, &c->timer,
		                            weft_in(c->stagger_ns), 0,
		                            on_stagger, c)
		           == 0;
		if (!c->timed) /* without memory for that, do not wait */
			try_next(c);
	}
}

/* --- starting ----------------------------------------------------------- */

static void
on_cancel(weft_op *op, int why, void *arg)
{
	struct connection *c = arg;

	(void)op;
	decide(c, why);
	free_if_done(c);
}

/* Try those addresses. */
static void
try_all(struct connection *c, const weft_addr *addrs, uint32_t count)
{
	c->count = count;
	for (uint32_t i = 0; i < count; i++) {
		c->attempts[i].addr = addrs[i];
		c->attempts[i].of = c;
		(void)weft_op_init(&c->attempts[i].op, c->loop, on_connected,
		                   &c->attempts[i]);
	}
	try_next(c);
}

static void
on_resolved(weft_op *op, int64_t result, void *arg)
{
	struct connection *c = arg;

	(void)op;
	c->live--;
	if (c->op && result > 0)
		try_all(c, c->found, (uint32_t)result);
	else if (c->op)
		decide(c, result < 0 ? (int)result : WEFT_ENONAME);
	free_if_done(c);
}

static void
resolve(struct connection *c, const char *address)
{
	int rc = weft_op_init(&c->resolve, c->loop, on_resolved, c);

	if (rc == 0)
		rc = weft_dns_resolve_op(address, c->found, ADDRESSES_MAX,
		                         &c->resolve, WEFT_NEVER);
	if (rc < 0)
		decide(c, rc);
	else
		c->live++;
}

static struct connection *
make(weft_loop *loop, const char *address, const weft_connect_opts *opts)
{
	struct connection *c = weft__alloc_zero(sizeof(*c));
	size_t size = strlen(address), room = sizeof(c->text) - 1;

	if (!c)
		return NULL;
	c->loop = loop;
	c->stagger_ns = opts && opts->stagger_ns ? opts->stagger_ns
	                                         : STAGGER_NS;
	if (opts)
		c->local = opts->local;
	memcpy(c->text, address, size < room ? size : room);
	return c;
}

static int
read_address(const char *address, struct weft__addr_parts *parts)
{
	int rc = weft__addr_split(address, parts);

	if (rc < 0)
		return rc;
	if (parts->scheme == WEFT__ADDR_TLS)
		return weft_fail(WEFT_ENOSYS, "connect %s: no TLS here",
		                 address);
	if (parts->scheme != WEFT__ADDR_TCP && parts->scheme != WEFT__ADDR_UNIX)
		return weft_fail(WEFT_EINVAL, "connect %s: not a stream",
		                 address);
	return 0;
}

int
weft_connect_op(const char *address, const weft_connect_opts *opts,
                weft_stream **out, weft_op *op, uint64_t deadline_ns)
{
	struct weft__addr_parts parts;
	struct connection *c;
	int rc;

	if (!address || !out || !op)
		return weft__misuse(WEFT_EINVAL, "weft_connect_op: NULL");
	rc = read_address(address, &parts);
	if (rc < 0)
		return rc;
	c = make(op->loop, address, opts);
	if (!c)
		return weft__fail(WEFT_ENOMEM, "connect: out of memory");
	rc = weft_op_begin(op, on_cancel, c, deadline_ns);
	if (rc == 0)
		rc = weft__loop_open_backend(op->loop);
	if (rc < 0) {
		weft__sys->release(c);
		return rc;
	}
	c->op = op;
	c->out = out;
	if (parts.is_literal)
		try_all(c, &parts.addr, 1);
	else
		resolve(c, address);
	free_if_done(c);
	return 0;
}

int
weft_connect(const char *address, const weft_connect_opts *opts,
             weft_stream **out, uint64_t deadline_ns)
{
	weft_stream *stream = NULL;
	weft_op op;
	int rc = weft__may_wait(deadline_ns);

	if (rc < 0)
		return rc;
	if (!out)
		return weft__misuse(WEFT_EINVAL, "weft_connect: NULL");
	weft__op_init_waited(&op);
	rc = weft_connect_op(address, opts, &stream, &op, deadline_ns);
	if (rc < 0)
		return rc;
	rc = (int)weft_op_wait(&op, WEFT_NEVER);
	if (rc == 0)
		*out = stream;
	return explain(address, rc);
}
