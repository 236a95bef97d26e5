/* far.c - a store that seems remote: the embedded store, if used, behind a delaying proxy.
 *
 * Both run on their own loop, so they do not affect the serving loops.  The proxy listens on a
 * local port.  It forwards what it receives in the same order, half the delay later in each
 * direction.  The only limit on the data in transit is WAY_MAX bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <store/store.h>
#include "service.h"

#define WAY_MAX    (4u << 20) /* bytes in transit, per direction */
#define READ_BYTES 65536
#define SPANS      32

struct piece {
	struct piece *next;
	uint64_t due_ns;
	size_t size;
	char data[];
};

/* One direction of a connection: a threadlet that reads, and one that writes. */
struct way {
	struct demo *demo;
	weft_stream *from, *to;
	struct piece *first, **end;
	size_t bytes;
	weft_event some, room;
};

struct far {
	struct demo *demo;
	weft_loop *loop;
	weft_store *store; /* NULL if Redis is external */
	weft_listener *listener;
	int port, error;
	bool runs;
	weft_event ready, end, gone; /* shared */
	weft_event closed;           /* set when the store is closed */
	pthread_mutex_t lock;
	char trouble[256];
};

static void
set_trouble(struct far *far, const char *text)
{
	(void)pthread_mutex_lock(&far->lock);
	(void)snprintf(far->trouble, sizeof(far->trouble), "%s", text);
	(void)pthread_mutex_unlock(&far->lock);
}

void
far_trouble(struct far *far, char *out, size_t max)
{
	(void)pthread_mutex_lock(&far->lock);
	(void)snprintf(out, max, "%s", far->trouble);
	(void)pthread_mutex_unlock(&far->lock);
}

int
far_port(const struct far *far)
{
	return far->port;
}

/* --- the proxy ---------------------------------------------------------------- */

static int
far_keep(struct way *way, const char *data, size_t size)
{
	struct piece *piece = malloc(sizeof(*piece) + size);
	uint64_t delay_ns = setting(&way->demo->settings.delay_us) * WEFT_US / 2;

	if (!piece)
		return WEFT_ENOMEM;
	piece->next = NULL;
	piece->due_ns = delay_ns ? weft_after(delay_ns) : 0;
	piece->size = size;
	memcpy(piece->data, data, size);
	*way->end = piece;
	way->end = &piece->next;
	way->bytes += size;
	return weft_event_set(&way->some);
}

static int
read_way(void *arg)
{
	struct way *way = arg;
	char *buffer = malloc(READ_BYTES);
	ssize_t rc = buffer ? 0 : WEFT_ENOMEM;

	while (rc >= 0) {
		while (rc >= 0 && way->bytes > WAY_MAX) {
			(void)weft_event_reset(&way->room);
			rc = weft_event_wait(&way->room, WEFT_NEVER);
		}
		if (rc >= 0)
			rc = weft_stream_read(way->from, buffer, READ_BYTES, WEFT_NEVER);
		if (rc > 0)
			rc = far_keep(way, buffer, (size_t)rc);
		else if (rc == 0)
			rc = WEFT_EPIPE; /* also ends the other three threadlets */
	}
	free(buffer);
	return (int)rc;
}

/* Collects the pieces that are due, at most SPANS of them. */
static size_t
due_pieces(struct way *way, weft_span *spans)
{
	uint64_t now = weft_now();
	size_t count = 0;

	for (struct piece *piece = way->first; piece && count < SPANS && piece->due_ns <= now;
	     piece = piece->next)
		spans[count++] = (weft_span){ piece->data, piece->size };
	return count;
}

static void
drop_pieces(struct way *way, size_t count)
{
	while (count-- > 0 && way->first) {
		struct piece *piece = way->first;

		way->first = piece->next;
		if (!way->first)
			way->end = &way->first;
		way->bytes -= piece->size;
		free(piece);
	}
	(void)weft_event_set(&way->room);
}

static int
write_way(void *arg)
{
	struct way *way = arg;
	weft_span spans[SPANS];
	size_t count;
	ssize_t rc = 0;

	while (rc >= 0) {
		if (!way->first) {
			(void)weft_event_reset(&way->some);
			rc = weft_event_wait(&way->some, WEFT_NEVER);
			continue;
		}
		if (way->first->due_ns > weft_now())
			rc = weft_sleep_until(way->first->due_ns);
		count = due_pieces(way, spans);
		if (rc >= 0 && count > 0) {
			rc = weft_stream_write_spans(way->to, spans, count, WEFT_NEVER);
			drop_pieces(way, count);
		}
	}
	return (int)rc;
}

