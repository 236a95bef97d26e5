/* runtime_serve.c - a complete simple server. */
#include <weft/listener.h>
#include <weft/runtime.h>
#include "base/thread.h"

struct server {
	const char *address;
	weft_peer_fn fn;
	void *arg;
};

/* Cancellation is the normal end of a server. */
static int
serve(void *arg)
{
	const struct server *server = arg;
	weft_listener *listener;
	int rc = weft_listener_open(server->address, NULL, &listener);

	if (rc < 0)
		return rc;
	rc = weft_listener_serve(listener, NULL, server->fn, server->arg, WEFT_NEVER);
	weft_listener_close(listener);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
weft_serve(const char *address, weft_peer_fn fn, void *arg)
{
	struct server server = { address, fn, arg };

	if (!address || !fn) {
		(void)weft__misuse(WEFT_EINVAL, "weft_serve: address or fn is NULL");
		return 1;
	}
	return weft_main(NULL, serve, &server);
}
