/* dns.h - a loop's resolver, as its files share it.  Private.
 *
 * The files: dns.c (the calls), dns_cache.c (what is asked for, by whom, and what is
 * known), dns_host.c (which names are names), dns_order.c (which address is best); and
 * one of two engines that ask: dns_ares.c, on the loop's own descriptors, with dns_wire.c
 * and dns_ares_new.c or dns_ares_old.c, and dns_system.c, on threads that block.
 *
 *   1. A resolver is made at its loop's first need and ends with the loop.  Only
 *      its timer has an engine ask, so that engines run on the thread's own stack, and
 *      never inside of a call of the user's.
 *   2. A name is KNOWN, QUEUED, ASKED or none of them while it is being told.  The engine
 *      has it exactly while it is ASKED, and then it is not given back.
 *   3. A wait is in the list of its name until its op is finished: by an answer, or by
 *      being asked to end, whichever comes first.  The name goes on without it.  So an
 *      answer that is late finds nobody to tell, and nothing of the user's.
 *   4. Watches and the timer are background work: it is the ops that keep a run going.
 *
 * Needs: work, loop, base.  Thread: the loop's.
 */
#ifndef WEFT_NET_DNS_H
#define WEFT_NET_DNS_H

#include <weft/dns.h>
#include <weft/timer.h>
#include "loop/loop.h"

#define WEFT__DNS_KNOWN_MAX 1024u  /* names kept; the least recently used goes first */
#define WEFT__DNS_QUEUE_MAX 10000u /* names that wait for their turn to be asked for */
#define WEFT__DNS_PLACES    64u    /* kept of one answer, of each family */
#define WEFT__DNS_HOST_MAX  256u   /* a name with its NUL, and a byte more */
#define WEFT__DNS_BUCKETS   1024u

/* How long answers are kept. */
#define WEFT__DNS_TTL_MIN   (1 * WEFT_S)
#define WEFT__DNS_TTL_MAX   (3600 * WEFT_S)
#define WEFT__DNS_TTL_NO    (60 * WEFT_S) /* at most, of there being none */
#define WEFT__DNS_TTL_UNSAID (5 * WEFT_S) /* where nobody says */

struct weft__dns;

/* What an engine has found out. */
struct weft__dns_answer {
	int      error;  /* 0, or WEFT_ENONAME, WEFT_EAGAIN, WEFT_EPROTO, WEFT_ENOMEM */
	uint64_t ttl_ns; /* as the server said */
	uint32_t count;  /* of places; 0 if the answer is a name */
	struct weft__host places[2 * WEFT__DNS_PLACES];
	char     host[WEFT__DNS_HOST_MAX]; /* of an address */
};

enum {
	WEFT__DNS_NEW,
	WEFT__DNS_QUEUED, /* waits for its turn */
	WEFT__DNS_ASKED,  /* the engine has it */
	WEFT__DNS_KNOWN,  /* as of some time */
};

/* Somebody who waits for an answer. */
struct weft__dns_wait {
	struct weft__dns_wait *next, **link; /* of its name; link NULL: in no list */
	struct weft__dns_name *name;
	weft_op   *op;
	weft_addr *out;  /* of `max`; NULL: a name is wanted, */
	char      *text; /* here */
	size_t     max;
	uint32_t   kind; /* of the addresses */
	uint16_t   port;
};

/* A name, and where that host is; or a place, and its host's name. */
struct weft__dns_name {
	struct weft__dns_name *same;         /* the next of its bucket */
	struct weft__dns_name *next, *prev;  /* in the queue, or among those known */
	struct weft__dns      *dns;
	struct weft__dns_wait *waits, **waits_end; /* in the order they came */
	uint64_t  hash;
	uint64_t  until_ns;      /* KNOWN: it holds */
	void     *found;         /* places, or the text of a name; or NULL */
	uint32_t  count;
	int       error;
	void     *job;           /* of the engine, while ASKED */
	uint8_t   state;
	bool      stale;         /* asked for before a reset: not to be kept */
	struct weft__host place; /* family 0: it is a name */
	char      host[];        /* small letters; or "" */
};

struct weft__dns_list {
	struct weft__dns_name *first, *last;
	uint32_t count;
};

/* How it is to be different from what the system says; for tests. */
struct weft__dns_setup {
	const char *servers;     /* "127.0.0.1:53,..."; NULL: those of resolv_conf */
	const char *resolv_conf; /* NULL: the system's */
	bool        hosts_by_env; /* the hosts file is that of CARES_HOSTS */
	int         timeout_ms;  /* of the first try; 0: as configured */
	int         tries;
	uint32_t    known_max, queue_max, asked_max; /* 0: the usual */
};