static int
connect_on(struct far *far, weft_stream **out)
{
	weft_stream *theirs;
	int rc;

	if (!far->store) {
		rc = weft_stream_connect(far->demo->endpoint.upstream, NULL, out,
		                         weft_after(WEFT_S));
		set_trouble(far, rc < 0 ? weft_detail() : "");
		return rc;
	}
	rc = weft_stream_open_pair(out, &theirs);
	return rc < 0 ? rc : weft_store_serve(far->store, theirs);
}

/* The first of the four threadlets that ends also ends the connection. */
static void
carry(struct demo *demo, weft_stream *client, weft_stream *server)
{
	struct way ways[2] = { { .demo = demo, .from = client, .to = server },
		               { .demo = demo, .from = server, .to = client } };
	weft_scope scope;

	if (weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		ways[i].end = &ways[i].first;
		if (weft_scope_go(&scope, read_way, &ways[i]) < 0
		    || weft_scope_go(&scope, write_way, &ways[i]) < 0)
			weft_scope_cancel(&scope);
	}
	(void)weft_scope_close(&scope);
	for (int i = 0; i < 2; i++)
		drop_pieces(&ways[i], SIZE_MAX);
}

static int
serve_client(weft_stream *client, void *arg)
{
	struct far *far = arg;
	weft_stream *server = NULL;

	if (connect_on(far, &server) == 0)
		carry(far->demo, client, server);
	weft_stream_reset(client);
	if (server)
		weft_stream_reset(server);
	return 0;
}

static int
serve_clients(void *arg)
{
	struct far *far = arg;

	(void)weft_listener_serve(far->listener, NULL, serve_client, far, WEFT_NEVER);
	return 0;
}

/* --- start and stop ------------------------------------------------------------ */

static void
on_closed(void *arg)
{
	struct far *far = arg;

	(void)weft_event_set(&far->closed);
}

static int
open_all(struct far *far)
{
	weft_addr bound;
	char text[WEFT_ADDR_TEXT_MAX];
	int rc = 0;

	if (!far->demo->endpoint.upstream[0])
		rc = weft_store_open(NULL, NULL, &far->store);
	if (rc == 0)
		rc = weft_listener_open("tcp://127.0.0.1:0", NULL, &far->listener);
	if (rc == 0)
		rc = weft_listener_local(far->listener, &bound);
	if (rc == 0 && weft_addr_format(&bound, text, sizeof(text)) > 0)
		far->port = (int)strtol(strrchr(text, ':') + 1, NULL, 10);
	return rc;
}

/* The main threadlet of the loop.  It runs until `end` is set, and releases everything. */
static int
far_run(void *arg)
{
	struct far *far = arg;
	weft_scope scope;

	far->error = open_all(far);
	if (far->error == 0)
		far->error = weft_scope_open(&scope, 0, WEFT_NEVER);
	if (far->error == 0) {
		(void)weft_scope_go(&scope, serve_clients, far);
		(void)weft_event_set(&far->ready);
		(void)weft_event_wait(&far->end, WEFT_NEVER);
		weft_scope_cancel(&scope);
		(void)weft_scope_close(&scope);
	}
	weft_listener_close(far->listener);
	if (far->store) {
		weft_store_close(far->store, on_closed, far);
		(void)weft_event_wait(&far->closed, WEFT_NEVER);
	}
	(void)weft_event_set(&far->ready);
	(void)weft_event_set(&far->gone);
	return 0;
}

int
far_start(struct demo *demo, struct far **out)
{
	struct far *far = calloc(1, sizeof(*far));
	weft_threadlet id = 0;
	int rc;

	if (!far)
		return WEFT_ENOMEM;
	far->demo = demo;
	far->ready.flags = far->end.flags = far->gone.flags = WEFT_SHARED;
	(void)pthread_mutex_init(&far->lock, NULL);
	far->loop = weft_loop_new(&(weft_loop_opts){ .name = "store" });
	rc = far->loop ? weft_loop_start(far->loop) : WEFT_ENOMEM;
	if (rc == 0)
		id = weft_go_with(&(weft_go_opts){ .loop = far->loop, .name = "store" }, far_run,
		                  far);
	if (id < 0)
		rc = (int)id;
	far->runs = id > 0;
	if (rc == 0)
		rc = weft_event_wait(&far->ready, WEFT_NEVER);
	if (rc == 0)
		rc = far->error;
	*out = far;
	if (rc < 0) {
		far_stop(far);
		*out = NULL;
	}
	return rc;
}

void
far_stop(struct far *far)
{
	if (!far)
		return;
	(void)weft_event_set(&far->end);
	if (far->runs)
		(void)weft_event_wait(&far->gone, WEFT_NEVER);
	if (far->loop) {
		weft_loop_shutdown(far->loop);
		(void)weft_loop_wait_stopped(far->loop, weft_after(5 * WEFT_S));
		(void)weft_loop_free(far->loop);
	}
	(void)pthread_mutex_destroy(&far->lock);
	free(far);
}
