/* store.h - the embedded store: a small in-memory RESP server in this process.
 *
 * It behaves like redis-server 7.0 for the commands that it has (docs/guide/store.md), in RESP2
 * and RESP3.  All data is in memory, by design: nothing is written to disk, and the data is lost
 * when the store is closed.  A store belongs to one loop, and does all its work on that loop's
 * thread.
 *
 * Untrusted input is limited: arguments and bytes of a request, unread output of a client,
 * clients, and the memory for data.  A web page can make a browser send requests to any port; so
 * a client that sends "POST" or "Host:" as a command is dropped.  If the system itself is out of
 * memory, the process aborts with a message, as redis-server does.
 */
#ifndef WEFT_STORE_H
#define WEFT_STORE_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/loop.h>
#include <weft/stream.h>

typedef struct weft_store weft_store;

typedef struct weft_store_opts {
	const char *password;    /* required by AUTH; default none; copied */
	size_t      memory_max;  /* for data; above it, commands that add data fail; default none */
	size_t      bulk_max;    /* of one argument; default and maximum 512 MiB */
	size_t      request_max; /* of one request; default and maximum 1 GiB */
	uint32_t    args_max;    /* arguments of one request; default 1,048,576 */
	uint32_t    inline_max;  /* of an inline command; default 64 KiB */
	size_t      output_max;  /* unread output; above it a client is dropped; default 256 MiB */
	uint32_t    clients_max; /* at once; default 10,000 */
	bool        without_password; /* listen on non-local addresses without a password */
} weft_store_opts;

/* Make an empty store on `loop` (NULL: the caller's).
 * Returns 0 and fills `out`, WEFT_ENOMEM, WEFT_EINVAL.
 * Thread: loop.  Blocks: no. */
int weft_store_open(weft_loop *loop, const weft_store_opts *opts, weft_store **out);

/* Accept clients on `address` (tcp://HOST:PORT, unix:/PATH); can be called several times.
 * `bound` (may be NULL) is filled with the actual address.  Without a password only Unix sockets
 * and loopback addresses are allowed, unless `without_password` is set.
 * Returns 0, WEFT_EPERM, or as weft_listener_open().
 * Thread: loop.  Blocks: no. */
int weft_store_listen(weft_store *store, const char *address, weft_addr *bound);

/* Serve a client on a connected stream.  Takes `stream`.
 * Returns 0, WEFT_EAGAIN if there are clients_max, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no. */
int weft_store_serve(weft_store *store, weft_stream *stream);

/* Called after weft_store_close(), when the last client and listener are gone. */
typedef void (*weft_store_closed_fn)(void *arg);

/* Close listeners and clients, and free all data.  Takes `store`; accepts NULL.  The loop must
 * run until `on_closed` (may be NULL) is called; it does not end before that.
 * Thread: loop.  Blocks: no. */
void weft_store_close(weft_store *store, weft_store_closed_fn on_closed, void *arg);

#endif
