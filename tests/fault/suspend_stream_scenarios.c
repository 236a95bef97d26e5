/* suspend_stream_scenarios.c - streams and listeners, disturbed while a threadlet waits for
 * them.
 *
 * A disturbed read has taken nothing: the data is there for the next read.  A disturbed write
 * may have sent a part, and the caller does not know how much.  Whatever happened to one end,
 * the other end gets the end of the stream, or a reset if data was lost.
 */
#include <string.h>
#include <unistd.h>
#include "fault.h"
#include "stream_pair.h"
#include "suspend.h"

/* A threadlet that is canceled before it runs has closed nothing. */
static void
close_it(weft_stream **stream)
{
	weft_stream *it = *stream;

	*stream = NULL;
	weft_stream_close(it);
}

/* The result of the last read, when no more data arrives. */
static ssize_t
last_seen(weft_stream *stream)
{
	weft_scope shield;
	char buf[5000];
	ssize_t n;

	EXPECT(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER) == 0);
	do {
		n = weft_stream_read(stream, buf, sizeof(buf), WEFT_NEVER);
		if (n == WEFT_EINTR)
			(void)went_well(n, 0);
	} while (n > 0 || n == WEFT_EINTR);
	EXPECT(weft_scope_close(&shield) == 0);
	return n;
}

/* Whether a write failed because the peer is gone. */
static bool
is_lost(int64_t rc, const weft_stream *peer)
{
	return !peer && (rc == WEFT_EPIPE || rc == WEFT_ECONNRESET);
}

/* --- reading -------------------------------------------------------------- */

struct pipe {
	weft_stream *in, *out;
	size_t spoken, heard;
};

#define TEXT      "abcd-efgh-ijkl\nmnop"
#define TEXT_SIZE (sizeof(TEXT) - 1)

static void
heard(struct pipe *pipe, const void *bytes, ssize_t size)
{
	if (size <= 0)
		return;
	EXPECT(pipe->heard + (size_t)size <= TEXT_SIZE);
	EXPECT(memcmp(bytes, &TEXT[pipe->heard], (size_t)size) == 0);
	pipe->heard += (size_t)size;
}

static ssize_t
read_some(struct pipe *pipe)
{
	char buf[2];
	ssize_t n = pipe->in ? weft_stream_read(pipe->in, buf, sizeof(buf), WEFT_NEVER)
	                     : WEFT_ESHUTDOWN;

	heard(pipe, buf, n);
	return n > 0 ? 1 : n;
}

static ssize_t
read_four(struct pipe *pipe)
{
	char buf[4];
	ssize_t n = pipe->in ? weft_stream_read_exact(pipe->in, buf, 4, WEFT_NEVER)
	                     : WEFT_ESHUTDOWN;

	heard(pipe, buf, n);
	return n;
}

static ssize_t
read_line(struct pipe *pipe)
{
	char buf[TEXT_SIZE];
	ssize_t n = WEFT_ESHUTDOWN;

	if (pipe->in)
		n = weft_stream_read_until(pipe->in, "\n", buf, sizeof(buf), WEFT_NEVER);

	heard(pipe, buf, n);
	return n > 0 ? 1 : n;
}

static ssize_t
peek_three(struct pipe *pipe)
{
	const void *seen;
	ssize_t n = pipe->in ? weft_stream_peek(pipe->in, 3, &seen, WEFT_NEVER) : WEFT_ESHUTDOWN;

	if (n >= 3) {
		heard(pipe, seen, 3);
		EXPECT(weft_stream_skip(pipe->in, 3) == 0);
	}
	return n >= 3 ? 3 : n;
}

static int
hear(void *arg)
{
	struct pipe *pipe = arg;
	enum went went;

	uses_stream(&pipe->in);
	RETRY(went, how(read_some(pipe), 1));
	if (went == WELL)
		RETRY(went, how(read_four(pipe), 4));
	if (went == WELL)
		RETRY(went, how(read_line(pipe), 1));
	if (went == WELL)
		RETRY(went, how(peek_three(pipe), 3));
	if (went == WELL)
		RETRY(went, how(read_some(pipe), 1));
	if (went == WELL)
		RETRY(went, how(read_some(pipe), 0));
	return 0;
}

