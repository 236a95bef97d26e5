/* dns.c - the DNS calls, names to addresses and back, and the resolver of a loop.
 *
 * Literal addresses and cached answers are returned at once.  All other names wait
 * (dns_cache.c) until the timer, which runs on the thread's own stack, answers them (localhost)
 * or hands them to an engine.  dns.h has the invariants.
 */
#include <netinet/in.h>
#include <string.h>
#include "net/addr.h"
#include "net/dns/dns.h"
#include "threadlet/threadlet.h"

#define FAR       (WEFT_NEVER - 1)
#define REREAD_NS (60 * WEFT_S)   /* until the configuration is read again for a query */
#define AGAIN     (3600 * WEFT_S) /* a period, so that firing does not disarm the timer */

/* --- the resolver ------------------------------------------------------- */

static void on_timer(weft_timer *timer, void *arg);

int
weft__dns_arm(struct weft__dns *dns)
{
	if (weft__timer_entry(&dns->timer)->block)
		return 0;
	dns->timer.owner = dns->loop;
	weft_timer_set_background(&dns->timer, true);
	return weft__timer_arm(weft__loop_wheel(dns->loop), &dns->timer, FAR, AGAIN, on_timer, dns);
}

/* Move the timer.  With 0 it fires in the next loop iteration.  Any other time is the timeout of a
 * query: the timer fires after the answers that have arrived by then. */
static void
aim_timer(struct weft__dns *dns, uint64_t due_ns)
{
	struct weft__wheel_entry *entry = weft__timer_entry(&dns->timer);

	if (due_ns == 0)
		entry->kind &= (uint16_t)~WEFT__ENTRY_DEADLINE;
	else
		entry->kind |= WEFT__ENTRY_DEADLINE;
	(void)weft__wheel_move(weft__loop_wheel(dns->loop), entry, due_ns);
}

void
weft__dns_run_soon(struct weft__dns *dns)
{
	struct weft__wheel_entry *entry = weft__timer_entry(&dns->timer);

	if (dns->ending)
		return;
	if (entry->block) /* else no name waits, or the loop ends */
		aim_timer(dns, 0);
	weft__loop_changed(dns->loop);
}

static bool
can_query(const struct weft__dns *dns)
{
	uint32_t max = dns->set.queries_max ? dns->set.queries_max : weft__dns_engine_max;

	return dns->queue.first && dns->queries < max;
}

void
weft__dns_set_timer(struct weft__dns *dns)
{
	struct weft__wheel_entry *entry = weft__timer_entry(&dns->timer);
	uint64_t due_ns = dns->engine ? weft__dns_engine_due(dns) : FAR;

	if (!entry->block)
		return;
	if (!dns->queue.first && dns->queries == 0)
		(void)weft__wheel_drop(weft__loop_wheel(dns->loop), entry);
	else if (can_query(dns) || dns->reopen)
		aim_timer(dns, 0);
	else
		aim_timer(dns, due_ns < FAR ? due_ns : FAR);
}

static int
open_engine(struct weft__dns *dns)
{
	if (dns->engine)
		return 0;
	dns->read_ns = weft__loop_time(dns->loop);
	return weft__dns_engine_open(dns);
}

/* The configuration, which the engine reads when it opens, may have changed since then. */
static bool
is_old(const struct weft__dns *dns)
{
	return dns->engine && dns->queue.first
	       && weft__loop_time(dns->loop) - dns->read_ns >= REREAD_NS;
}

static void
answer_locally(struct weft__dns_name *name)
{
	struct weft__dns_answer answer = {
		.ttl_ns = WEFT__DNS_TTL_MAX,
		.count = 2,
		.addrs = { { .family = AF_INET6, .ip = { [15] = 1 } },
		           { .family = AF_INET, .ip = { 127, 0, 0, 1 } } },
	};

	weft__dns_answered(name, &answer);
}

