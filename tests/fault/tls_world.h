/* tls_world.h - TLS contexts of a client and a server that trust each other, for the sweeps.
 *
 * The certificates are generated once, outside of the counted calls.  A build without TLS has
 * none.
 */
#ifndef WEFT_FAULT_TLS_WORLD_H
#define WEFT_FAULT_TLS_WORLD_H

#include <weft/tls.h>

#define TLS_HOST "localhost"

extern const bool tls_is_there;

/* Options for the contexts.  The files they name exist. */
weft_tls_opts tls_world_server(void);
weft_tls_opts tls_world_client(void);

#endif
