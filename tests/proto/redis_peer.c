/* redis_peer.c - a server that checks the Redis client, and misbehaves as configured. */
#include <unistd.h>
#include "proto/redis_peer.h"

#define WORDS       16
#define PORTS_FIRST 20000 /* below the ephemeral ports of the system */
#define PORTS       12000

struct peer_seat {
	struct peer *peer;
	weft_stream *stream;
	struct peer_seat *next;
	int64_t left; /* bytes until it closes; < 0: no limit */
	bool first, greeted, in_unit, unit_failed;
	int unit_count;
	char unit[4096]; /* replies of a transaction */
	char *words[WORDS];
	size_t count;
};

/* --- reading commands -------------------------------------------------------- */

static int
hear_number(struct peer_seat *seat, char kind, size_t *out)
{
	char line[32];
	ssize_t n = weft_stream_read_until(seat->stream, "\r\n", line, sizeof(line) - 1,
	                                   WEFT_NEVER);

	if (n <= 0)
		return -1;
	CHECK_EQ(line[0], kind);
	line[n] = '\0';
	*out = strtoul(line + 1, NULL, 10);
	return 0;
}

static void
forget(struct peer_seat *seat)
{
	for (size_t i = 0; i < seat->count; i++)
		free(seat->words[i]);
	seat->count = 0;
}

static int
hear(struct peer_seat *seat)
{
	size_t count, size;

	forget(seat);
	if (hear_number(seat, '*', &count) < 0)
		return -1;
	CHECK(count > 0 && count <= WORDS);
	for (size_t i = 0; i < count; i++) {
		if (hear_number(seat, '$', &size) < 0)
			return -1;
		seat->words[i] = calloc(1, size + 3);
		CHECK(seat->words[i]);
		seat->count++;
		if (weft_stream_read_exact(seat->stream, seat->words[i], size + 2, WEFT_NEVER) < 0)
			return -1;
		CHECK_STR(seat->words[i] + size, "\r\n");
		seat->words[i][size] = '\0';
	}
	return 0;
}

static void
keep_heard(struct peer_seat *seat)
{
	char *heard = seat->peer->heard;
	size_t used = strlen(heard), room = sizeof(seat->peer->heard) - used;

	for (size_t i = 0; i < seat->count && i < 4; i++) {
		int n = snprintf(heard + used, room, "%s%s", i ? " " : "", seat->words[i]);

		if (n < 0 || (size_t)n + 2 >= room)
			return;
		used += (size_t)n;
		room -= (size_t)n;
	}
	(void)snprintf(heard + used, room, "\n");
}

/* --- sending replies --------------------------------------------------------- */

static int
say_bytes(struct peer_seat *seat, const char *bytes, size_t size)
{
	size_t step = seat->peer->drips ? 1 : size;

	for (size_t at = 0; at < size; at += step) {
		if (weft_stream_write(seat->stream, bytes + at, step, WEFT_NEVER) < 0)
			return -1;
		if (seat->peer->drips && weft_yield() < 0)
			return -1;
	}
	return 0;
}

static int
say(struct peer_seat *seat, const char *text)
{
	size_t size = strlen(text);
	bool cut = seat->left >= 0 && size > (size_t)seat->left;

	if (cut)
		size = (size_t)seat->left;
	if (seat->left >= 0)
		seat->left -= (int64_t)size;
	if (say_bytes(seat, text, size) < 0)
		return -1;
	return cut ? -1 : 0;
}

static int
say_tag(struct peer_seat *seat)
{
	char tag[512], text[600];
	const char *key = seat->count > 1 ? seat->words[1] : "";

	if (seat->peer->pushes && say(seat, ">2\r\n+message\r\n+nobody asked\r\n") < 0)
		return -1;
	(void)snprintf(tag, sizeof(tag), "%s:%s", seat->words[0], key);
	(void)snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(tag), tag);
	return say(seat, text);
}

static int
say_big(struct peer_seat *seat, size_t size)
{
	char *text = malloc(size + 64);
	int head, rc;

	CHECK(text);
	head = snprintf(text, 64, "$%zu\r\n", size);
	memset(text + head, 'x', size);
	memcpy(text + head + (int)size, "\r\n", 3);
	rc = say(seat, text);
	free(text);
	return rc;
}