/* A writer whose peer has closed gets the end of the stream, or an error because not all was
 * read. */
static void
see_end(struct pipe *pipe)
{
	ssize_t n;

	if (!pipe->in && pipe->out) {
		n = last_seen(pipe->out);
		EXPECT(n == 0 || n == WEFT_ECONNRESET);
	}
	close_it(&pipe->out);
}

/* Writes byte by byte, then half-closes. */
static int
speak(void *arg)
{
	struct pipe *pipe = arg;
	int64_t rc = 1;

	uses_stream(&pipe->out);
	for (size_t i = 0; i < TEXT_SIZE && rc == 1; i++) {
		if (i % 4 == 0)
			(void)nap(1);
		rc = weft_stream_write(pipe->out, &TEXT[i], 1, WEFT_NOWAIT);
		EXPECT(rc == 1 || is_lost(rc, pipe->in));
		pipe->spoken += rc == 1;
	}
	rc = weft_stream_shutdown(pipe->out, WEFT_NEVER);
	if (!is_lost(rc, pipe->in))
		(void)went_well(rc, 0);
	see_end(pipe);
	return 0;
}

/* Read the data that was not taken. */
static void
hear_rest(struct pipe *pipe)
{
	weft_scope shield;
	ssize_t n;

	EXPECT(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER) == 0);
	do
		n = read_some(pipe);
	while (n > 0 || (n < 0 && !went_well_shielded(n, 0)));
	EXPECT(weft_scope_close(&shield) == 0);
}

int
run_stream_read(void *arg)
{
	struct pipe pipe = { .heard = 0 };
	weft_scope scope;

	(void)arg;
	EXPECT(open_stream_pair(&pipe.in, &pipe.out) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, hear, &pipe);
	(void)start_in(&scope, NULL, speak, &pipe);
	EXPECT(weft_scope_close(&scope) == 0);
	close_it(&pipe.out);
	if (pipe.in) {
		hear_rest(&pipe);
		EXPECT(pipe.heard == pipe.spoken);
	}
	close_it(&pipe.in);
	return 0;
}

/* --- writing -------------------------------------------------------------- */

enum { MUCH = 40000, PART = 5000 };

struct load {
	weft_stream *in, *out;
	char bytes[MUCH];
	size_t got;
	bool whole; /* the write succeeded */
	int file;   /* contains the same bytes */
};

/* A reset means that some data was lost. */
static void
end_pouring(struct load *load)
{
	ssize_t n;

	if (!load->in && load->out) {
		n = last_seen(load->out);
		EXPECT(n == 0 || (n == WEFT_ECONNRESET && load->got < MUCH));
	}
	close_it(&load->out);
}

static int
pour(void *arg)
{
	struct load *load = arg;
	ssize_t n;

	uses_stream(&load->out);
	n = weft_stream_write(load->out, load->bytes, MUCH, WEFT_NEVER);
	load->whole = n == MUCH;
	if (load->whole)
		n = load->out ? weft_stream_shutdown(load->out, WEFT_NEVER) : WEFT_ESHUTDOWN;
	if (!is_lost(n, load->in))
		(void)went_well(n, load->whole ? 0 : MUCH);
	end_pouring(load);
	return 0;
}

static int
drink(void *arg)
{
	struct load *load = arg;
	char buf[PART];
	ssize_t n = 1;

	uses_stream(&load->in);
	while (n > 0 || n == WEFT_EINTR) {
		n = load->in ? weft_stream_read(load->in, buf, sizeof(buf), WEFT_NEVER)
		             : WEFT_ESHUTDOWN;
		if (n > 0) {
			EXPECT(load->got + (size_t)n <= MUCH);
			EXPECT(memcmp(buf, load->bytes + load->got, (size_t)n) == 0);
			load->got += (size_t)n;
		} else if (n < 0) {
			(void)how(n, 0);
		}
	}
	if (n == 0)
		EXPECT(load->got == MUCH || !load->whole);
	close_it(&load->in);
	return 0;
}

