/* dns_ares_old.c - c-ares before 1.34. */
#include "net/dns/dns_ares.h"

int
weft__dns_set_sockets(ares_channel channel, void *engine)
{
	ares_set_socket_functions(channel, &weft__dns_sockets, engine);
	return ARES_SUCCESS;
}

/* Before 1.31 c-ares caches only on request.  The cache of 1.31 to 1.33 stays on. */
int
weft__dns_no_cache(struct ares_options *options)
{
	(void)options;
	return 0;
}