/* --- handshakes -------------------------------------------------------------- */

static bool
is(const struct peer_seat *seat, const char *name)
{
	return strcmp(seat->words[0], name) == 0;
}

static bool
may_enter(const struct peer_seat *seat, size_t at)
{
	const struct peer *peer = seat->peer;
	const char *user = peer->user ? peer->user : "default";
	bool named = at + 1 < seat->count;

	return at < seat->count && (!named || strcmp(seat->words[at], user) == 0)
	       && strcmp(seat->words[at + named], peer->password) == 0;
}

static int
greet_old(struct peer_seat *seat)
{
	struct peer *peer = seat->peer;

	if (is(seat, "AUTH")) {
		seat->greeted = peer->password && may_enter(seat, 1);
		return say_bytes(seat, seat->greeted ? "+OK\r\n" : "-ERR no entry\r\n",
		                 seat->greeted ? 5 : 15);
	}
	if (!peer->password)
		seat->greeted = true;
	if (!seat->greeted)
		return say_bytes(seat, "-NOAUTH Authentication required.\r\n", 34);
	if (is(seat, "HELLO"))
		return say_bytes(seat, "-ERR unknown command 'HELLO'\r\n", 30);
	return 1;
}

static int
greet(struct peer_seat *seat)
{
	static const char hello[] = "%2\r\n+server\r\n+peer\r\n+proto\r\n:3\r\n";
	static const char wrong[] = "-WRONGPASS invalid pair\r\n";
	static const char closed[] = "-NOAUTH HELLO must be called with AUTH\r\n";

	if (seat->peer->is_old)
		return greet_old(seat);
	if (!is(seat, "HELLO"))
		return 1;
	CHECK_STR(seat->words[1], "3");
	if (seat->peer->password && seat->count < 5)
		return say_bytes(seat, closed, sizeof(closed) - 1);
	if (seat->peer->password) {
		seat->count -= 2; /* without SETNAME and the name */
		seat->greeted = may_enter(seat, 3);
		seat->count += 2;
		if (!seat->greeted)
			return say_bytes(seat, wrong, sizeof(wrong) - 1);
	}
	seat->greeted = true;
	return say_bytes(seat, hello, sizeof(hello) - 1);
}

/* --- commands ---------------------------------------------------------------- */

static int
add_to_unit(struct peer_seat *seat)
{
	char tag[300];
	size_t used = strlen(seat->unit);

	if (is(seat, "FAIL")) {
		seat->unit_failed = true;
		return say(seat, "-ERR it fails\r\n");
	}
	(void)snprintf(tag, sizeof(tag), "%s:%s", seat->words[0],
	               seat->count > 1 ? seat->words[1] : "");
	(void)snprintf(seat->unit + used, sizeof(seat->unit) - used, "$%zu\r\n%s\r\n", strlen(tag),
	               tag);
	seat->unit_count++;
	return say(seat, "+QUEUED\r\n");
}

static int
run_unit(struct peer_seat *seat)
{
	char text[4200];

	seat->in_unit = false;
	if (seat->unit_failed)
		return say(seat, "-EXECABORT discarded\r\n");
	(void)snprintf(text, sizeof(text), "*%d\r\n%s", seat->unit_count, seat->unit);
	return say(seat, text);
}

static int
begin_unit(struct peer_seat *seat)
{
	CHECK(!seat->in_unit);
	seat->in_unit = true;
	seat->unit_failed = false;
	seat->unit_count = 0;
	seat->unit[0] = '\0';
	return say(seat, "+OK\r\n");
}

/* Wait until the client disconnects; for the key "soon", only until peer_go_on(). */
static int
block(struct peer_seat *seat)
{
	const void *data;

	if (strcmp(seat->words[1], "soon") != 0) {
		(void)weft_stream_peek(seat->stream, 1, &data, WEFT_NEVER);
		return -1;
	}
	if (weft_event_wait(&seat->peer->go_on, WEFT_NEVER) < 0)
		return -1;
	return say_tag(seat);
}