int
run_stream_write(void *arg)
{
	static struct load load;
	weft_scope scope;

	(void)arg;
	load.got = 0;
	load.whole = false;
	for (int i = 0; i < MUCH; i++)
		load.bytes[i] = (char)(i * 7 % 251);
	EXPECT(open_stream_pair(&load.in, &load.out) == 0);
	EXPECT(weft_stream_set(load.out, "sndbuf", 5000) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, pour, &load);
	(void)start_in(&scope, NULL, drink, &load);
	EXPECT(weft_scope_close(&scope) == 0);
	close_it(&load.in);
	close_it(&load.out);
	return 0;
}

/* The same with a file. */
static int
pour_file(void *arg)
{
	struct load *load = arg;
	int64_t n;

	uses_stream(&load->out);
	n = weft_stream_write_file(load->out, load->file, 0, MUCH, WEFT_NEVER);
	load->whole = n == MUCH;
	if (!is_lost(n, load->in))
		(void)went_well(n, MUCH);
	end_pouring(load);
	return 0;
}

int
run_stream_file(void *arg)
{
	static struct load load;
	struct stage *stage = arg;
	weft_scope scope;

	load = (struct load){ .file = stage->file };
	for (int i = 0; i < MUCH; i++)
		load.bytes[i] = (char)(i * 7 % 251);
	EXPECT(pwrite(stage->file, load.bytes, MUCH, 0) == MUCH);
	EXPECT(open_stream_pair(&load.in, &load.out) == 0);
	EXPECT(weft_stream_set(load.out, "sndbuf", 5000) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, pour_file, &load);
	(void)start_in(&scope, NULL, drink, &load);
	EXPECT(weft_scope_close(&scope) == 0);
	close_it(&load.in);
	close_it(&load.out);
	return 0;
}

/* --- descriptors ---------------------------------------------------------- */

/* A disturbed receive has taken no descriptor. */
static int
take_fds(void *arg)
{
	struct pipe *pipe = arg;
	enum went went = WELL;
	int fd = -1;

	uses_stream(&pipe->in);
	for (int i = 0; i < 3 && went == WELL && pipe->in; i++) {
		RETRY(went,
		      how(weft_stream_recv_fd(pipe->in, &fd, WEFT_NEVER), i < 2 ? 0 : WEFT_EOF));
		if (went == WELL && i < 2) {
			EXPECT(close(fd) == 0);
			pipe->heard++;
		}
	}
	return 0;
}

static int
give_fds(void *arg)
{
	struct pipe *pipe = arg;

	for (int i = 0; i < 2; i++) {
		int rc;

		(void)nap(1);
		rc = weft_stream_send_fd(pipe->out, weft_stream_fd(pipe->out), WEFT_NOWAIT);
		EXPECT(rc == 0 || is_lost(rc, pipe->in));
		pipe->spoken += rc == 0;
	}
	see_end(pipe);
	return 0;
}

int
run_stream_pass(void *arg)
{
	struct pipe pipe = { .heard = 0 };
	weft_scope scope;

	(void)arg;
	EXPECT(open_stream_pair(&pipe.in, &pipe.out) == 0);
	EXPECT(weft_stream_set(pipe.in, "fds", 1) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, take_fds, &pipe);
	(void)start_in(&scope, NULL, give_fds, &pipe);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(pipe.heard <= pipe.spoken);
	close_it(&pipe.out);
	close_it(&pipe.in);
	return 0;
}

/* --- connecting and accepting --------------------------------------------- */

struct door {
	weft_listener *listener;
	char address[WEFT_ADDR_TEXT_MAX];
	weft_stream *peer, *client;
	weft_threadlet acceptor;
};

static void
open_door(struct door *door)
{
	weft_addr addr;

	*door = (struct door){ .peer = NULL };
	EXPECT(weft_listener_open("tcp://127.0.0.1:0", NULL, &door->listener) == 0);
	EXPECT(weft_listener_local(door->listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, door->address, sizeof(door->address)) > 0);
}