static void
dns_request(struct weft__dns *dns, struct weft__dns_name *name)
{
	struct weft__dns_answer refusal = { 0 };

	if (weft__dns_is_local(name->host)) {
		answer_locally(name);
		return;
	}
	refusal.error = open_engine(dns);
	if (refusal.error < 0)
		weft__dns_answered(name, &refusal);
	else
		weft__dns_engine_query(name);
}

/* Query as many names as the engine takes.  If some are answered at once, others can follow in
 * the next loop iteration. */
static void
on_timer(weft_timer *timer, void *arg)
{
	struct weft__dns *dns = arg;
	struct weft__dns_name *name;

	(void)timer;
	if (dns->engine && (dns->reopen || is_old(dns)))
		weft__dns_engine_close(dns, false);
	dns->reopen = false;
	for (uint32_t i = 0; i < weft__dns_engine_max; i++) {
		name = weft__dns_next(dns);
		if (!name)
			break;
		dns_request(dns, name);
	}
	if (dns->engine)
		weft__dns_engine_tick(dns);
	weft__dns_set_timer(dns);
}

static struct weft__dns *
dns_at(const weft_loop *loop)
{
	return (struct weft__dns *)(void *)weft__loop_part(loop, WEFT__PART_DNS);
}

static void
dns_free(weft_loop *loop, bool alone)
{
	struct weft__dns *dns = dns_at(loop);
	struct weft__wheel_entry *entry = weft__timer_entry(&dns->timer);

	dns->ending = true;
	if (entry->block)
		(void)weft__wheel_drop(weft__loop_wheel(dns->loop), entry);
	if (dns->engine)
		weft__dns_engine_close(dns, alone);
	weft__dns_clear(dns);
	weft__loop_detach(loop, WEFT__PART_DNS);
	weft__sys->release(dns);
}

/* The loop has stopped: no caller can reach the resolver. */
static void
dns_end(weft_loop *loop)
{
	dns_free(loop, false);
}

struct weft__dns *
weft__dns_of(weft_loop *loop)
{
	static const struct weft__part_ops ops = { .ended = dns_end, .free = dns_free };
	struct weft__dns *dns = dns_at(loop);

	if (dns)
		return dns;
	dns = weft__alloc_zero(sizeof(*dns));
	if (!dns)
		return NULL;
	dns->loop = loop;
	if (weft__sys->random(&dns->seed, sizeof(dns->seed)) < 0)
		dns->seed = weft__chance();
	dns->part.ops = &ops;
	(void)weft__loop_attach(loop, WEFT__PART_DNS, &dns->part);
	return dns;
}

int
weft__dns_set_up(weft_loop *loop, const struct weft__dns_setup *setup)
{
	struct weft__dns *dns = weft__dns_of(loop);

	if (!dns)
		return WEFT_ENOMEM;
	dns->set = *setup;
	dns->reopen = true;
	return 0;
}

/* --- results ------------------------------------------------------------ */

static const char *
reason_of(int error)
{
	switch (error) {
	case WEFT_ENONAME:
		return "no such name";
	case WEFT_EAGAIN:
		return "no server could answer";
	case WEFT_EPROTO:
		return "the reply of the server is malformed";
	default:
		return weft_strerror(error);
	}
}

static int
dns_fail(int error, const char *host)
{
	return weft_fail(error, "resolve %s: %s", host, reason_of(error));
}

static int64_t
give_addresses(const struct weft__dns_wait *wait, const struct weft__dns_name *name)
{
	const struct weft__host *addrs = name->found;
	size_t count = name->count < wait->max ? name->count : wait->max;

	for (size_t i = 0; i < count; i++)
		weft__dns_make_addr(&addrs[i], wait->port, wait->kind, &wait->out[i]);
	return (int64_t)count;
}

static int64_t
give_text(const struct weft__dns_wait *wait, const struct weft__dns_name *name)
{
	size_t size = strlen(name->found);

	if (size >= wait->max)
		return weft__fail(WEFT_EMSGSIZE, "weft_dns_reverse: the name is longer than "
		                                 "its buffer");
	memcpy(wait->text, name->found, size + 1);
	return (int64_t)size;
}

