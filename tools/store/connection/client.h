/* client.h - the store and its clients, as the files of the store see them.
 *
 *   1. Everything runs on one thread.  A client's requests run in order, one at a time; requests
 *      of several clients are interleaved in the order in which data arrives.
 *   2. A command does not suspend.  Replies are collected in client->out, which the client's
 *      threadlet writes.  Above output_max the client is dropped.
 *   3. A client that is to be dropped is marked CLIENT_CLOSING, and freed by its threadlet, never
 *      inside a command.  So a command may write to any client.
 *   4. A command never loses a key that it uses: store->now_ms stays the same while requests run.
 */
#ifndef STORE_CLIENT_H
#define STORE_CLIENT_H

#include <weft/weft.h>
#include "store/commands/keys.h"
#include "store/store.h"
#include "store/connection/store_reader.h"

#define LISTENERS_MAX 16

enum {
	CLIENT_AUTHENTICATED = 1 << 0, /* or no password is needed */
	CLIENT_BLOCKED       = 1 << 1, /* waits for a key */
	CLIENT_RETRY         = 1 << 2, /* its blocked request is being retried */
	CLIENT_LAST          = 1 << 3, /* close after the output is written */
	CLIENT_CLOSING       = 1 << 4, /* close at once */
};

struct client {
	struct node           node;     /* in store->clients */
	struct weft_store    *store;
	uint32_t              flags;
	uint8_t               protocol; /* 2 or 3 */
	bool                  served;   /* a request that is retried has got its reply */
	bool                  resuming; /* counted in store->resuming */
	const struct command *command;  /* the one that is running, and its arguments */
	struct slice         *argv;
	size_t                argc;
	struct key           *key;      /* argv[1]; see commands.h */
	struct reader         reader;
	struct {
		char  *data;
		size_t size, room;
	} out;                           /* replies to write */
	size_t                unwritten; /* bytes of replies that are being written */
	struct request       *blocked;   /* the request that waits for a key */
	uint64_t              deadline_ns; /* of that wait */
	struct map            channels, patterns, awaited; /* of struct interest */
	weft_stream          *stream;    /* NULL: no connection, for tests */
	weft_threadlet        threadlet;
	weft_op               input;     /* pending while the threadlet waits */
	size_t                arrived, read_max; /* see wait_for_input() */
	char                  id[8];
};

struct weft_store {
	struct memory        memory;  /* for data and client state */
	struct memory        traffic; /* for requests and replies */
	weft_store_opts      opts;
	struct reader_limits limits;
	struct string       *password;
	weft_loop           *loop;
	struct map           keys;
	struct map           awaited, channels, patterns; /* topics; awaited: names of keys */
	int64_t              now_ms;  /* wall clock, read once for each batch of input */
	int64_t            (*clock_ms)(void);
	int64_t              start_ms;
	struct map           clients; /* by ID */
	size_t               blocked_count;
	uint64_t             last_id;
	struct topic        *ready, **ready_end; /* changed keys that clients wait for */
	weft_listener       *listeners[LISTENERS_MAX];
	bool                 closing;
	uint32_t             resuming; /* clients that were served, and have not run since */
	uint32_t             refs;    /* open store, clients, listeners */
	weft_store_closed_fn on_closed;
	void                *closed_arg;
	size_t               commands; /* that have run */
};

/* --- client.c: from bytes to requests, and from replies to bytes -------------- */

struct client *client_new(struct weft_store *store);
void           client_free(struct client *client);

/* Reset the state of the client, as RESET does. */
void client_reset(struct client *client);

/* Run the complete requests in `data`, until one blocks.  Returns how many bytes they had. */
size_t client_run(struct client *client, const char *data, size_t size);

/* Serve the stream of a client, and free the client.  The function of its threadlet. */
int client_serve(void *client);

/* Have the threadlet write the output, or run more requests. */
void client_wake(struct client *client);

/* Make the threadlet close the connection. */
void client_drop(struct client *client);

/* --- store_server.c ------------------------------------------------------------ */

/* Drop a reference.  The last one frees the store. */
void store_unref(struct weft_store *store);

/* Free it now, and its clients without a stream.  Returns the number of bytes leaked. */
size_t store_free(struct weft_store *store);

/* --- store_blocking.c: clients that wait for keys ------------------------------- */

/* Block the client until one of `count` keys, from argv[first] on, changes so that the request
 * gets a reply.  `timeout_ms` 0: no timeout. */
void client_block(struct client *client, size_t first, size_t count, int64_t timeout_ms);

/* End the wait, if there is one.  The caller has replied. */
void client_unblock(struct client *client);

/* A key has changed.  Clients that wait for it are served after the command. */
void block_key_changed(struct weft_store *store, struct slice name);
void block_serve(struct weft_store *store);

/* --- pubsub.c: names that clients are interested in ------------------------------- */

/* A name in a map of topics, with the clients in the order in which they came. */
struct topic {
	struct node      node;
	struct map      *topics;
	struct interest *first, *last;
	bool             is_ready; /* in store->ready */
	struct topic    *next_ready;
	char             name[];
};

/* The same name in a client's map. */
struct interest {
	struct node      node;
	struct client   *client;
	struct topic    *topic;
	struct interest *next, *previous; /* of the topic */
	char             name[];
};

/* Add an interest, unless the client has it; remove all. */
void topic_join(struct client *client, struct map *interests, struct map *topics,
                struct slice name);
void topic_leave_all(struct map *interests);

/* Free a topic, unless it has clients or is in store->ready. */
void topic_release(struct topic *topic);

static inline size_t
client_subscriptions(const struct client *client)
{
	return map_count(&client->channels) + map_count(&client->patterns);
}

#endif
