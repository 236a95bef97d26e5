/* world.h - the fixture of the admin tests: a loop with an admin endpoint and a client.
 *
 * All of them run as threadlets of one loop.  When the play function has returned, the endpoint
 * is closed, and nothing may be left.
 */
#ifndef WEFT_TEST_ADMIN_WORLD_H
#define WEFT_TEST_ADMIN_WORLD_H

#include <weft/admin.h>
#include "unit/threadlet/sched.h"

/* Let other threadlets run until the condition holds. */
#define UNTIL(condition)                               \
	while (!(condition))                           \
		OK(weft_sleep_until(weft_after(WEFT_US)))

struct world {
	const char       *address; /* to open it at; NULL: on loopback */
	weft_admin_opts   opts;
	weft_admin       *admin;   /* NULL: the play function has closed it */
	weft_http_client *client;
	char              url[256]; /* "http://127.0.0.1:1234" */
	char              place[WEFT_ADDR_TEXT_MAX]; /* for weft_stream_connect() */
	weft_http_field   field;   /* an additional request header */
	void            (*play)(struct world *world);
	void             *arg;     /* for the test */
};

void world_run(struct world *world, void (*play)(struct world *world));

/* An HTTP server of the test, on which the admin endpoint can be mounted. */
struct house {
	weft_http_server *server;
	weft_listener    *listener;
	char              url[256];
};

void open_house(struct house *house);

/* Threadlet function: serve until the listener is closed. */
int serve_house(void *house);

/* A reply.  The body is NUL-terminated.  Valid until the next call. */
struct reply {
	int    status;
	char  *body;
	size_t size;
	char   type[128], policy[512], location[128], cookie[1024], cache[64];
};

/* GET `target` from the world's admin endpoint, or from another URL. */
const struct reply *get(struct world *world, const char *target);
const struct reply *get_at(struct world *world, const char *url, const char *target);

/* Send the bytes of `request` to an address for weft_stream_connect().  Returns the status. */
int raw(const char *place, const char *request);

/* Begin a GET.  The caller closes the exchange. */
weft_http *begin_get(struct world *world, const char *target);

/* Returns the number after `"key":` in JSON, or after `key ` in metrics.  Fails the test if
 * there is none. */
double number_after(const char *text, const char *key);

/* How many times `part` occurs in `text`. */
int times_in(const char *text, const char *part);

/* Whether `text` is one well-formed JSON value and nothing else. */
bool is_json(const char *text);

/* Read the next event of the stream.  Returns its data, valid until the next call; NULL at the
 * end of the stream. */
const char *next_event(weft_http *http);

#endif
