/* dns_ares.c - the engine that queries servers itself: c-ares, on the loop's descriptors.
 *
 * c-ares builds the queries, reads the replies, and handles hosts files, search lists and
 * silent servers.  Its sockets are opened, used and closed by the sys table, and watched by the
 * loop.  The timer of the resolver handles timeouts.
 *
 *   1. A socket of c-ares is in the list from its opening to its close, with its watch.  c-ares
 *      calls back inside ares_process_fd(), ares_getaddrinfo() and the like.  The socket that
 *      was ready may be gone after that.
 *   2. c-ares has a pointer to each name that is QUERIED, the argument of its callback.  A single
 *      query cannot be canceled.  A query without waits is answered, and its answer cached, all
 *      the same.
 *   3. When the channel is closed, c-ares gives back all names, by their callbacks.
 *   4. c-ares reads configuration files itself, when the channel is opened, and the hosts file
 *      for each query.  It also allocates memory itself: its allocator can only be replaced for
 *      the whole process, where other code may use c-ares.
 */
#include <netdb.h>
#include <string.h>
#include <sys/uio.h>
#include <weft/watch.h>
#include "net/dns/dns.h"
#include "net/dns/dns_ares.h"
#include "net/dns/dns_wire.h"
#include "loop/io/fd.h"

#define QUERIED_MAX 256

const uint32_t weft__dns_engine_max = QUERIED_MAX;

struct engine;

struct socket {
	struct socket *next;
	struct engine *engine;
	int fd;
	weft_watch watch;
};

struct engine {
	struct weft__dns *dns;
	ares_channel channel;
	struct socket *sockets;
	int64_t negative_ttl;                        /* of the reply that is being read, or -1 */
	struct weft__dns_name *queried[QUERIED_MAX]; /* names that the engine has, or NULL */
	bool malformed[QUERIED_MAX];                 /* one of their replies was malformed */
	bool closing, alone;
};

/* --- sockets ------------------------------------------------------------ */

/* c-ares expects -1 and errno. */
static int
result_of(int64_t rc)
{
	if (rc >= 0)
		return (int)rc;
	*weft__errno() = (int)-rc;
	return -1;
}

static const struct weft__sys *
dns_ares_kernel(const struct engine *engine)
{
	return weft__loop_kernel(engine->dns->loop);
}

static struct socket **
dns_ares_find(struct engine *engine, int fd)
{
	struct socket **link = &engine->sockets;

	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	return link;
}

static ares_socket_t
open_socket(int domain, int type, int protocol, void *arg)
{
	struct engine *engine = arg;
	struct socket *s = weft__alloc_zero(sizeof(*s));
	int fd = s ? dns_ares_kernel(engine)->socket(domain, type, protocol) : -ENOMEM;

	if (fd < 0) {
		weft__sys->release(s);
		return result_of(fd);
	}
	*s = (struct socket){ .next = engine->sockets, .engine = engine, .fd = fd };
	weft__watch_set_background(&s->watch, true);
	engine->sockets = s;
	return fd;
}

static int
close_socket(ares_socket_t fd, void *arg)
{
	struct engine *engine = arg;
	struct socket **link = dns_ares_find(engine, fd), *s = *link;

	if (!s)
		return result_of(-EBADF);
	*link = s->next;
	if (!engine->alone) {
		(void)weft_watch_stop(&s->watch);
		weft__fd_forget(engine->dns->loop, fd);
	}
	weft__sys->release(s);
	return result_of(dns_ares_kernel(engine)->close(fd));
}

static int
connect_socket(ares_socket_t fd, const struct sockaddr *addr, ares_socklen_t size, void *arg)
{
	return result_of(dns_ares_kernel(arg)->connect(fd, addr, size));
}

/* --- malformed replies -------------------------------------------------- */

/* Whether a question is for the name, perhaps with a domain of the search list appended. */
static bool
is_about(const struct weft__dns_name *name, const char *question)
{
	size_t size = strlen(name->host);

	return size > 0 && strncmp(question, name->host, size) == 0
	       && (question[size] == '\0' || question[size] == '.');
}

