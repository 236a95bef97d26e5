/* dns_world.h - names that tests can resolve, with either resolver.
 *
 * With c-ares, a small DNS server on this host answers (dns_world_server.c).  Without c-ares,
 * the system's resolver is replaced (dns_world_system.c).  Both know the same names:
 *
 *   v4.test, v6.test, both.test   192.0.2.1; 2001:db8::1; the two
 *   nx.test, nodata.test          no such name, no such record
 *   fail.test                     the server reports a failure
 *   held*.test                    as v4.test, once world_release() is called
 *   N.many.test                   10.0.H.L for N = 256 H + L
 *   192.0.2.1                     v4.test
 */
#ifndef WEFT_TESTS_DNS_WORLD_H
#define WEFT_TESTS_DNS_WORLD_H

#include <weft/weft.h>
#include "net/dns/dns.h"

/* Start and stop the replacement. */
void world_begin(void);
void world_end(void);

/* Returns a loop that resolves names there.  `set` may contain limits; the rest is filled in. */
weft_loop *world_loop(struct weft__dns_setup *set);

/* How often the name was queried.  The A and the AAAA query of one lookup count as one. */
int world_count(const char *name);

/* Answers all held queries, and holds no more. */
void world_release(void);

/* Moves the library's clock forward. */
void world_warp(uint64_t ns);

#endif
