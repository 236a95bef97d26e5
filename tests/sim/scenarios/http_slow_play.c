/* http_slow_play.c - a crowd of slow peers, and some healthy ones.
 *
 * Peers that send nothing, that stay idle after a reply, that send a header section or a body
 * at one byte a second, or that read at that rate; and among them a few that send and read
 * normally.
 *
 *   1. A healthy peer is answered within SERVED_NS.
 *   2. A slow peer is dropped when its limit is reached: not earlier, and at most LATE_NS
 *      later.  A peer that sends headers or a body gets a 408.
 *   3. Memory is bounded: BYTES_IDLE for each idle connection so far, BYTES_SLOW for each
 *      other.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "backend/backend.h"
#include "sim/scenarios/http_load.h"

#define SERVED_NS  WEFT_S
#define LIMIT_NS   (10 * WEFT_S) /* for the header section, and the grace */
#define IDLE_NS    (20 * WEFT_S)
#define EARLY_NS   (WEFT_S / 10)
#define LATE_NS    (3 * WEFT_S)
#define TICK_NS    (20 * WEFT_MS)
#define BYTES_BASE (4u << 20) /* memory that loops keep for later use */
#define BYTES_IDLE 4096u      /* soon after it connected; later half of that */
#define BYTES_SLOW 24576u     /* with an exchange in progress */

enum { HEALTHY = 5, REPLY_BYTES = 1 << 20, IN_MAX = 1024 };

enum kind { QUIET, KEPT, HEAD, BODY, READER, HEALTHY_ONE };

struct visitor {
	struct http_peer peer;
	enum kind kind;
	uint64_t next_ns;  /* time of its next step */
	uint64_t say_ns;   /* when it sends or reads the next byte */
	uint64_t since_ns; /* when its limit began; 0: not yet */
	uint64_t asked_ns;
	uint64_t read; /* bytes in all */
	bool asks, dropped;
	char in[IN_MAX];
};

static struct {
	struct http_world world;
	struct visitor *visitors;
	uint32_t count, idle, busy; /* idle, busy: connected so far */
	size_t bytes_before;
	enum http_load_spoil spoil;
} slow;

static char large[REPLY_BYTES];

static const char *const texts[] = {
	[QUIET] = "",
	[KEPT] = "GET /small HTTP/1.1\r\nHost: sim\r\n\r\n",
	[HEAD] = "GET /small HTTP/1.1\r\nHost: sim\r\nX-Long: "
		 "......................................................\r\n",
	[BODY] = "POST /sink HTTP/1.1\r\nHost: sim\r\n"
		 "Content-Length: 10000\r\n\r\n"
		 "......................................................"
		 "......................................................",
	[READER] = "GET /large HTTP/1.1\r\nHost: sim\r\n\r\n",
	[HEALTHY_ONE] = "GET /small HTTP/1.1\r\nHost: sim\r\n\r\n",
};

/* --- the server ------------------------------------------------------------ */

static int
on_large(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, "text/plain", (weft_span){ large, sizeof(large) },
	                       WEFT_NEVER);
}

static const struct http_route routes[] = {
	{ "GET /small", http_on_small },
	{ "GET /large", on_large },
	{ "POST /sink", http_on_sink },
	{ NULL, NULL },
};

/* --- checks ---------------------------------------------------------------- */

static uint64_t
limit_of(const struct visitor *visitor)
{
	return visitor->kind == KEPT ? IDLE_NS : LIMIT_NS;
}

/* Bytes of a reply that the kernel accepts count as progress, like those that the peer reads.
 * So a reader gets its grace again when the server sees that progress at the end of the first
 * one, and once more when the kernel then fills the freed room. */
static uint64_t
latest_of(const struct visitor *visitor)
{
	return limit_of(visitor) * (visitor->kind == READER ? 3 : 1) + LATE_NS;
}

static bool
has_read(const struct visitor *visitor, const char *text)
{
	return visitor->peer.in_size >= strlen(text)
	       && memcmp(visitor->in, text, strlen(text)) == 0;
}

