/* http_world.h - a simulated server, and peers that use the sys table.
 *
 * The server is the library's, on its own runtime.  Peers are sockets of the simulated kernel;
 * one thread drives many of them, step by step.
 *
 * Needs: oracle.h.
 */
#ifndef WEFT_SIM_HTTP_WORLD_H
#define WEFT_SIM_HTTP_WORLD_H

#include <weft/weft.h>
#include <weft/http.h>
#include "sim/scenarios/http_reply.h"
#include "sim/scenarios/oracle.h"

/* --- the server ------------------------------------------------------------ */

struct http_route {
	const char *pattern;
	weft_http_fn fn;
};

struct http_world {
	weft_runtime *runtime;
	weft_http_server *server;
	weft_listener *listener; /* NULL: it was closed */
	struct sockaddr_in name;
	uint64_t deadline_ns;
	weft_threadlet serves;
	weft__a32 ended, closed;
	int result;              /* of weft_http_serve() */
};

struct http_world_opts {
	weft_http_server_opts server;
	weft_listener_opts listener;
	uint32_t loops;
	const char *backend;             /* NULL: chosen at random */
	const struct http_route *routes; /* ended by NULL */
	uint64_t deadline_ns;            /* for weft_http_serve(); 0: none */
};

void http_world_begin(struct http_world *world, const struct http_world_opts *opts);

/* Close the listener: accepting ends, and open connections drain. */
void http_world_close(struct http_world *world);

/* Wait until serving has ended, check that nothing is left, and free everything. */
void http_world_end(struct http_world *world);

/* --- peers ----------------------------------------------------------------- */

enum http_link {
	HTTP_LINK_NONE,
	HTTP_LINK_CONNECTING,
	HTTP_LINK_OPEN,
	HTTP_LINK_ENDED, /* the server has closed */
	HTTP_LINK_RESET, /* broken, or never connected */
};

/* A peer's connection and its data.  The caller owns the buffers. */
struct http_peer {
	int fd; /* -1: none */
	enum http_link link;
	const char *out;
	size_t out_size, out_at;
	char *in;
	size_t in_max, in_size, in_at; /* in_at: parsed up to here */
};

/* Make a socket (false: not possible now); connect it to the server; close it. */
bool http_peer_socket(struct http_peer *peer);
void http_peer_connect(struct http_peer *peer, const struct http_world *world);
void http_peer_close(struct http_peer *peer);

/* Check whether the connect has completed. */
void http_peer_look(struct http_peer *peer);

/* Send at most `most` bytes of `out`; receive at most `most`.  Returns the count. */
size_t http_peer_send(struct http_peer *peer, size_t most);
size_t http_peer_receive(struct http_peer *peer, size_t most);

static inline bool
http_peer_is_over(const struct http_peer *peer)
{
	return peer->link >= HTTP_LINK_ENDED;
}

#endif
