/* tls_world_none.c - used in a build without TLS, where the TLS scenarios do nothing. */
#include "tls_world.h"

const bool tls_is_there = false;

weft_tls_opts
tls_world_server(void)
{
	return (weft_tls_opts){ 0 };
}

weft_tls_opts
tls_world_client(void)
{
	return (weft_tls_opts){ 0 };
}