/* Invariant 2. */
static void
judge_end(struct visitor *visitor)
{
	uint64_t after_ns = sim_time() - visitor->since_ns;

	if (slow.spoil == HTTP_LOAD_SPOIL_HASTE)
		after_ns /= 2;
	if (visitor->kind == HEALTHY_ONE)
		sim_fail("who is not slow is dropped");
	if (!visitor->since_ns || after_ns + EARLY_NS < limit_of(visitor))
		sim_fail("one of kind %d is dropped after %llu ms", (int)visitor->kind,
		         (unsigned long long)(after_ns / WEFT_MS));
	if ((visitor->kind == HEAD || visitor->kind == BODY) && !has_read(visitor, "HTTP/1.1 408 "))
		sim_fail("one of kind %d is not told why", (int)visitor->kind);
	visitor->dropped = true;
}

static void
judge_time(const struct visitor *visitor)
{
	uint64_t now_ns = sim_time();

	if (visitor->kind == HEALTHY_ONE) {
		if (visitor->asks && now_ns - visitor->asked_ns > SERVED_NS)
			sim_fail("who is not slow waits");
	} else if (visitor->since_ns && now_ns - visitor->since_ns > latest_of(visitor)) {
		sim_fail("one of kind %d is not dropped", (int)visitor->kind);
	}
}

/* Invariant 3. */
static void
judge_memory(void)
{
	size_t bytes = sim_count_bytes() - slow.bytes_before;
	size_t most = BYTES_BASE + (size_t)slow.idle * BYTES_IDLE + (size_t)slow.busy * BYTES_SLOW;

	if (slow.spoil == HTTP_LOAD_SPOIL_MEMORY)
		bytes += most;
	if (bytes > most)
		sim_fail("%zu bytes for %u connections that are idle and %u that are not", bytes,
		         slow.idle, slow.busy);
}

/* --- peers ----------------------------------------------------------------- */

static void
ask(struct visitor *visitor)
{
	visitor->peer.out_at = 0;
	visitor->peer.in_size = 0;
	visitor->asks = true;
	visitor->asked_ns = sim_time();
}

static void
act_healthy(struct visitor *visitor)
{
	struct http_peer *peer = &visitor->peer;

	if (!visitor->asks)
		ask(visitor);
	(void)http_peer_send(peer, SIZE_MAX);
	(void)http_peer_receive(peer, IN_MAX);
	if (peer->in_size > 5 && memcmp(peer->in + peer->in_size - 5, "hello", 5) == 0
	    && slow.spoil != HTTP_LOAD_SPOIL_HOLD) {
		if (!has_read(visitor, "HTTP/1.1 200 "))
			sim_fail("not a reply");
		visitor->asks = false;
	}
	visitor->next_ns = sim_time() + TICK_NS;
}

static void
act_kept(struct visitor *visitor)
{
	(void)http_peer_send(&visitor->peer, SIZE_MAX);
	(void)http_peer_receive(&visitor->peer, IN_MAX);
	if (!visitor->since_ns && visitor->peer.out_at == visitor->peer.out_size)
		visitor->since_ns = sim_time();
	else if (!visitor->since_ns)
		visitor->next_ns = sim_time() + TICK_NS;
}

/* Is it time for the next byte? */
static bool
is_time(struct visitor *visitor)
{
	if (sim_time() < visitor->say_ns)
		return false;
	visitor->say_ns = sim_time() + WEFT_S;
	return true;
}

/* A complete header section is sent at once; only the rest is slow. */
static void
act_sender(struct visitor *visitor)
{
	struct http_peer *peer = &visitor->peer;
	const char *end = strstr(peer->out, "\r\n\r\n");
	size_t at_once = end ? (size_t)(end - peer->out) + 4 : 0;

	if (peer->out_at < at_once)
		(void)http_peer_send(peer, at_once - peer->out_at);
	else if (is_time(visitor))
		(void)http_peer_send(peer, 1);
	if (!visitor->since_ns && peer->out_at > 0 && peer->out_at >= at_once)
		visitor->since_ns = sim_time();
	if (http_peer_receive(peer, IN_MAX) > 0)
		(void)http_peer_receive(peer, IN_MAX);
}

static void
act_reader(struct visitor *visitor)
{
	struct http_peer *peer = &visitor->peer;

	(void)http_peer_send(peer, SIZE_MAX);
	if (!visitor->since_ns && peer->out_at == peer->out_size)
		visitor->since_ns = sim_time();
	/* Data that is left after the drop does not matter. */
	if (peer_wait(peer->fd, 0, 0))
		peer->link = HTTP_LINK_RESET;
	else if (is_time(visitor) && http_peer_receive(peer, 1) > 0 && peer->in_size == IN_MAX)
		peer->in_size = 0;
}

