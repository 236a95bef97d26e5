/* redis_play.c - threadlets on two loops and plain threads that share one Redis client.  They
 * are canceled and time out; the server is slow, closes and breaks connections.
 *
 *   1. Each command ends once: with its own reply, or with an error that has a cause.
 *   2. A command that changes data is executed at most once, and exactly once if it is
 *      answered.
 *   3. All waits are bounded: everything ends by itself, and nothing is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/redis.h>
#include <weft/weft.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/redis_play.h"

enum { NEAR = 4, FAR = 3, THREADS = 2, CALLERS = NEAR + FAR + THREADS };
enum { CALLS = 5, LINE = 64 };

#define LONG_NS (2000 * WEFT_S)

static const char *const names[] = { "GET", "INCR", "BLPOP", "SET" };

struct ask {
	uint32_t id, name;
	uint32_t done; /* times executed by the server */
	uint64_t deadline_ns;
	struct once once;
};

static struct {
	struct host host, other;
	weft_redis *redis;
	weft_listener *listener;
	weft_threadlet server; /* that serves `listener` */
	char address[WEFT_ADDR_TEXT_MAX + 8];
	struct ask asks[CALLERS * CALLS];
	weft__a32 opened, ended, closed;
	weft_threadlet ids[NEAR + FAR];
	bool calm;  /* nothing goes wrong */
	bool harsh; /* faults that the library cannot hide are on */
	enum redis_spoil spoil;
} play;

/* Plant that bug now?  True at most once. */
static bool
spoils(enum redis_spoil spoil)
{
	if (play.spoil != spoil)
		return false;
	play.spoil = REDIS_SPOIL_NOTHING;
	return true;
}

static int
rest(void)
{
	return weft_sleep_until(weft_after(sim_random_below(UINT64_C(1) << sim_random_below(24))));
}

/* --- the server ------------------------------------------------------------ */

static int
hear_line(weft_stream *peer, char *line)
{
	ssize_t n = weft_stream_read_until(peer, "\r\n", line, LINE - 1, WEFT_NEVER);

	if (n <= 0)
		return -1;
	line[n - 2] = '\0';
	return 0;
}

/* Read a command; returns its first two arguments. */
static int
hear(weft_stream *peer, char words[2][LINE])
{
	char line[LINE];
	long count;

	if (hear_line(peer, line) < 0)
		return -1;
	sim_check(line[0] == '*');
	count = strtol(line + 1, NULL, 10);
	for (long i = 0; i < count; i++) {
		if (hear_line(peer, line) < 0)
			return -1;
		sim_check(line[0] == '$');
		if (hear_line(peer, line) < 0)
			return -1;
		if (i < 2)
			memcpy(words[i], line, LINE);
	}
	return 0;
}

/* Invariant 2. */
static void
count_done(const char *name, const char *key)
{
	struct ask *ask = &play.asks[strtoul(key, NULL, 10)];

	sim_check(strtoul(key, NULL, 10) < CALLERS * CALLS);
	ask->done++;
	if (ask->name > 0 && spoils(REDIS_SPOIL_AGAIN))
		ask->done++;
	if (ask->name > 0 && ask->done > 1)
		sim_fail("%s %s is done again", name, key);
}

static int
obey(weft_stream *peer, char words[2][LINE])
{
	char text[3 * LINE];
	int size;

	if (strcmp(words[0], "HELLO") == 0) {
		size = snprintf(text, sizeof(text), "%%1\r\n+proto\r\n:3\r\n");
		return (int)weft_stream_write(peer, text, (size_t)size, WEFT_NEVER);
	}
	if (strcmp(words[0], "CLIENT") == 0)
		return (int)weft_stream_write(peer, "+OK\r\n", 5, WEFT_NEVER);
	if (!play.calm && sim_random_below(32) == 0)
		return -1;
	count_done(words[0], words[1]);
	if (!play.calm && sim_random_below(32) == 0)
		return -1;
	if (sim_random_below(4) == 0 && rest() < 0)
		return -1;
	size = snprintf(text, sizeof(text), "+%s:%s\r\n", words[0], words[1]);
	return (int)weft_stream_write(peer, text, (size_t)size, WEFT_NEVER);
}

static int
serve(weft_stream *peer, void *arg)
{
	char words[2][LINE];

	(void)arg;
	while (hear(peer, words) == 0)
		if (obey(peer, words) < 0)
			break;
	weft_stream_close(peer);
	return 0;
}

static int
run_server(void *arg)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_listener *listener;
	weft_addr addr;

	(void)arg;
	play.server = weft_self();
	while (weft_listener_open("tcp://127.0.0.1:0", NULL, &play.listener) < 0)
		continue;
	sim_check(weft_listener_local(play.listener, &addr) == 0);
	sim_check(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(play.address, sizeof(play.address), "redis%s", text + 3);
	count_up(&play.opened);
	(void)weft_listener_serve(play.listener, NULL, serve, NULL, WEFT_NEVER);
	listener = play.listener;
	play.listener = NULL;
	weft_listener_close(listener);
	return 0;
}

/* --- the callers ------------------------------------------------------------- */

static struct ask *
draw_ask(uint32_t id)
{
	struct ask *ask = &play.asks[id];

	ask->id = id;
	ask->name = (uint32_t)sim_random_below(4);
	ask->deadline_ns = weft_after(play.calm ? LONG_NS : 5 * WEFT_S);
	if (!play.calm && sim_random_below(4) == 0)
		ask->deadline_ns = weft_after(sim_random_below(10 * WEFT_MS));
	return ask;
}

