/* tls_world.h - contexts of a client and a server that trust each other, for the sweeps.
 *
 * Certificates are made once, before a sweep begins: they are the scenario's own.  Where
 * the build has no TLS there are none.
 */
#ifndef WEFT_FAULT_TLS_WORLD_H
#define WEFT_FAULT_TLS_WORLD_H

#include <weft/tls.h>

#define TLS_HOST "localhost"

extern const bool tls_is_there;

/* Options for the contexts, of files that are there. */
weft_tls_opts tls_world_server(void);
weft_tls_opts tls_world_client(void);

#endif
