/* dns_ares.h - the parts that depend on the version of c-ares.  Private.
 *
 * c-ares 1.34 replaced the call that sets socket functions.  From 1.31 on, c-ares has a cache
 * that is on by default.  One of two files is built: dns_ares_new.c from 1.34 on, else
 * dns_ares_old.c.
 */
#ifndef WEFT_NET_DNS_ARES_H
#define WEFT_NET_DNS_ARES_H

#include <ares.h>

/* The socket functions of dns_ares.c; their argument is its engine. */
extern const struct ares_socket_functions weft__dns_sockets;

/* Make c-ares use weft__dns_sockets.  Returns a status of c-ares. */
int weft__dns_set_sockets(ares_channel channel, void *engine);

/* Turn off the cache of c-ares, because dns_cache.c is the cache.  Returns the ARES_OPT_* that were
 * set in `options`. */
int weft__dns_no_cache(struct ares_options *options);

#endif
