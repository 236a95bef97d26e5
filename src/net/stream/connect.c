/* connect.c - outgoing connections.  The addresses of a name are tried with a delay between
 * them (happy eyeballs), and the first that answers is used.
 *
 *   1. An attempt is one op on one socket.  While none has succeeded, a failure or the timer
 *      starts at most one more.
 *   2. The connection is decided once: by the first success, by the last failure, or by the
 *      cancellation of the op.  Then the remaining attempts are canceled.  With TLS the first
 *      attempt that succeeds ends the others, and the result of its handshake decides.
 *   3. The op finishes when the connection is decided.  `live` counts the attempts in progress,
 *      the resolution of the name, and the handshake.  When all of them have ended, the memory of
 *      the connection is freed.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "base/atomic.h"
#include "net/addr.h"
#include "net/dns/dns.h"
#include "net/stream/stream.h"
#include "net/tls/tls.h"

#define ADDRESSES_MAX 8
#define STAGGER_NS    (250 * WEFT_MS)
#define HANDSHAKE_NS  (10 * WEFT_S)
#define WHY_SIZE      200

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
	bool timed;                    /* `timer` was started */
	uint32_t count, next, live;    /* addresses; the next to try; invariant 3 */
	char text[WEFT_ADDR_TEXT_MAX]; /* the requested address */
	weft_tls *tls;                 /* NULL: no TLS */
	uint64_t handshake_ns;
	weft_stream *stream;     /* its handshake is in progress, */
	weft_threadlet securing; /* in this threadlet */
	char why[WHY_SIZE];      /* text of the failure, or "" */
	char *detail;            /* gets a copy of `why`, for a waiting caller; or NULL */
	char name[256];
	weft_op resolve;
	weft_addr found[ADDRESSES_MAX];
	struct attempt attempts[ADDRESSES_MAX];
};

static void try_next(struct connection *c);

/* Copy the text, truncated to `room`. */
static void
copy_text(char *out, size_t room, const char *text)
{
	size_t size = strlen(text);

	size = size < room ? size : room - 1;
	memcpy(out, text, size);
	out[size] = '\0';
}

/* --- the decision ------------------------------------------------------- */

static void
free_if_done(struct connection *c)
{
	if (c->op || c->live > 0)
		return;
	if (c->timed)
		(void)weft_timer_stop(&c->timer);
	weft_tls_close(c->tls);
	weft__sys->release(c);
}

/* Set an error text that names the address and the reason. */
static int
explain(const char *address, int error, const char *why)
{
	if (error == 0 || error == WEFT_ECANCELED || error == WEFT_EINTR)
		return error;
	return weft_fail(error, "connect %s: %s", address, why[0] ? why : weft_strerror(error));
}

static void
decide(struct connection *c, int result)
{
	struct weft__counts *counts = weft__loop_counts(c->loop);
	weft_op *op = c->op;

	weft__count(result == 0 ? &counts->connected : &counts->connects_failed, 1);
	c->op = NULL;
	c->next = c->count;
	if (c->securing > 0)
		(void)weft_cancel(c->securing);
	weft_op_cancel(&c->resolve);
	for (uint32_t i = 0; i < c->count; i++)
		weft_op_cancel(&c->attempts[i].op);
	(void)weft_op_finish(op, explain(c->text, result, c->why));
}

static void
drop_socket(struct attempt *a)
{
	weft__fd_forget(a->of->loop, a->fd);
	(void)weft__loop_kernel(a->of->loop)->close(a->fd);
}

/* An op cannot suspend, so the handshake has a threadlet of its own. */
static int
secure(void *arg)
{
	struct connection *c = arg;
	weft_stream *stream = c->stream;
	int rc = weft_tls_start(stream, c->tls, WEFT_TLS_CLIENT, c->name,
	                        weft_after(c->handshake_ns));

	c->securing = 0;
	if (rc == 0 && c->op)
		*c->out = stream;
	else
		weft_stream_reset(stream);
	if (rc < 0 && c->op)
		copy_text(c->why, WHY_SIZE, weft_detail());
	if (rc < 0 && c->op && c->detail)
		copy_text(c->detail, WHY_SIZE, weft_detail());
	if (c->op)
		decide(c, rc);
	c->live--;
	free_if_done(c);
	return 0;
}

