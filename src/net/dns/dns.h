/* dns.h - a loop's DNS resolver: the definitions that its files share.  Private.
 *
 * The files: dns.c (the calls), dns_cache.c (queries, their waits, and cached answers),
 * dns_host.c (checks host names), dns_order.c (sorts addresses); and one of two engines that
 * send the queries: dns_ares.c, on the loop's own descriptors, with dns_wire.c and
 * dns_ares_new.c or dns_ares_old.c, and dns_system.c, on threads that block.
 *
 *   1. A resolver is created when its loop first needs one, and ends with the loop.  Only its
 *      timer hands names to an engine, so engines run on the thread's own stack, and never
 *      inside a call of the user.
 *   2. A name is KNOWN, QUEUED or QUERIED, or none of them while its answer is delivered.  The
 *      engine has the name exactly while it is QUERIED, and the name is not freed during that
 *      time.
 *   3. A wait is in the list of its name until its op is finished: by an answer or by a
 *      cancellation, whichever comes first.  The query continues without the wait.  So a late
 *      answer finds no waits, and touches no memory of the user.
 *   4. Watches and the timer do not keep the loop alive; the ops do.
 *
 * Needs: work, loop, base.  Thread: the loop's.
 */
#ifndef WEFT_NET_DNS_H
#define WEFT_NET_DNS_H

#include <weft/dns.h>
#include <weft/timer.h>
#include "loop/core/access.h"

#define WEFT__DNS_KNOWN_MAX 1024u  /* cached names; the least recently used is dropped first */
#define WEFT__DNS_QUEUE_MAX 10000u /* names that wait to be queried */
#define WEFT__DNS_ADDRS_MAX 64u    /* addresses kept of one answer, of each family */
#define WEFT__DNS_HOST_MAX  256u   /* a name with its NUL, and one spare byte */
#define WEFT__DNS_BUCKETS   1024u

/* How long answers are cached. */
#define WEFT__DNS_TTL_MIN   (1 * WEFT_S)
#define WEFT__DNS_TTL_MAX   (3600 * WEFT_S)
#define WEFT__DNS_TTL_NO    (60 * WEFT_S) /* at most, for a negative answer */
#define WEFT__DNS_TTL_UNSAID (5 * WEFT_S) /* if the server gives no TTL */

struct weft__dns;

/* The answer of an engine. */
struct weft__dns_answer {
	int      error;  /* 0, or WEFT_ENONAME, _EAGAIN, _EPROTO, _EINVAL, _ENOMEM */
	uint64_t ttl_ns; /* as the server gave it */
	uint32_t count;  /* of addresses; 0 if the answer is a host name */
	struct weft__host addrs[2 * WEFT__DNS_ADDRS_MAX];
	char     host[WEFT__DNS_HOST_MAX]; /* of an address */
};

enum {
	WEFT__DNS_NEW,    /* in no list: just created, or its answer is being delivered */
	WEFT__DNS_QUEUED, /* waits to be queried */
	WEFT__DNS_QUERIED, /* the engine has it */
	WEFT__DNS_KNOWN,  /* cached until until_ns */
};

/* An op that waits for an answer. */
struct weft__dns_wait {
	struct weft__dns_wait *next, **link; /* in the list of its name; link NULL: in no list */
	struct weft__dns_name *name;
	weft_op   *op;
	weft_addr *out;  /* array of `max`; NULL: a host name is wanted */
	char      *text; /* for the host name, of `max` bytes; or NULL */
	size_t     max;
	uint32_t   kind; /* of the addresses: SOCK_* */
	uint16_t   port;
};

/* A host name and its addresses; or an address and its host name. */
struct weft__dns_name {
	struct weft__dns_name *same;         /* the next in its bucket */
	struct weft__dns_name *next, *prev;  /* in the queue, or in `known` */
	struct weft__dns      *dns;
	struct weft__dns_wait *waits, **waits_end; /* in the order of arrival */
	uint64_t  hash;
	uint64_t  until_ns;      /* KNOWN: valid until */
	void     *found;         /* addresses, or a host name; or NULL */
	uint32_t  count;
	int       error;
	void     *job;           /* of the engine, while QUERIED */
	uint8_t   state;
	struct weft__host addr;  /* the address; family 0: `host` is the name */
	char      host[];        /* in lower case; or "" */
};

struct weft__dns_list {
	struct weft__dns_name *first, *last;
	uint32_t count;
};

/* Settings that replace those of the system; for tests. */
struct weft__dns_setup {
	const char *servers;     /* "127.0.0.1:53,..."; NULL: those of resolv_conf */
	const char *resolv_conf; /* NULL: the system's */
	bool        hosts_by_env; /* CARES_HOSTS names the hosts file */
	int         timeout_ms;  /* of the first try; 0: as configured */
	int         tries;
	uint32_t    known_max, queue_max, queries_max; /* 0: the default */
};