static int
subscribe(struct peer_seat *seat)
{
	char text[300];

	for (size_t i = 1; i < seat->count; i++) {
		size_t size = strlen(seat->words[i]);
		char name[20];

		(void)snprintf(name, sizeof(name), "%s", seat->words[0]);
		for (char *at = name; *at; at++)
			*at |= 0x20;
		(void)snprintf(text, sizeof(text), "%c3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n:1\r\n",
		               seat->peer->is_old ? '*' : '>', strlen(name), name, size,
		               seat->words[i]);
		if (say(seat, text) < 0)
			return -1;
	}
	return 0;
}

static int
obey_odd(struct peer_seat *seat)
{
	if (is(seat, "NIL"))
		return say(seat, seat->peer->is_old ? "$-1\r\n" : "_\r\n");
	if (is(seat, "FAIL"))
		return say(seat, "-ERR it fails\r\n");
	if (is(seat, "BIG"))
		return say_big(seat, strtoul(seat->words[1], NULL, 10));
	if (is(seat, "TWICE"))
		return say_tag(seat) < 0 ? -1 : say_tag(seat);
	if (is(seat, "JUNK"))
		return say(seat, "?junk\r\n");
	if (is(seat, "BLPOP"))
		return block(seat);
	if (is(seat, "SELECT") || is(seat, "CLIENT") || is(seat, "WATCH"))
		return say(seat, "+OK\r\n");
	if (is(seat, "EVALSHA") && !seat->peer->knows)
		return say(seat, "-NOSCRIPT No matching script.\r\n");
	if (strstr(seat->words[0], "SUBSCRIBE"))
		return subscribe(seat);
	return 1;
}

static int
obey(struct peer_seat *seat)
{
	struct peer *peer = seat->peer;
	int rc;

	keep_heard(seat);
	if (peer->is_deaf)
		return 0;
	rc = greet(seat);
	if (rc <= 0)
		return rc;
	if (!is(seat, "SELECT") && !is(seat, "CLIENT"))
		peer->commands++;
	if (seat->first && peer->dies_at > 0 && peer->commands >= peer->dies_at)
		return -1;
	if (peer->is_mute)
		return 0;
	if (peer->holds && weft_event_wait(&peer->go_on, WEFT_NEVER) < 0)
		return -1;
	if (is(seat, "EXEC"))
		return run_unit(seat);
	if (seat->in_unit)
		return add_to_unit(seat);
	if (is(seat, "MULTI"))
		return begin_unit(seat);
	rc = obey_odd(seat);
	return rc == 1 ? say_tag(seat) : rc;
}

/* --- connections ------------------------------------------------------------- */

static void
leave(struct peer_seat *seat)
{
	struct peer_seat **at = &seat->peer->seats;

	while (*at != seat)
		at = &(*at)->next;
	*at = seat->next;
	seat->peer->open--;
	seat->peer->ended++;
}

static int
sit(void *arg)
{
	struct peer_seat *seat = arg;

	while (hear(seat) == 0)
		if (obey(seat) < 0)
			break;
	forget(seat);
	leave(seat);
	if (seat->peer->resets)
		weft_stream_reset(seat->stream);
	else
		weft_stream_close(seat->stream);
	free(seat);
	return 0;
}

static int
accept_all(void *arg)
{
	struct peer *peer = arg;
	weft_listener *listener = peer->listener;
	weft_stream *stream;

	while (weft_listener_accept(listener, &stream, WEFT_NEVER) == 0) {
		weft_go_opts opts = { .background = true };
		struct peer_seat *seat = calloc(1, sizeof(*seat));

		CHECK(seat);
		seat->peer = peer;
		seat->stream = stream;
		seat->left = peer->accepted < peer->cut_count ? peer->cuts[peer->accepted] : -1;
		seat->first = peer->accepted++ == 0;
		seat->next = peer->seats;
		peer->seats = seat;
		peer->open++;
		CHECK(weft_go_with(&opts, sit, seat) > 0);
	}
	if (peer->listener == listener) /* the loop shuts down */
		peer_close(peer);
	return 0;
}