static void
close_door(struct door *door)
{
	weft_listener *listener = door->listener;

	door->listener = NULL;
	weft_listener_close(listener);
}

/* A late client is refused, or was in the queue when the listener was closed. */
static enum went
try_door(struct door *door)
{
	int rc = weft_stream_connect(door->address, NULL, &door->client, WEFT_NEVER);

	if (!door->listener && (rc == WEFT_ECONNREFUSED || rc == WEFT_ECONNRESET))
		return DISTURBED;
	return how(rc, 0);
}

static int
knock(void *arg)
{
	struct door *door = arg;
	enum went went;

	uses_listener(&door->listener);
	(void)nap(1);
	RETRY(went, try_door(door));
	EXPECT((went == WELL) == (door->client != NULL));
	if (went != WELL) /* so that accept does not wait for it */
		(void)weft_interrupt(door->acceptor);
	return 0;
}

static int
let_in_or_end(void *arg)
{
	struct door *door = arg;
	int rc;

	uses_listener(&door->listener);
	do
		rc = weft_listener_accept(door->listener, &door->peer, weft_after(WEFT_S));
	while (rc == WEFT_EINTR && !door->client && target() == weft_self());
	EXPECT((rc == 0) == (door->peer != NULL));
	return 0;
}

/* An accepted client gets the end of the stream, another one a reset. */
int
run_connect(void *arg)
{
	struct door door;
	weft_scope scope;
	bool let_in;

	(void)arg;
	open_door(&door);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	door.acceptor = start_in(&scope, NULL, let_in_or_end, &door);
	(void)start_in(&scope, NULL, knock, &door);
	EXPECT(weft_scope_close(&scope) == 0);
	let_in = door.peer != NULL;
	close_it(&door.peer);
	close_door(&door);
	if (door.client)
		EXPECT(last_seen(door.client) == (let_in ? 0 : WEFT_ECONNRESET));
	close_it(&door.client);
	return 0;
}

/* --- the end -------------------------------------------------------------- */

static int
hear_the_end(void *arg)
{
	struct pipe *pipe = arg;
	char buf[4];
	enum went went;

	uses_stream(&pipe->in);
	RETRY(went, how(weft_stream_read_exact(pipe->in, buf, 4, WEFT_NEVER), WEFT_ESHUTDOWN));
	return 0;
}

static int
wait_at_door(void *arg)
{
	struct door *door = arg;
	enum went went;

	uses_listener(&door->listener);
	RETRY(went,
	      how(weft_listener_accept(door->listener, &door->peer, WEFT_NEVER), WEFT_ESHUTDOWN));
	return 0;
}

/* Closing cannot be disturbed.  A call that was disturbed before has already returned. */
int
run_stream_close(void *arg)
{
	struct pipe pipe = { .heard = 0 };
	struct door door;
	weft_scope scope;

	(void)arg;
	open_door(&door);
	EXPECT(open_stream_pair(&pipe.in, &pipe.out) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, hear_the_end, &pipe);
	(void)start_in(&scope, NULL, wait_at_door, &door);
	(void)nap(2);
	close_it(&pipe.in);
	close_door(&door);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(last_seen(pipe.out) == 0);
	close_it(&pipe.out);
	return 0;
}

/* --- planted -------------------------------------------------------------- */

/* Reports a closed stream as one that has failed. */
static int
hide_close(void *arg)
{
	struct pipe *pipe = arg;
	char byte;
	ssize_t n;

	uses_stream(&pipe->in);
	n = weft_stream_read(pipe->in, &byte, 1, WEFT_NEVER);
	(void)went_well(n == WEFT_ESHUTDOWN ? WEFT_EPROTO : n, 0);
	return 0;
}

int
plant_closed(void *arg)
{
	struct pipe pipe = { .heard = 0 };
	weft_scope scope;

	(void)arg;
	EXPECT(open_stream_pair(&pipe.in, &pipe.out) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, hide_close, &pipe);
	(void)nap(2);
	close_it(&pipe.out);
	EXPECT(weft_scope_close(&scope) == 0);
	close_it(&pipe.in);
	return 0;
}