static int64_t
dns_give(const struct weft__dns_wait *wait, const struct weft__dns_name *name)
{
	if (name->error < 0)
		return dns_fail(name->error, wait->out ? name->host : "an address");
	return wait->out ? give_addresses(wait, name) : give_text(wait, name);
}

void
weft__dns_deliver(struct weft__dns_wait *wait, const struct weft__dns_name *name)
{
	int64_t rc = dns_give(wait, name);

	(void)weft_op_finish(wait->op, rc);
	weft__sys->release(wait);
}

/* --- waiting ------------------------------------------------------------ */

/* A wait is canceled, on the thread's own stack. */
static void
dns_on_cancel(weft_op *op, int why, void *arg)
{
	struct weft__dns_wait *wait = arg;

	weft__dns_unwant(wait);
	weft__sys->release(wait);
	(void)weft_op_finish(op, why);
}

static int
dns_refuse(int error, const char *host)
{
	if (error != WEFT_EAGAIN)
		return dns_fail(error, host);
	return weft_fail(
		error, "resolve %s: too many names already wait to be resolved on this loop", host);
}

/* Add the wait to the query of `key`.  The caller begins the op afterwards, and removes the wait if
 * that fails. */
static int
want(struct weft__dns *dns, const struct weft__dns_key *key, struct weft__dns_wait *wait)
{
	int rc = weft__loop_is_stopping(dns->loop) ? WEFT_ESHUTDOWN
	                                           : weft__dns_want(dns, key, wait);

	return rc < 0 ? dns_refuse(rc, key->host ? key->host : "an address") : 0;
}

/* Begin an op that queries `key`, with the parameters of `request`. */
static int
dns_begin(const struct weft__dns_wait *request, const struct weft__dns_key *key,
          uint64_t deadline_ns)
{
	struct weft__dns *dns = weft__dns_of(request->op->loop);
	struct weft__dns_wait *wait = weft__sys->alloc(sizeof(*wait));
	const struct weft__dns_name *known;
	int rc = 0;

	if (!dns || !wait) {
		weft__sys->release(wait);
		return weft__fail(WEFT_ENOMEM, "weft_dns: out of memory");
	}
	*wait = *request;
	known = weft__dns_known(dns, key);
	if (!known)
		rc = want(dns, key, wait);
	if (rc == 0) {
		rc = weft_op_begin(wait->op, dns_on_cancel, wait, deadline_ns);
		if (rc < 0 && !known)
			weft__dns_unwant(wait);
	}
	if (rc < 0)
		weft__sys->release(wait);
	else if (known)
		weft__dns_deliver(wait, known);
	return rc;
}

/* Never called: the op is finished before it can be canceled. */
static void
on_no_cancel(weft_op *op, int why, void *arg)
{
	(void)op;
	(void)why;
	(void)arg;
}

/* Finish with a literal address. */
static int
finish_at_once(const struct weft__dns_wait *request, const weft_addr *addr, uint64_t deadline_ns)
{
	int rc = weft_op_begin(request->op, on_no_cancel, NULL, deadline_ns);

	if (rc < 0)
		return rc;
	request->out[0] = *addr;
	(void)weft_op_finish(request->op, 1);
	return 0;
}

/* --- resolving ---------------------------------------------------------- */

static uint32_t
kind_of(enum weft__addr_scheme scheme)
{
	return scheme == WEFT__ADDR_UDP ? SOCK_DGRAM : SOCK_STREAM;
}

static int
check_op(weft_op *op)
{
	int rc;

	if (!op || !op->loop)
		return weft__misuse(WEFT_EINVAL, "weft_dns_resolve: op is NULL or not initialized");
	rc = weft__loop_check(op->loop, "weft_dns_resolve: not on its loop's thread");
	if (rc < 0)
		return rc;
	return op->pending ? weft__misuse(WEFT_EBUSY, "weft_dns_resolve: the op is already pending")
	                   : 0;
}

