/* dns_world.h - names that tests can ask for, whoever is asked.
 *
 * With c-ares that is a little server on this host (dns_world_server.c), without the
 * system's resolver, replaced (dns_world_system.c).  Both know the same names:
 *
 *   v4.test, v6.test, both.test   192.0.2.1; 2001:db8::1; the two
 *   nx.test, nodata.test          no such name, no such record
 *   fail.test                     the server cannot say
 *   held*.test                    as v4.test, once world_release() is called
 *   N.many.test                   10.0.H.L for N = 256 H + L
 *   192.0.2.1                     v4.test
 */
#ifndef WEFT_TESTS_DNS_WORLD_H
#define WEFT_TESTS_DNS_WORLD_H

#include <weft/weft.h>
#include "net/dns/dns.h"

/* Begin, and end it. */
void world_begin(void);
void world_end(void);

/* A loop that asks there; `set` may have limits, and is filled in. */
weft_loop *world_loop(struct weft__dns_setup *set);

/* How often a name was asked for, counted by questions that go together. */
int world_count(const char *name);

/* Answer all that is held. */
void world_release(void);

/* Let the library's clock be so much later. */
void world_warp(uint64_t ns);

#endif