static void
begin_secure(struct connection *c, weft_stream *stream)
{
	const weft_go_opts opts = { .name = "handshake", .loop = c->loop };

	c->stream = stream;
	c->next = c->count; /* no other address is tried */
	for (uint32_t i = 0; i < c->count; i++)
		weft_op_cancel(&c->attempts[i].op);
	c->securing = weft_go_with(&opts, secure, c);
	if (c->securing < 0) {
		weft_stream_reset(stream);
		decide(c, (int)c->securing);
		return;
	}
	c->live++;
}

static void
win(struct connection *c, struct attempt *a)
{
	weft_stream *stream = weft__stream_make(
		a->fd, weft__addr_family(&a->addr) == AF_UNIX ? WEFT__STREAM_LOCAL : 0);

	if (!stream) {
		drop_socket(a);
		decide(c, WEFT_ENOMEM);
		return;
	}
	weft__fd_forget(c->loop, a->fd);
	if (c->tls) {
		begin_secure(c, stream);
		return;
	}
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
	if (result == 0 && c->op && !c->stream) {
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
stream_connect_prepare(const struct connection *c, const weft_addr *addr)
{
	int family = weft__addr_family(addr), on = 1, rc = 0;
	int fd = weft__loop_kernel(c->loop)->socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		return fd;
	if (family != AF_UNIX)
		rc = weft__sys->set_option(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (rc == 0 && c->local.size > 0)
		rc = weft__sys->bind(fd, weft__addr_sockaddr(&c->local), c->local.size);
	if (rc < 0)
		(void)weft__sys->close(fd);
	return rc < 0 ? rc : fd;
}

static int
stream_connect_begin(struct connection *c, struct attempt *a)
{
	int rc = stream_connect_prepare(c, &a->addr);

	if (rc < 0)
		return rc;
	a->fd = rc;
	rc = weft_op_connect(&a->op, a->fd, weft__addr_sockaddr(&a->addr), a->addr.size,
	                     WEFT_NEVER);
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

/* Try addresses until an attempt is in progress. */
static void
try_next(struct connection *c)
{
	int rc = WEFT_ENONAME;

	while (c->next < c->count) {
		rc = stream_connect_begin(c, &c->attempts[c->next++]);
		if (rc == 0)
			break;
	}
	if (rc < 0 && c->live == 0) {
		decide(c, rc);
		return;
	}
	if (c->next < c->count) {
		c->timed = weft_timer_start(c->loop, &c->timer, weft_after(c->stagger_ns), 0,
		                            on_stagger, c)
		           == 0;
		if (!c->timed) /* no memory for the timer: do not wait */
			try_next(c);
	}
}

/* --- starting ----------------------------------------------------------- */

static void
stream_connect_on_cancel(weft_op *op, int why, void *arg)
{
	struct connection *c = arg;

	(void)op;
	decide(c, why);
	free_if_done(c);
}

static void
try_all(struct connection *c, const weft_addr *addrs, uint32_t count)
{
	c->count = count;
	for (uint32_t i = 0; i < count; i++) {
		c->attempts[i].addr = addrs[i];
		c->attempts[i].of = c;
		(void)weft_op_init(&c->attempts[i].op, c->loop, on_connected, &c->attempts[i]);
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
		rc = weft__dns_resolve_op(address, c->found, ADDRESSES_MAX, &c->resolve,
		                          WEFT_NEVER);
	if (rc < 0)
		decide(c, rc);
	else
		c->live++;
}

static struct connection *
stream_connect_make(weft_loop *loop, const char *address, const weft_stream_connect_opts *opts)
{
	struct connection *c = weft__alloc_zero(sizeof(*c));

	if (!c)
		return NULL;
	c->loop = loop;
	c->stagger_ns = opts && opts->stagger_ns ? opts->stagger_ns : STAGGER_NS;
	if (opts)
		c->local = opts->local;
	copy_text(c->text, sizeof(c->text), address);
	return c;
}

/* The default context, which verifies peers by the system's CAs.  Once open, it is kept.  If
 * several threads open one at the same time, the first to store its context wins, and the others
 * close theirs.  There is no lock: opening takes long, and a fork meanwhile would leave the child
 * with a lock that stays held. */
static weft_tls *
default_tls(void)
{
	static weft__aptr kept;
	uintptr_t tls = weft__load(&kept, WEFT__ACQUIRE);
	weft_tls *own;

	if (tls)
		return (weft_tls *)tls;
	if (weft_tls_open(NULL, &own) < 0)
		return NULL;
	if (weft__cas_else(&kept, &tls, (uintptr_t)own, WEFT__RELEASE, WEFT__ACQUIRE))
		return own;
	weft_tls_close(own);
	return (weft_tls *)tls;
}

/* Set the host name to verify, and the context. */
static int
prepare_tls(struct connection *c, const struct weft__addr_parts *parts,
            const weft_stream_connect_opts *opts)
{
	const char *name = opts && opts->tls_name ? opts->tls_name : parts->host;
	size_t size = opts && opts->tls_name ? strlen(name) : parts->host_size;
	weft_tls *tls = opts && opts->tls ? opts->tls : default_tls();

	if (!tls)
		return WEFT_ENOSYS;
	if (size == 0 || size >= sizeof(c->name))
		return weft__fail(
			WEFT_EINVAL,
			"weft_stream_connect: the host name to verify is missing or too long");
	memcpy(c->name, name, size);
	c->tls = weft__tls_ref(tls);
	c->handshake_ns = opts && opts->handshake_ns ? opts->handshake_ns : HANDSHAKE_NS;
	return 0;
}

static int
read_address(const char *address, struct weft__addr_parts *parts)
{
	int rc = weft__addr_split(address, parts);

	if (rc < 0)
		return rc;
	if (parts->scheme != WEFT__ADDR_TCP && parts->scheme != WEFT__ADDR_TLS
	    && parts->scheme != WEFT__ADDR_UNIX)
		return weft_fail(WEFT_EINVAL,
		                 "connect %s: not a stream address; use tcp, tls or unix", address);
	return 0;
}

static int
stream_connect_start(const char *address, const weft_stream_connect_opts *opts, weft_stream **out,
                     char *why, weft_op *op, uint64_t deadline_ns)
{
	struct weft__addr_parts parts;
	struct connection *c;
	int rc = read_address(address, &parts);

	if (rc < 0)
		return rc;
	c = stream_connect_make(op->loop, address, opts);
	if (!c)
		return weft__fail(WEFT_ENOMEM, "weft_stream_connect: out of memory");
	if (parts.scheme == WEFT__ADDR_TLS)
		rc = prepare_tls(c, &parts, opts);
	if (rc == 0)
		rc = weft__loop_open_backend(op->loop);
	if (rc == 0)
		rc = weft_op_begin(op, stream_connect_on_cancel, c, deadline_ns);
	if (rc < 0) {
		weft_tls_close(c->tls);
		weft__sys->release(c);
		return rc;
	}
	c->op = op;
	c->out = out;
	c->detail = why;
	if (parts.is_literal)
		try_all(c, &parts.addr, 1);
	else
		resolve(c, address);
	free_if_done(c);
	return 0;
}

int
weft_stream_connect_op(const char *address, const weft_stream_connect_opts *opts, weft_stream **out,
                       weft_op *op, uint64_t deadline_ns)
{
	if (!address || !out || !op)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_stream_connect_op: address, out or op is NULL");
	return stream_connect_start(address, opts, out, NULL, op, deadline_ns);
}

int
weft_stream_connect(const char *address, const weft_stream_connect_opts *opts, weft_stream **out,
                    uint64_t deadline_ns)
{
	weft_stream *stream = NULL;
	char why[WHY_SIZE] = "";
	weft_op op;
	int rc = weft__may_wait_in(deadline_ns, "weft_stream_connect");

	if (rc < 0)
		return rc;
	if (!address || !out)
		return weft__misuse(WEFT_EINVAL, "weft_stream_connect: address or out is NULL");
	weft__op_init_waited(&op);
	rc = stream_connect_start(address, opts, &stream, why, &op, deadline_ns);
	if (rc < 0)
		return rc;
	rc = (int)weft_op_wait(&op, WEFT_NEVER);
	if (rc == 0)
		*out = stream;
	return explain(address, rc, why);
}
