/* store.h - the embedded store: a small RESP server in this process, in memory.
 *
 * It speaks as redis-server 7.0 does, for the commands that it has, in RESP2 and RESP3.  All is
 * kept in memory, by design: nothing is written to a disk, and what is in the store ends with
 * it.  A store lives on one loop, and all that it does runs on that loop's thread.
 *
 * Foreign bytes are bounded: words and bytes of a request, bytes that a client leaves unread,
 * clients, the memory of data (memory_max) and of tracking (tracking_max).  A web page can make a
 * browser send requests to any port; so a client that sends "POST" or "Host:" as a command is
 * dropped.  If the system itself has no memory, the process
 * aborts with a message, as redis-server does.
 */
#ifndef WEFT_STORE_H
#define WEFT_STORE_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/loop.h>
#include <weft/stream.h>

typedef struct weft_store weft_store;

typedef struct weft_store_opts {
	const char *password;    /* that clients must AUTH with; default none; copied */
	size_t      memory_max;  /* of data; then commands that add some fail; default no bound */
	size_t      bulk_max;    /* of one word; default 512 MiB, which is also the most */
	size_t      request_max; /* of one request; default 1 GiB, which is also the most */
	uint32_t    words_max;   /* of one request; default 1,048,576 */
	uint32_t    inline_max;  /* of a request that is a plain line; default 64 KiB */
	size_t      output_max;  /* unread by a client, which is then dropped; default 256 MiB */
	uint32_t    clients_max; /* at once; default 10,000 */
	bool        debug;       /* allow DEBUG, which can hold up the loop */
	bool        without_password; /* listen beyond this machine though no password is set */
	size_t      tracking_max; /* for what clients have read that track keys; default 64 MiB, or
	                           * a sixteenth of memory_max if that is less */
	uint64_t    seed;        /* of hashes and of what is drawn; default: the system's */
} weft_store_opts;

/* Make an empty store on `loop` (NULL: the caller's).
 * Returns 0 and fills `out`, WEFT_ENOMEM, WEFT_EINVAL.
 * Thread: loop.  Blocks: no. */
int weft_store_open(weft_loop *loop, const weft_store_opts *opts, weft_store **out);

/* Serve clients at `address` (tcp://HOST:PORT, unix:/PATH), any number of them; `bound`, which may
 * be NULL, is filled with where it listens.
 * Without a password it listens at Unix sockets and loopback addresses only, unless
 * `without_password` is set.
 * Returns 0, WEFT_EPERM, or as weft_listener_open().
 * Thread: loop.  Blocks: no. */
int weft_store_listen(weft_store *store, const char *address, weft_addr *bound);

/* Serve a client on a connected stream.  Takes `stream`.
 * Returns 0, WEFT_EAGAIN if there are clients_max, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no. */
int weft_store_serve(weft_store *store, weft_stream *stream);

/* Called once the last client and listener have gone after weft_store_close(). */
typedef void (*weft_store_closed_fn)(void *arg);

/* Close listeners and clients, and drop all data.  Takes it; accepts NULL.  The loop has to run
 * until `on_closed` (may be NULL), which is called before the loop could end.
 * Thread: loop.  Blocks: no. */
void weft_store_close(weft_store *store, weft_store_closed_fn on_closed, void *arg);

#endif