static void
note_malformed(struct engine *engine, const void *message, size_t size)
{
	char question[WEFT__DNS_QUESTION_MAX];

	if (!weft__dns_is_malformed(message, size, question))
		return;
	for (size_t i = 0; i < QUERIED_MAX; i++)
		if (engine->queried[i] && is_about(engine->queried[i], question))
			engine->malformed[i] = true;
}

static void
note_query(struct engine *engine, struct weft__dns_name *name)
{
	size_t i = 0;

	while (i < QUERIED_MAX && engine->queried[i])
		i++;
	if (i == QUERIED_MAX)
		return;
	engine->queried[i] = name;
	engine->malformed[i] = false;
}

/* The engine no longer has the name.  Returns whether a reply for it was malformed. */
static bool
forget_query(struct engine *engine, const struct weft__dns_name *name)
{
	for (size_t i = 0; i < QUERIED_MAX; i++)
		if (engine->queried[i] == name) {
			engine->queried[i] = NULL;
			return engine->malformed[i];
		}
	return false;
}

/* tidy: wide, because c-ares defines the parameters of its functions. */
static ares_ssize_t
receive(ares_socket_t fd, void *buf, size_t size, int flags, struct sockaddr *from,
        ares_socklen_t *from_size, void *arg)
{
	struct engine *engine = arg;
	struct iovec part = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t rc;

	if (from && from_size) {
		msg.msg_name = from;
		msg.msg_namelen = *from_size;
	}
	rc = dns_ares_kernel(engine)->recvmsg(fd, &msg, flags);
	engine->negative_ttl = -1;
	if (rc >= 0 && from && from_size) { /* a complete message */
		*from_size = msg.msg_namelen;
		engine->negative_ttl = weft__dns_negative_ttl(buf, (size_t)rc);
		note_malformed(engine, buf, (size_t)rc);
	}
	return result_of(rc);
}

static ares_ssize_t
send_parts(ares_socket_t fd, const struct iovec *parts, int count, void *arg)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)parts,
		              .msg_iovlen = (size_t)count };

	return result_of(dns_ares_kernel(arg)->sendmsg(fd, &msg, 0));
}

const struct ares_socket_functions weft__dns_sockets = {
	.asocket = open_socket,
	.aclose = close_socket,
	.aconnect = connect_socket,
	.arecvfrom = receive,
	.asendv = send_parts,
};

static void
on_ready(weft_watch *watch, int what, void *arg)
{
	struct socket *s = arg;
	struct weft__dns *dns = s->engine->dns;
	int fd = s->fd;
	int broken = WEFT_EV_ERROR | WEFT_EV_HUP;

	(void)watch;
	if (what < 0)
		return; /* the loop ends, and the resolver with it */
	ares_process_fd(s->engine->channel, what & (WEFT_READABLE | broken) ? fd : ARES_SOCKET_BAD,
	                what & (WEFT_WRITABLE | broken) ? fd : ARES_SOCKET_BAD);
	weft__dns_set_timer(dns);
}

/* If the socket cannot be watched, its queries time out, and c-ares handles that. */
static void
on_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct engine *engine = arg;
	struct socket *s = *dns_ares_find(engine, fd);
	uint32_t events = (readable ? (uint32_t)WEFT_READABLE : 0)
	                  | (writable ? (uint32_t)WEFT_WRITABLE : 0);

	if (!s || engine->alone)
		return;
	if (events)
		(void)weft_watch_start(engine->dns->loop, &s->watch, fd, events, on_ready, s);
	else
		(void)weft_watch_stop(&s->watch);
}

/* --- opening and closing ------------------------------------------------ */

static struct weft__lock library_lock;

static void
library_forked(void)
{
	library_lock = (struct weft__lock){ 0 };
}