/* Invariant 1. */
static bool
has_cause(int rc)
{
	switch (rc) {
	case WEFT_ETIMEDOUT:
	case WEFT_ECANCELED:
	case WEFT_EPIPE:
	case WEFT_ECONNRESET:
		return !play.calm;
	default:
		return play.harsh;
	}
}

static void
judge(struct ask *ask, int rc, weft_redis_reply *reply)
{
	char tag[LINE];
	weft_span text;

	sim_check((rc == 0) == (reply != NULL));
	if (rc == 0 && spoils(REDIS_SPOIL_ERROR))
		rc = WEFT_EPROTO;
	if (rc < 0 && !has_cause(rc))
		sim_fail("%s %u tells %d: %s", names[ask->name], ask->id, rc, weft_detail());
	if (rc == 0) {
		(void)snprintf(tag, sizeof(tag), "%s:%u", names[ask->name],
		               ask->id + spoils(REDIS_SPOIL_PAIR));
		sim_check(weft_redis_text(reply, &text) == 0);
		if (strcmp(text.data, tag) != 0)
			sim_fail("%s has the reply %s", tag, (const char *)text.data);
		sim_check(ask->done > 0);
	}
	weft_redis_reply_free(reply);
}

static void
call_once(uint32_t id)
{
	struct ask *ask = draw_ask(id);
	weft_redis_reply *reply = NULL;
	char key[16];
	weft_span words[2] = { weft_text(names[ask->name]), { key, 0 } };
	int rc;

	words[1].size = (size_t)snprintf(key, sizeof(key), "%u", ask->id);
	once_begin(&ask->once);
	rc = weft_redis_call(play.redis, words, 2, &reply, ask->deadline_ns);
	judge(ask, rc, reply);
	once_end(&ask->once);
	if (spoils(REDIS_SPOIL_TWICE))
		once_end(&ask->once);
}

static int
run_caller(void *arg)
{
	uint32_t first = (uint32_t)(uintptr_t)arg * CALLS;

	for (uint32_t i = 0; i < CALLS && weft_check_canceled() == 0; i++) {
		call_once(first + i);
		(void)rest();
	}
	if (!spoils(REDIS_SPOIL_WAKE))
		count_up(&play.ended);
	return 0;
}

static void
run_thread(void *arg)
{
	uint32_t first = (uint32_t)(uintptr_t)arg * CALLS;

	for (uint32_t i = 0; i < CALLS; i++) {
		call_once(first + i);
		pause_briefly();
	}
	count_up(&play.ended);
}

/* --- the play -------------------------------------------------------------- */

static weft_threadlet
start(weft_loop *loop, weft_threadlet_fn fn, uintptr_t arg)
{
	weft_go_opts opts = { .loop = loop };
	weft_threadlet id;

	while ((id = weft_go_with(&opts, fn, (void *)arg)) < 0)
		continue;
	return id;
}

static void
begin(void)
{
	weft_redis_opts opts = { .connect_ns = play.calm ? LONG_NS : WEFT_S,
		                 .backoff_max_ns = WEFT_MS };

	host_make(&play.host);
	host_run(&play.host);
	host_make(&play.other);
	host_run(&play.other);
	(void)start(play.host.loop, run_server, 0);
	while (count_of(&play.opened) == 0)
		pause_briefly();
	opts.loop = play.host.loop;
	opts.inflight_max = 1 + (uint32_t)sim_random_below(8);
	opts.connections_max = 2 + (uint32_t)sim_random_below(3);
	if (sim_random_below(2))
		opts.cache_bytes = 1000;
	while (weft_redis_open(play.address, &opts, &play.redis) < 0)
		continue;
}

static int
close_all(void *arg)
{
	(void)arg;
	weft_redis_close(play.redis);
	(void)weft_interrupt(play.server);
	count_up(&play.closed);
	return 0;
}

void
redis_play(enum redis_spoil spoil)
{
	uint64_t threads[THREADS];

	memset(&play, 0, sizeof(play));
	play.spoil = spoil;
	play.calm = sim_random_below(4) == 0;
	play.harsh = !play.calm && sim_random_below(2);
	if (!play.harsh)
		sim_spare(SIM_MASK(SIM_RESET) | SIM_MASK(SIM_REFUSE) | SIM_MASK(SIM_ERRNO)
		          | SIM_MASK(SIM_ALLOC) | SIM_MASK(SIM_CLOCK) | SIM_MASK(SIM_THREAD));
	if (play.calm)
		sim_calm_net();
	begin();
	for (uint32_t i = 0; i < NEAR + FAR; i++)
		play.ids[i] = start(i < NEAR ? play.host.loop : play.other.loop, run_caller, i);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = thread_start("caller", run_thread,
		                          (void *)(uintptr_t)(NEAR + FAR + i));
	pause_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(18))));
	for (uint32_t i = 0; i < NEAR + FAR && !play.calm; i++)
		if (sim_random_below(8) == 0)
			(void)weft_cancel(play.ids[i]);
	sim_heal();
	await_count(&play.ended, CALLERS);
	for (uint32_t i = 0; i < THREADS; i++)
		thread_join(threads[i]);
	(void)start(play.host.loop, close_all, 0);
	await_count(&play.closed, 1);
	host_end(&play.other);
	host_end(&play.host);
	for (uint32_t i = 0; i < CALLERS * CALLS; i++)
		once_check(&play.asks[i].once);
}
