/* world.h - what tests of the window have: a loop with a window and a client.
 *
 * All are threadlets of one loop.  When the play has returned the window is closed, and
 * nothing may be left.
 */
#ifndef WEFT_TEST_ADMIN_WORLD_H
#define WEFT_TEST_ADMIN_WORLD_H

#include <weft/admin.h>
#include "unit/threadlet/crew.h"

/* Let others run until the condition holds. */
#define UNTIL(condition)                               \
	while (!(condition))                           \
		OK(weft_sleep_until(weft_after(WEFT_US)))

struct world {
	const char       *address; /* where it is opened; NULL: on the loopback */
	weft_admin_opts   opts;
	weft_admin       *admin;   /* NULL: the play has closed it */
	weft_http_client *client;
	char              url[256]; /* "http://127.0.0.1:1234" */
	char              place[WEFT_ADDR_TEXT_MAX]; /* for weft_stream_connect() */
	weft_http_field   field;   /* one more header of what is fetched */
	void            (*play)(struct world *world);
	void             *arg;     /* the test's */
};

void world_run(struct world *world, void (*play)(struct world *world));

/* A server of the test's own, which a window can be mounted on. */
struct house {
	weft_http_server *server;
	weft_listener    *listener;
	char              url[256];
};

void open_house(struct house *house);

/* A threadlet's: serve until the listener is closed. */
int serve_house(void *house);

/* A reply: its body ended by NUL; until the next call. */
struct reply {
	int    status;
	char  *body;
	size_t size;
	char   type[128], policy[512], location[128], cookie[1024], cache[64];
};

/* GET `target` of the world's window, or of another place. */
const struct reply *get(struct world *world, const char *target);
const struct reply *get_at(struct world *world, const char *url, const char *target);

/* The status of what is asked byte by byte, at a place for weft_stream_connect(). */
int raw(const char *place, const char *request);

/* Begin to fetch; the caller closes it. */
weft_http *begin_get(struct world *world, const char *target);

/* A number that stands behind `"key":` in JSON, or behind `key ` in metrics; fails the test
 * if there is none. */
double number_after(const char *text, const char *key);

/* How often `part` stands in `text`. */
int times_in(const char *text, const char *part);

/* Whether the body is well-formed JSON, without more. */
bool is_json(const char *text);

/* Read from the stream of events until the end of the next one; its data, until the next
 * call. */
const char *next_event(weft_http *http);

#endif