/* Once per process; c-ares counts the calls without a lock. */
static int
init_library(void)
{
	static weft__a32 registered;
	static bool ready;
	int rc = ARES_SUCCESS;

	/* If this fails, only forked children are at risk, and the next call tries again. */
	(void)weft__fork_handler(&registered, library_forked);
	weft__lock_take(&library_lock);
	if (!ready)
		rc = ares_library_init(ARES_LIB_INIT_ALL);
	ready = rc == ARES_SUCCESS;
	weft__lock_give(&library_lock);
	return rc;
}

static int
open_channel(struct engine *engine)
{
	const struct weft__dns_setup *set = &engine->dns->set;
	struct ares_options options = {
		.sock_state_cb = on_state,
		.sock_state_cb_data = engine,
		.timeout = set->timeout_ms,
		.tries = set->tries,
		.resolvconf_path = (char *)(uintptr_t)set->resolv_conf,
	};
	int mask = ARES_OPT_SOCK_STATE_CB | (set->timeout_ms ? ARES_OPT_TIMEOUTMS : 0)
	           | (set->tries ? ARES_OPT_TRIES : 0)
	           | (set->resolv_conf ? ARES_OPT_RESOLVCONF : 0);
	int rc = init_library();

	mask |= weft__dns_no_cache(&options);
	if (rc == ARES_SUCCESS)
		rc = ares_init_options(&engine->channel, &options, mask);
	if (rc != ARES_SUCCESS)
		return rc;
	rc = weft__dns_set_sockets(engine->channel, engine);
	if (rc == ARES_SUCCESS && set->servers)
		rc = ares_set_servers_ports_csv(engine->channel, set->servers);
	if (rc != ARES_SUCCESS)
		ares_destroy(engine->channel);
	return rc;
}

int
weft__dns_engine_open(struct weft__dns *dns)
{
	struct engine *engine = weft__alloc_zero(sizeof(*engine));
	int rc;

	if (!engine)
		return WEFT_ENOMEM;
	engine->dns = dns;
	engine->negative_ttl = -1;
	rc = open_channel(engine);
	if (rc != ARES_SUCCESS) {
		weft__sys->release(engine);
		return rc == ARES_ENOMEM ? WEFT_ENOMEM : WEFT_EAGAIN;
	}
	dns->engine = engine;
	return 0;
}

void
weft__dns_engine_close(struct weft__dns *dns, bool alone)
{
	struct engine *engine = dns->engine;

	engine->closing = true;
	engine->alone = alone;
	ares_destroy(engine->channel); /* invariant 3 */
	weft__assert(!engine->sockets);
	dns->engine = NULL;
	weft__sys->release(engine);
}

/* --- answers ------------------------------------------------------------ */

static int
error_of(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENODATA:
	case ARES_ENOTFOUND:
	case ARES_ENONAME:
		return WEFT_ENONAME;
	case ARES_EFORMERR:
	case ARES_EBADRESP:
		return WEFT_EPROTO;
	case ARES_EBADNAME:
		return WEFT_EINVAL;
	case ARES_ENOMEM:
		return WEFT_ENOMEM;
	default: /* no server, no reply, or the server failed or refused */
		return WEFT_EAGAIN;
	}
}

/* Whether `status` is not an answer; then the name is given back.  While the channel is being
 * closed, c-ares may report half of an answer. */
static bool
is_given_back(struct weft__dns_name *name, int status)
{
	const struct engine *engine = name->dns->engine;

	if (!engine->closing && status != ARES_EDESTRUCTION && status != ARES_ECANCELLED)
		return false;
	weft__dns_unasked(name);
	return true;
}

static uint64_t
ttl_of_no(const struct engine *engine)
{
	return engine->negative_ttl < 0 ? WEFT__DNS_TTL_UNSAID
	                                : (uint64_t)engine->negative_ttl * WEFT_S;
}

static void
read_addr(const struct sockaddr *addr, struct weft__host *out)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	*out = (struct weft__host){ .family = (uint16_t)addr->sa_family };
	if (addr->sa_family == AF_INET) {
		memcpy(out->ip, &in->sin_addr, 4);
	} else {
		memcpy(out->ip, &in6->sin6_addr, 16);
		out->scope = in6->sin6_scope_id;
	}
}