static void
act(struct visitor *visitor)
{
	struct http_peer *peer = &visitor->peer;

	visitor->next_ns = sim_time() + (visitor->kind < HEAD ? WEFT_S : WEFT_S / 4);
	if (visitor->kind == HEALTHY_ONE)
		act_healthy(visitor);
	else if (visitor->kind == KEPT)
		act_kept(visitor);
	else if (visitor->kind == READER)
		act_reader(visitor);
	else if (visitor->kind == QUIET)
		(void)http_peer_receive(peer, IN_MAX);
	else
		act_sender(visitor);
	if (slow.spoil == HTTP_LOAD_SPOIL_KEEP)
		peer->link = HTTP_LINK_OPEN;
	if (http_peer_is_over(peer))
		judge_end(visitor);
}

static uint32_t *
counter_of(const struct visitor *visitor)
{
	return visitor->kind < HEAD ? &slow.idle : &slow.busy;
}

static void
step(struct visitor *visitor)
{
	struct http_peer *peer = &visitor->peer;

	if (peer->link == HTTP_LINK_NONE) {
		sim_check(http_peer_socket(peer));
		http_peer_connect(peer, &slow.world);
		++*counter_of(visitor);
	}
	if (peer->link == HTTP_LINK_CONNECTING)
		http_peer_look(peer);
	if (peer->link == HTTP_LINK_OPEN) {
		if (visitor->kind == QUIET && !visitor->since_ns)
			visitor->since_ns = sim_time();
		act(visitor);
		judge_time(visitor);
	}
	if (visitor->dropped)
		http_peer_close(peer);
}

static bool
look_at_all(void)
{
	bool more = false;

	for (uint32_t i = 0; i < slow.count; i++) {
		struct visitor *visitor = &slow.visitors[i];

		if (!visitor->dropped && visitor->next_ns <= sim_time())
			step(visitor);
		more |= !visitor->dropped && visitor->kind != HEALTHY_ONE;
	}
	judge_memory();
	return more;
}

/* --- the play -------------------------------------------------------------- */

static void
make_visitors(const struct http_crowd *crowd)
{
	uint64_t now_ns = sim_time();

	slow.count = crowd->quiet + crowd->slow + HEALTHY;
	slow.visitors = realloc(slow.visitors, slow.count * sizeof(slow.visitors[0]));
	sim_check(slow.visitors);
	for (uint32_t i = 0; i < slow.count; i++) {
		struct visitor *visitor = &slow.visitors[i];

		memset(visitor, 0, offsetof(struct visitor, in));
		visitor->kind = i < HEALTHY                 ? HEALTHY_ONE
		                : i < HEALTHY + crowd->slow ? (enum kind)(HEAD + i % 3)
		                                            : (enum kind)(QUIET + i % 2);
		visitor->next_ns = now_ns + sim_random_below(2 * WEFT_S);
		visitor->peer = (struct http_peer){
			.fd = -1,
			.out = texts[visitor->kind],
			.out_size = strlen(texts[visitor->kind]),
			.in = visitor->in,
			.in_max = IN_MAX,
		};
	}
}

void
http_slow_play(const struct http_crowd *crowd)
{
	struct http_world_opts opts = {
		.loops = 1 + (uint32_t)sim_random_below(2),
		.routes = routes,
		.server = { .header_ns = LIMIT_NS,
		            .grace_ns = LIMIT_NS,
		            .idle_ns = IDLE_NS,
		            .request_ns = 300 * WEFT_S },
		.listener = { .connections_max = 65536 },
	};

	slow.idle = slow.busy = 0;
	slow.spoil = crowd->spoil;
	if (weft__backend_exists("epoll"))
		opts.backend = "epoll"; /* poll would take too long */
	sim_limit_fds(65000);
	sim_calm_net();
	slow.bytes_before = sim_count_bytes();
	http_world_begin(&slow.world, &opts);
	make_visitors(crowd);
	(void)sim_mask(SIM_MASK_ALL); /* this thread measures */
	while (look_at_all())
		pause_ns(TICK_NS);
	for (uint32_t i = 0; i < HEALTHY; i++)
		http_peer_close(&slow.visitors[i].peer);
	http_world_close(&slow.world);
	http_world_end(&slow.world);
}