struct weft__dns {
	weft_loop *loop;
	weft_timer timer;        /* armed while a name is QUEUED or ASKED */
	void      *engine;       /* NULL: not open */
	bool       reopen;       /* the configuration is to be read again */
	bool       ending;
	uint64_t   seed;         /* of the hashes */
	uint32_t   asked;        /* names the engine has */
	struct weft__dns_setup set;
	struct weft__dns_list  queue, known; /* oldest first */
	struct weft__dns_name *buckets[WEFT__DNS_BUCKETS];
};

/* --- dns.c -------------------------------------------------------------- */

/* The resolver of `loop`, made if there is none; NULL without memory. */
struct weft__dns *weft__dns_of(weft_loop *loop);

/* Make one that is different; not while it is in use.  Its texts stay the caller's.  0,
 * or WEFT_ENOMEM. */
int weft__dns_set_up(weft_loop *loop, const struct weft__dns_setup *setup);

/* --- dns_cache.c -------------------------------------------------------- */

/* Whom to ask for: `host` for where it is, or if that is NULL `place` for its name. */
struct weft__dns_key {
	const char              *host; /* small letters */
	const struct weft__host *place;
};

/* What is known of it by now, used last; or NULL. */
const struct weft__dns_name *weft__dns_known(struct weft__dns *dns,
                                             const struct weft__dns_key *key);

/* Have it found out, for `wait`.  0, or WEFT_ENOMEM, or WEFT_EAGAIN: the queue is full. */
int  weft__dns_want(struct weft__dns *dns, const struct weft__dns_key *key,
                    struct weft__dns_wait *wait);

/* Wait no more. */
void weft__dns_unwant(struct weft__dns_wait *wait);

/* The name that was asked for longest ago is out of the queue and ASKED; NULL: there is
 * none, or enough are. */
struct weft__dns_name *weft__dns_next(struct weft__dns *dns);

/* The engine has an answer, which is told and kept; or gives the name back unasked. */
void weft__dns_answered(struct weft__dns_name *name, struct weft__dns_answer *answer);
void weft__dns_unasked(struct weft__dns_name *name);

/* Forget all that is known. */
void weft__dns_forget(struct weft__dns *dns);

/* Give all names back, and waits, whose ops are not touched. */
void weft__dns_clear(struct weft__dns *dns);

/* --- dns.c, for the others ---------------------------------------------- */

/* Give a wait its result and finish its op; the wait is given back. */
void weft__dns_tell(struct weft__dns_wait *wait, const struct weft__dns_name *name);

/* See that the timer is armed; 0, or WEFT_ENOMEM.  From then on it can be moved: to the
 * next turn, or to when something is to be done; if nothing is, it is disarmed. */
int  weft__dns_arm(struct weft__dns *dns);
void weft__dns_poke(struct weft__dns *dns);
void weft__dns_set_timer(struct weft__dns *dns);

/* --- dns_host.c --------------------------------------------------------- */

/* Is it the name of a host?  0 and fills `out` with it in small letters, or WEFT_EINVAL
 * with a text that says why. */
int  weft__dns_check(const char *host, size_t size, char out[WEFT__DNS_HOST_MAX]);

/* Fail because of letters that are not ASCII, in an address or name.  WEFT_EINVAL. */
int  weft__dns_refuse_foreign(const char *text);

/* localhost, or below it: never to be asked for (RFC 6761). */
bool weft__dns_is_local(const char *host);

/* An address of ours. */
void weft__dns_make_addr(const struct weft__host *host, uint16_t port, uint32_t kind,
                         weft_addr *out);

/* --- dns_order.c -------------------------------------------------------- */

/* Best first by RFC 6724, then one of each family in turn; what cannot be reached from
 * here comes last. */
void weft__dns_order(struct weft__host *hosts, uint32_t count);

/* --- the engine --------------------------------------------------------- */

/* How many names it can be asked for at a time. */
extern const uint32_t weft__dns_engine_max;

/* Begin and end to use it.  open: 0, or an error.  close gives names back that it was
 * asked for, or answers them later; `alone`: in a forked child, without the loop's help,
 * and nothing is answered any more. */
int  weft__dns_engine_open(struct weft__dns *dns);
void weft__dns_engine_close(struct weft__dns *dns, bool alone);

/* Ask for a name that is ASKED.  It is answered later, or at once. */
void weft__dns_engine_ask(struct weft__dns_name *name);

/* It is called when its time has come, and says when that is again; or WEFT_NEVER. */
void     weft__dns_engine_tick(struct weft__dns *dns);
uint64_t weft__dns_engine_due(struct weft__dns *dns);

#endif
