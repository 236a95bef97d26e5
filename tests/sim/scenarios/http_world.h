/* http_world.h - a server that is simulated, and peers that speak to it by the table.
 *
 * The server is the library's, on a runtime of its own.  Peers are sockets of the
 * simulated kernel, many of them to a thread, which asks each what it has to do.
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
	int result;              /* of serving */
};

struct http_world_opts {
	weft_http_server_opts server;
	weft_listener_opts listener;
	uint32_t loops;
	const char *backend;             /* NULL: drawn */
	const struct http_route *routes; /* ended by NULL */
	uint64_t deadline_ns;            /* of serving; 0: none */
};

void http_world_begin(struct http_world *world, const struct http_world_opts *opts);

/* Close the listener: accepting ends, and what is there drains. */
void http_world_close(struct http_world *world);

/* Wait until serving has ended, see that nothing is left, and give all back. */
void http_world_end(struct http_world *world);

/* --- peers ----------------------------------------------------------------- */

enum http_link {
	HTTP_LINK_NONE,
	HTTP_LINK_CONNECTING,
	HTTP_LINK_OPEN,
	HTTP_LINK_ENDED, /* the other end has said so */
	HTTP_LINK_RESET, /* or it broke, or was never there */
};

/* Where its bytes go and come from; buffers are the owner's. */
struct http_peer {
	int fd; /* -1: none */
	enum http_link link;
	const char *out;
	size_t out_size, out_at;
	char *in;
	size_t in_max, in_size, in_at; /* read up to here */
};

/* A socket, and its way to the server.  False: not now. */
bool http_peer_socket(struct http_peer *peer);
void http_peer_connect(struct http_peer *peer, const struct http_world *world);
void http_peer_close(struct http_peer *peer);

/* Has it been connected meanwhile, or not. */
void http_peer_look(struct http_peer *peer);

/* Send at most `most` bytes of `out`; receive as many.  The count. */
size_t http_peer_send(struct http_peer *peer, size_t most);
size_t http_peer_receive(struct http_peer *peer, size_t most);

static inline bool
http_peer_is_over(const struct http_peer *peer)
{
	return peer->link >= HTTP_LINK_ENDED;
}

#endif