static int
listen_at(struct peer *peer, unsigned port)
{
	weft_listener_opts opts = { .tls = peer->tls };
	char text[WEFT_ADDR_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s://127.0.0.1:%u", peer->tls ? "tls" : "tcp", port);
	return weft_listener_open(text, &opts, &peer->listener);
}

/* Choose a port that is still free when the peer listens again: not one that the system gives
 * to outgoing connections. */
static void
choose_port(struct peer *peer)
{
	unsigned port = (unsigned)getpid() * 7;
	int rc;

	do {
		peer->port = PORTS_FIRST + port++ % PORTS;
		rc = listen_at(peer, peer->port);
	} while (rc == WEFT_EADDRINUSE);
	CHECK_EQ(rc, 0);
}

void
peer_open(struct peer *peer, weft_loop *loop)
{
	weft_go_opts go = { .loop = loop, .background = true };

	if (peer->port)
		OK(listen_at(peer, peer->port));
	else
		choose_port(peer);
	CHECK(weft_go_with(&go, accept_all, peer) > 0);
}

void
peer_close(struct peer *peer)
{
	weft_listener *listener = peer->listener;

	peer->listener = NULL;
	weft_listener_close(listener);
}

void
peer_go_on(struct peer *peer)
{
	OK(weft_event_set(&peer->go_on));
}

void
peer_say(struct peer *peer, const char *bytes)
{
	for (struct peer_seat *seat = peer->seats; seat; seat = seat->next)
		(void)weft_stream_write(seat->stream, bytes, strlen(bytes), WEFT_NEVER);
}

void
peer_drop(struct peer *peer)
{
	int all = peer->ended + peer->open;

	for (struct peer_seat *seat = peer->seats; seat; seat = seat->next)
		weft_stream_interrupt(seat->stream);
	UNTIL(peer->ended >= all);
}

int
peer_heard(const struct peer *peer, const char *line)
{
	size_t size = strlen(line);
	int count = 0;

	for (const char *at = peer->heard; (at = strstr(at, line)); at += size)
		count += (at == peer->heard || at[-1] == '\n') && at[size] == '\n';
	return count;
}

const char *
peer_address(const struct peer *peer, const char *user, const char *path)
{
	static char texts[4][256];
	static unsigned next;
	char *text = texts[next++ % 4];

	(void)snprintf(text, sizeof(texts[0]), "redis%s://%s127.0.0.1:%u%s", peer->tls ? "s" : "",
	               user ? user : "", peer->port, path ? path : "");
	return text;
}

/* --- the fixture -------------------------------------------------------------- */

static int
enter(void *arg)
{
	struct world *world = arg;
	struct peer *peer = &world->peer;

	OK(weft_redis_open(peer_address(peer, world->user, world->path), &world->opts,
	                   &world->redis));
	world->play(world);
	weft_redis_close(world->redis);
	peer_go_on(peer);
	UNTIL(peer->open == 0);
	if (peer->listener)
		peer_close(peer);
	return 0;
}

void
world_run(struct world *world, void (*play)(struct world *world))
{
	weft_loop *loop = make();

	world->play = play;
	peer_open(&world->peer, loop);
	(void)go_on(loop, enter, world);
	OK(weft_loop_run(loop));
	weft_loop_shutdown(loop);
	if (weft_loop_state(loop) != WEFT_STOPPED)
		OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

int
ask(struct world *world, const char *name, const char *key, uint64_t deadline_ns)
{
	const weft_span words[2] = { weft_text(name), weft_text(key) };
	weft_redis_reply *reply = NULL;
	int rc = weft_redis_call(world->redis, words, 2, &reply, deadline_ns);
	char tag[512];
	weft_span text;

	if (rc < 0) {
		CHECK(!reply);
		return rc;
	}
	OK(weft_redis_text(reply, &text));
	(void)snprintf(tag, sizeof(tag), "%s:%s", name, key);
	CHECK_STR((const char *)text.data, tag);
	weft_redis_reply_free(reply);
	return rc;
}

struct weft_redis_stats
stats_of(struct world *world)
{
	struct weft_redis_stats stats;

	OK(weft_redis_stats(world->redis, &stats));
	return stats;
}