/* Take the first addresses of each family, and the smallest TTL of all records. */
static void
read_addrs(const struct ares_addrinfo *info, struct weft__dns_answer *out)
{
	uint32_t counts[2] = { 0, 0 };
	int ttl = INT32_MAX;

	for (const struct ares_addrinfo_cname *c = info->cnames; c; c = c->next)
		ttl = c->ttl < ttl ? c->ttl : ttl;
	for (const struct ares_addrinfo_node *n = info->nodes; n; n = n->ai_next) {
		bool is6 = n->ai_family == AF_INET6;

		if (!is6 && n->ai_family != AF_INET)
			continue;
		ttl = n->ai_ttl < ttl ? n->ai_ttl : ttl;
		if (counts[is6]++ < WEFT__DNS_ADDRS_MAX)
			read_addr(n->ai_addr, &out->addrs[out->count++]);
	}
	out->ttl_ns = (uint64_t)(ttl > 0 ? ttl : 0) * WEFT_S;
	if (out->count == 0)
		out->error = WEFT_ENONAME;
}

static void
on_addrs(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct weft__dns_name *name = arg;
	struct weft__dns_answer answer = { .error = error_of(status) };
	bool malformed = forget_query(name->dns->engine, name);

	(void)timeouts;
	if (!is_given_back(name, status)) {
		answer.ttl_ns = ttl_of_no(name->dns->engine);
		if (info && status == ARES_SUCCESS)
			read_addrs(info, &answer);
		/* c-ares reports only the last reply. */
		if (answer.error == WEFT_ENONAME && malformed)
			answer.error = WEFT_EPROTO;
		weft__dns_answered(name, &answer);
	}
	ares_freeaddrinfo(info);
}

static void
on_host(void *arg, int status, int timeouts, struct hostent *host)
{
	struct weft__dns_name *name = arg;
	struct weft__dns_answer answer = { .error = error_of(status),
		                           .ttl_ns = WEFT__DNS_TTL_UNSAID };
	size_t size = host && host->h_name ? strlen(host->h_name) : 0;

	(void)timeouts;
	if (is_given_back(name, status))
		return;
	if (answer.error == 0 && (size == 0 || size >= sizeof(answer.host)))
		answer.error = size == 0 ? WEFT_ENONAME : WEFT_EPROTO;
	else if (answer.error == 0)
		memcpy(answer.host, host->h_name, size + 1);
	weft__dns_answered(name, &answer);
}

/* --- querying ----------------------------------------------------------- */

void
weft__dns_engine_query(struct weft__dns_name *name)
{
	struct engine *engine = name->dns->engine;
	const struct weft__host *addr = &name->addr;
	struct ares_addrinfo_hints hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = ARES_AI_NOSORT | (name->dns->set.hosts_by_env ? ARES_AI_ENVHOSTS : 0),
	};

	engine->negative_ttl = -1;
	if (addr->family == 0)
		note_query(engine, name);
	if (addr->family == 0)
		ares_getaddrinfo(engine->channel, name->host, NULL, &hints, on_addrs, name);
	else
		ares_gethostbyaddr(engine->channel, addr->ip, addr->family == AF_INET6 ? 16 : 4,
		                   addr->family, on_host, name);
}

void
weft__dns_engine_tick(struct weft__dns *dns)
{
	struct engine *engine = dns->engine;

	ares_process_fd(engine->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* Rounded up to whole milliseconds, because c-ares has a clock of its own. */
uint64_t
weft__dns_engine_due(struct weft__dns *dns)
{
	struct engine *engine = dns->engine;
	struct timeval tv;

	if (!ares_timeout(engine->channel, NULL, &tv))
		return WEFT_NEVER;
	return weft_after((uint64_t)tv.tv_sec * WEFT_S
	                  + ((uint64_t)tv.tv_usec / 1000 + 1) * WEFT_MS);
}