static int
resolve_parts(const struct weft__addr_parts *parts, struct weft__dns_wait *request,
              uint64_t deadline_ns)
{
	char host[WEFT__DNS_HOST_MAX];
	struct weft__dns_key key = { .host = host };
	int rc;

	if (parts->scheme == WEFT__ADDR_FD)
		return weft__fail(WEFT_EINVAL, "weft_dns_resolve: fd: does not name an address");
	if (parts->is_literal)
		return finish_at_once(request, &parts->addr, deadline_ns);
	rc = weft__dns_check(parts->host, parts->host_size, host);
	if (rc < 0)
		return rc;
	request->port = parts->port;
	request->kind = kind_of(parts->scheme);
	return dns_begin(request, &key, deadline_ns);
}

/* The address parser reports what is wrong.  For non-ASCII letters there is a better hint. */
static int
split(const char *address, struct weft__addr_parts *out)
{
	int rc = weft__addr_split(address, out);

	for (size_t i = 0; rc < 0 && address[i]; i++)
		if (address[i] & 0x80)
			return weft__dns_refuse_foreign(address);
	return rc;
}

int
weft__dns_resolve_op(const char *address, weft_addr *out, size_t max, weft_op *op,
                     uint64_t deadline_ns)
{
	struct weft__dns_wait request = { .op = op, .out = out, .max = max };
	struct weft__addr_parts parts;
	int rc;

	if (!address || !out || max == 0)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_dns_resolve: address or out is NULL, or max is 0");
	rc = check_op(op);
	if (rc == 0)
		rc = split(address, &parts);
	return rc < 0 ? rc : resolve_parts(&parts, &request, deadline_ns);
}

/* The error text was set where the op was finished, not in this threadlet. */
static int
dns_set_detail(int64_t rc, const char *what)
{
	if (rc < 0)
		(void)weft_fail((int)rc, "resolve %s: %s", what, reason_of((int)rc));
	return (int)rc;
}

int
weft_dns_resolve(const char *address, weft_addr *out, size_t max, uint64_t deadline_ns)
{
	weft_op op;
	int rc = weft__may_wait_in(WEFT_NEVER, "weft_dns_resolve");

	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = weft__dns_resolve_op(address, out, max, &op, deadline_ns);
	return rc < 0 ? rc : dns_set_detail(weft__op_wait(&op, "dns"), address);
}

/* --- reverse lookup ----------------------------------------------------- */

static int
numeric_of(const weft_addr *addr, struct weft__host *out)
{
	const struct sockaddr_in *in = (const void *)addr->bytes;
	const struct sockaddr_in6 *in6 = (const void *)addr->bytes;
	int family = weft__addr_family(addr);

	*out = (struct weft__host){ .family = (uint16_t)family };
	if (family == AF_INET && addr->size >= sizeof(*in)) {
		memcpy(out->ip, &in->sin_addr, 4);
	} else if (family == AF_INET6 && addr->size >= sizeof(*in6)) {
		memcpy(out->ip, &in6->sin6_addr, 16);
		out->scope = in6->sin6_scope_id;
	} else {
		return weft__fail(WEFT_EINVAL,
		                  "weft_dns_reverse: only IP addresses have host names");
	}
	return 0;
}

int
weft_dns_reverse(const weft_addr *addr, char *out, size_t max, uint64_t deadline_ns)
{
	struct weft__host numeric;
	struct weft__dns_key key = { .addr = &numeric };
	char text[WEFT_ADDR_TEXT_MAX];
	weft_op op;
	struct weft__dns_wait request = { .op = &op, .text = out, .max = max };
	int rc;

	if (!addr || !out)
		return weft__misuse(WEFT_EINVAL, "weft_dns_reverse: addr or out is NULL");
	rc = weft__may_wait_in(WEFT_NEVER, "weft_dns_reverse");
	if (rc == 0)
		rc = numeric_of(addr, &numeric);
	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = dns_begin(&request, &key, deadline_ns);
	if (rc == 0)
		rc = (int)weft__op_wait(&op, "dns");
	if (rc < 0 && rc != WEFT_EMSGSIZE && weft_addr_format(addr, text, sizeof(text)) > 0)
		(void)dns_set_detail(rc, text);
	return rc;
}