struct weft__dns {
	struct weft__part part;  /* first */
	weft_loop *loop;
	weft_timer timer;        /* armed while a name is QUEUED or QUERIED */
	void      *engine;       /* NULL: not open */
	uint64_t   read_ns;      /* when the configuration was read */
	bool       reopen;       /* the configuration must be read again */
	bool       ending;
	uint64_t   seed;         /* of the hashes */
	uint32_t   queries;      /* names that the engine has */
	struct weft__dns_setup set;
	struct weft__dns_list  queue, known; /* oldest first */
	struct weft__dns_name *buckets[WEFT__DNS_BUCKETS];
};

/* --- dns.c -------------------------------------------------------------- */

/* The resolver of `loop`, created on first use; NULL if out of memory. */
struct weft__dns *weft__dns_of(weft_loop *loop);

/* Resolve as weft_dns_resolve() does, as an op, which finishes with the number of addresses; `out`
 * belongs to the op until then.  Returns as every start, or WEFT_EAGAIN. */
int weft__dns_resolve_op(const char *address, weft_addr *out, size_t max, weft_op *op,
                         uint64_t deadline_ns);

/* Change the settings of a resolver that is not in use.  The texts stay the caller's.  Returns
 * 0 or WEFT_ENOMEM. */
int weft__dns_set_up(weft_loop *loop, const struct weft__dns_setup *setup);

/* --- dns_cache.c -------------------------------------------------------- */

/* What to query: the addresses of `host`, or, if that is NULL, the name of `addr`. */
struct weft__dns_key {
	const char              *host; /* in lower case */
	const struct weft__host *addr;
};

/* The cached answer, if it is still valid, else NULL.  Marks it as the most recently used. */
const struct weft__dns_name *weft__dns_known(struct weft__dns *dns,
                                             const struct weft__dns_key *key);

/* Have a key queried for `wait`.  Returns 0, WEFT_ENOMEM, or WEFT_EAGAIN if the queue is full. */
int  weft__dns_want(struct weft__dns *dns, const struct weft__dns_key *key,
                    struct weft__dns_wait *wait);

/* Remove a wait. */
void weft__dns_unwant(struct weft__dns_wait *wait);

/* Take the oldest name from the queue and make it QUERIED.  NULL if there is none, or if the engine
 * takes no more. */
struct weft__dns_name *weft__dns_next(struct weft__dns *dns);

/* answered: the engine has an answer; deliver it, and cache it.  unasked: the engine gives the
 * name back without an answer. */
void weft__dns_answered(struct weft__dns_name *name, struct weft__dns_answer *answer);
void weft__dns_unasked(struct weft__dns_name *name);

/* Free all names and waits.  The ops of the waits are not finished. */
void weft__dns_clear(struct weft__dns *dns);

/* --- dns.c, for the others ---------------------------------------------- */

/* Deliver the result to a wait: finish its op, and free the wait. */
void weft__dns_deliver(struct weft__dns_wait *wait, const struct weft__dns_name *name);

/* arm: arm the timer; returns 0 or WEFT_ENOMEM.  The others move an armed timer.  run_soon: to the
 * next loop iteration.  set_timer: to the time at which the resolver has to act next; disarms the
 * timer if no name is QUEUED or QUERIED. */
int  weft__dns_arm(struct weft__dns *dns);
void weft__dns_run_soon(struct weft__dns *dns);
void weft__dns_set_timer(struct weft__dns *dns);

/* --- dns_host.c --------------------------------------------------------- */

/* Check a host name.  Returns 0 and fills `out` with the name in lower case, or WEFT_EINVAL
 * with a text that gives the reason. */
int  weft__dns_check(const char *host, size_t size, char out[WEFT__DNS_HOST_MAX]);

/* Fail because of non-ASCII letters in an address or name.  Returns WEFT_EINVAL. */
int  weft__dns_refuse_foreign(const char *text);

/* Whether a name is localhost, or below localhost: never to be queried (RFC 6761). */
bool weft__dns_is_local(const char *host);

/* Make a weft_addr. */
void weft__dns_make_addr(const struct weft__host *host, uint16_t port, uint32_t kind,
                         weft_addr *out);

/* --- dns_order.c -------------------------------------------------------- */

/* Sort addresses by RFC 6724, then alternate the families.  Addresses that cannot be reached
 * from here come last. */
void weft__dns_order(struct weft__host *hosts, uint32_t count);

/* --- the engine --------------------------------------------------------- */

/* How many names the engine takes at a time. */
extern const uint32_t weft__dns_engine_max;

/* open: returns 0 or an error.  close: gives back the names that the engine has, or lets it answer
 * them later.  `alone`: in a forked child, where the close does not use the loop, and nothing is
 * answered. */
int  weft__dns_engine_open(struct weft__dns *dns);
void weft__dns_engine_close(struct weft__dns *dns, bool alone);

/* Send the query of a name, which is QUERIED.  The answer comes later, or at once. */
void weft__dns_engine_query(struct weft__dns_name *name);

/* tick: called at the time that due returned.  due: the time of the next tick, or WEFT_NEVER. */
void     weft__dns_engine_tick(struct weft__dns *dns);
uint64_t weft__dns_engine_due(struct weft__dns *dns);

#endif
