/* dns_cache.c - names: their waits, their queries, and their cached answers.
 *
 * One table has all names.  Its hash uses a secret of the resolver, because names may come from
 * untrusted sources.  A name that has no waits and is not KNOWN is not in the table, unless an
 * engine still has it.  See dns.h for the states.
 *
 *   1. `queue` has the names that are QUEUED, in the order they were first wanted; `known` has
 *      those KNOWN, the least recently used first; `queries` counts those QUERIED.  All are
 *      bounded.
 *   2. While an answer is delivered, its name is in no list, and has no waits but those that
 *      get the answer.  Delivery queues results and calls no callbacks, so nothing changes
 *      meanwhile.
 */
#include <string.h>
#include "net/dns/dns.h"

static const struct weft__host nowhere;

/* --- the table ---------------------------------------------------------- */

static uint64_t
mix(uint64_t h, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++) {
		h = (h ^ bytes[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

static uint64_t
hash_of(const struct weft__dns *dns, const struct weft__dns_key *key)
{
	return key->host ? mix(dns->seed, key->host, strlen(key->host))
	                 : mix(dns->seed + key->addr->family, key->addr->ip, sizeof(key->addr->ip));
}

static bool
is_same_addr(const struct weft__host *a, const struct weft__host *b)
{
	return a->family == b->family && a->scope == b->scope
	       && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static bool
is_for(const struct weft__dns_name *name, const struct weft__dns_key *key)
{
	if (key->host)
		return name->addr.family == 0 && strcmp(name->host, key->host) == 0;
	return is_same_addr(&name->addr, key->addr);
}

static struct weft__dns_name **
bucket_of(struct weft__dns *dns, uint64_t hash)
{
	return &dns->buckets[hash % WEFT__DNS_BUCKETS];
}

static struct weft__dns_name *
dns_cache_find(struct weft__dns *dns, const struct weft__dns_key *key)
{
	uint64_t hash = hash_of(dns, key);
	struct weft__dns_name *name = *bucket_of(dns, hash);

	while (name && (name->hash != hash || !is_for(name, key)))
		name = name->same;
	return name;
}

static struct weft__dns_name *
dns_cache_add(struct weft__dns *dns, const struct weft__dns_key *key)
{
	size_t size = key->host ? strlen(key->host) : 0;
	struct weft__dns_name *name = weft__alloc_zero(sizeof(*name) + size + 1);
	struct weft__dns_name **bucket;

	if (!name)
		return NULL;
	name->dns = dns;
	name->hash = hash_of(dns, key);
	name->addr = key->host ? nowhere : *key->addr;
	name->waits_end = &name->waits;
	if (size > 0)
		memcpy(name->host, key->host, size);
	bucket = bucket_of(dns, name->hash);
	name->same = *bucket;
	*bucket = name;
	return name;
}

/* The name must be in no list. */
static void
dns_cache_drop(struct weft__dns_name *name)
{
	struct weft__dns_name **link = bucket_of(name->dns, name->hash);

	while (*link != name)
		link = &(*link)->same;
	*link = name->same;
	weft__sys->release(name->found);
	weft__sys->release(name);
}

/* --- the lists ---------------------------------------------------------- */

static void
dns_cache_push(struct weft__dns_list *list, struct weft__dns_name *name, uint8_t state)
{
	name->state = state;
	name->next = NULL;
	name->prev = list->last;
	if (list->last)
		list->last->next = name;
	else
		list->first = name;
	list->last = name;
	list->count++;
}

static void
push_first(struct weft__dns_list *list, struct weft__dns_name *name, uint8_t state)
{
	name->state = state;
	name->prev = NULL;
	name->next = list->first;
	if (list->first)
		list->first->prev = name;
	else
		list->last = name;
	list->first = name;
	list->count++;
}

static void
dns_cache_take_out(struct weft__dns_list *list, struct weft__dns_name *name)
{
	if (name->prev)
		name->prev->next = name->next;
	else
		list->first = name->next;
	if (name->next)
		name->next->prev = name->prev;
	else
		list->last = name->prev;
	list->count--;
	name->state = WEFT__DNS_NEW;
}

static uint32_t
limit(uint32_t set, uint32_t usual)
{
	return set ? set : usual;
}

/* --- waits -------------------------------------------------------------- */

const struct weft__dns_name *
weft__dns_known(struct weft__dns *dns, const struct weft__dns_key *key)
{
	struct weft__dns_name *name = dns_cache_find(dns, key);

	if (!name || name->state != WEFT__DNS_KNOWN)
		return NULL;
	dns_cache_take_out(&dns->known, name);
	if (weft_loop_now(dns->loop) >= name->until_ns) {
		dns_cache_drop(name);
		return NULL;
	}
	dns_cache_push(&dns->known, name, WEFT__DNS_KNOWN);
	return name;
}

static void
add_wait(struct weft__dns_name *name, struct weft__dns_wait *wait)
{
	wait->name = name;
	wait->next = NULL;
	wait->link = name->waits_end;
	*name->waits_end = wait;
	name->waits_end = &wait->next;
}

int
weft__dns_want(struct weft__dns *dns, const struct weft__dns_key *key, struct weft__dns_wait *wait)
{
	struct weft__dns_name *name = dns_cache_find(dns, key);

	if (name && name->state == WEFT__DNS_KNOWN) { /* the answer has expired */
		dns_cache_take_out(&dns->known, name);
		dns_cache_drop(name);
		name = NULL;
	}
	if (!name) {
		if (dns->queue.count >= limit(dns->set.queue_max, WEFT__DNS_QUEUE_MAX))
			return WEFT_EAGAIN;
		name = weft__dns_arm(dns) == 0 ? dns_cache_add(dns, key) : NULL;
		if (!name)
			return WEFT_ENOMEM;
		dns_cache_push(&dns->queue, name, WEFT__DNS_QUEUED);
		weft__dns_run_soon(dns);
	}
	add_wait(name, wait);
	return 0;
}

static void
remove_wait(struct weft__dns_wait *wait)
{
	struct weft__dns_name *name = wait->name;

	*wait->link = wait->next;
	if (wait->next)
		wait->next->link = wait->link;
	else
		name->waits_end = wait->link;
	wait->link = NULL;
}

void
weft__dns_unwant(struct weft__dns_wait *wait)
{
	struct weft__dns_name *name = wait->name;

	remove_wait(wait);
	if (!name->waits && name->state == WEFT__DNS_QUEUED) {
		dns_cache_take_out(&name->dns->queue, name);
		dns_cache_drop(name);
	}
}

/* --- queries ------------------------------------------------------------ */

struct weft__dns_name *
weft__dns_next(struct weft__dns *dns)
{
	struct weft__dns_name *name = dns->queue.first;
	uint32_t max = limit(dns->set.queries_max, weft__dns_engine_max);

	if (!name || dns->queries >= max)
		return NULL;
	dns_cache_take_out(&dns->queue, name);
	name->state = WEFT__DNS_QUERIED;
	dns->queries++;
	return name;
}

static void
dns_end_query(struct weft__dns_name *name)
{
	struct weft__dns *dns = name->dns;

	weft__assert(name->state == WEFT__DNS_QUERIED && dns->queries > 0);
	name->state = WEFT__DNS_NEW;
	dns->queries--;
	if (dns->queue.first) /* the engine can take one more */
		weft__dns_run_soon(dns);
}

void
weft__dns_unasked(struct weft__dns_name *name)
{
	dns_end_query(name);
	if (name->waits)
		push_first(&name->dns->queue, name, WEFT__DNS_QUEUED);
	else
		dns_cache_drop(name);
}

/* --- answers ------------------------------------------------------------ */

static uint64_t
time_to_keep(const struct weft__dns_answer *answer)
{
	uint64_t max = answer->error ? WEFT__DNS_TTL_NO : WEFT__DNS_TTL_MAX;

	if (answer->ttl_ns < WEFT__DNS_TTL_MIN)
		return WEFT__DNS_TTL_MIN;
	return answer->ttl_ns < max ? answer->ttl_ns : max;
}

/* Put the answer into the name while it is delivered; `found` points into the answer. */
static void
show(struct weft__dns_name *name, struct weft__dns_answer *answer)
{
	if (answer->error == 0 && answer->count > 0)
		weft__dns_order(answer->addrs, answer->count);
	name->error = answer->error;
	name->count = answer->count;
	name->found = answer->count > 0 ? (void *)answer->addrs : (void *)answer->host;
}

/* Cache the answer, in memory of the name's own.  False if out of memory. */
static bool
dns_cache_keep(struct weft__dns_name *name, const struct weft__dns_answer *answer)
{
	size_t size = answer->count > 0 ? answer->count * sizeof(*answer->addrs)
	                                : strlen(answer->host) + 1;
	void *found = NULL;

	if (answer->error == 0) {
		found = weft__sys->alloc(size);
		if (!found)
			return false;
		memcpy(found, name->found, size);
	}
	name->found = found;
	name->until_ns = weft_loop_now(name->dns->loop) + time_to_keep(answer);
	return true;
}

static void
dns_deliver_all(struct weft__dns_name *name)
{
	while (name->waits) {
		struct weft__dns_wait *wait = name->waits;

		remove_wait(wait);
		weft__dns_deliver(wait, name);
	}
}

void
weft__dns_answered(struct weft__dns_name *name, struct weft__dns_answer *answer)
{
	struct weft__dns *dns = name->dns;
	bool lasts = answer->error == 0 || answer->error == WEFT_ENONAME;

	dns_end_query(name);
	show(name, answer);
	dns_deliver_all(name); /* invariant 2 */
	if (!lasts || !dns_cache_keep(name, answer)) {
		name->found = NULL;
		dns_cache_drop(name);
		return;
	}
	dns_cache_push(&dns->known, name, WEFT__DNS_KNOWN);
	if (dns->known.count > limit(dns->set.known_max, WEFT__DNS_KNOWN_MAX)) {
		name = dns->known.first;
		dns_cache_take_out(&dns->known, name);
		dns_cache_drop(name);
	}
}

/* --- dropping ----------------------------------------------------------- */

void
weft__dns_clear(struct weft__dns *dns)
{
	for (uint32_t i = 0; i < WEFT__DNS_BUCKETS; i++) {
		while (dns->buckets[i]) {
			struct weft__dns_name *name = dns->buckets[i];

			while (name->waits) {
				struct weft__dns_wait *wait = name->waits;

				remove_wait(wait);
				weft__sys->release(wait);
			}
			dns_cache_drop(name);
		}
	}
}
