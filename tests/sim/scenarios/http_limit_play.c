/* http_limit_play.c - the default limits of a server, and how exact limits are.
 *
 * Each guest, a peer, reaches one limit or comes close to it, and sends its body at its own
 * rate.
 *
 *   1. A guest is answered, or dropped, when its limit is reached: not earlier, and at most
 *      LATE_NS later.
 *   2. A guest gets the expected answer.
 */
#include <stddef.h>
#include <string.h>
#include "sim/scenarios/http_load.h"

#define EARLY_NS (WEFT_S / 4)
#define LATE_NS  WEFT_S
#define TICK_NS  (10 * WEFT_MS)

enum { GUESTS = 8, IN_MAX = 1024, PIECE_MAX = 64 };

#define HOST "Host: sim\r\n"
#define POST "POST /sink HTTP/1.1\r\n" HOST "Content-Length: "
#define END  "\r\n\r\n"

struct limit {
	const char *name;
	const char *text; /* sent at once */
	size_t body;      /* after it: `piece` bytes every `every_ns` */
	size_t piece;
	uint64_t every_ns;
	uint64_t told_ns;   /* when it is answered; 0: it is dropped, at */
	uint64_t gone_ns;   /* this time */
	const char *begins; /* start of the answer */
};

/* All without options.  A guest at half the minimum rate uses up its grace in twice that time,
 * less the time of the last piece. */
static const struct limit defaults[] = {
	{ .name = "silence", .text = "", .gone_ns = 10 * WEFT_S, .begins = "" },
	{ .name = "a slow head",
	  .text = "GET /small HTTP/1.1\r\nX: ",
	  .body = 1000,
	  .piece = 1,
	  .every_ns = WEFT_S,
	  .told_ns = 10 * WEFT_S,
	  .begins = "HTTP/1.1 408 " },
	{ .name = "an idle connection",
	  .text = "GET /small HTTP/1.1\r\n" HOST "\r\n",
	  .gone_ns = 60 * WEFT_S,
	  .begins = "HTTP/1.1 200 " },
	{ .name = "a body that does not come",
	  .text = POST "7000" END,
	  .told_ns = 10 * WEFT_S,
	  .begins = "HTTP/1.1 408 " },
	{ .name = "64 bytes a second",
	  .text = POST "7000" END,
	  .body = 7000,
	  .piece = 16,
	  .every_ns = WEFT_S / 4,
	  .told_ns = 39 * WEFT_S / 2,
	  .begins = "HTTP/1.1 408 " },
	{ .name = "140 bytes a second",
	  .text = POST "7000" END,
	  .body = 7000,
	  .piece = 35,
	  .every_ns = WEFT_S / 4,
	  .told_ns = 50 * WEFT_S,
	  .begins = "HTTP/1.1 200 " },
	{ .name = "a handler that does not end",
	  .text = "GET /sleep HTTP/1.1\r\n" HOST "\r\n",
	  .told_ns = 60 * WEFT_S,
	  .begins = "HTTP/1.1 500 " },
	{ .name = "a body of more than 16 MiB",
	  .text = POST "16777217" END,
	  .told_ns = 1,
	  .begins = "HTTP/1.1 413 " },
};

/* With a grace of one second: rates just below and just above the minimum. */
static const struct limit close_ones[] = {
	{ .name = "120 bytes a second",
	  .text = POST "7000" END,
	  .body = 7000,
	  .piece = 12,
	  .every_ns = WEFT_S / 10,
	  .told_ns = 144 * WEFT_S / 10,
	  .begins = "HTTP/1.1 408 " },
	{ .name = "132 bytes a second",
	  .text = POST "3960" END,
	  .body = 3960,
	  .piece = 33,
	  .every_ns = WEFT_S / 4,
	  .told_ns = 30 * WEFT_S,
	  .begins = "HTTP/1.1 200 " },
};

struct guest {
	const struct limit *limit;
	struct http_peer peer;
	uint64_t since_ns, say_ns;
	size_t said;
	bool judged;
	char in[IN_MAX];
};

static struct {
	struct http_world world;
	struct guest guests[GUESTS];
	uint32_t count;
	enum http_load_spoil spoil;
} play;

/* --- the server ------------------------------------------------------------ */

static int
on_sleep(weft_http *http, void *arg)
{
	(void)http, (void)arg;
	return weft_sleep_until(WEFT_NEVER);
}

static const struct http_route routes[] = {
	{ "GET /small", http_on_small },
	{ "POST /sink", http_on_sink },
	{ "GET /sleep", on_sleep },
	{ NULL, NULL },
};

/* --- guests ---------------------------------------------------------------- */

static uint64_t
due_ns(const struct guest *guest)
{
	return guest->limit->told_ns ? guest->limit->told_ns : guest->limit->gone_ns;
}

/* Invariant 1, also while nothing has come. */
static void
judge_time(const struct guest *guest, bool came)
{
	uint64_t after_ns = sim_time() - guest->since_ns;

	if (came && play.spoil == HTTP_LOAD_SPOIL_HASTE)
		after_ns /= 2;
	if (came && after_ns + EARLY_NS < due_ns(guest))
		sim_fail("%s has its end after %llu ms", guest->limit->name,
		         (unsigned long long)(after_ns / WEFT_MS));
	if (after_ns > due_ns(guest) + LATE_NS)
		sim_fail("%s has no end in time", guest->limit->name);
}

/* Invariant 2. */
static void
judge_end(struct guest *guest)
{
	const char *begins = guest->limit->begins;

	judge_time(guest, true);
	if (memcmp(guest->in, begins, strlen(begins)) != 0 || (!*begins && guest->peer.in_size > 0))
		sim_fail("%s is answered by %.*s", guest->limit->name, 13, guest->in);
	guest->judged = true;
	http_peer_close(&guest->peer);
}

static void
say(struct guest *guest)
{
	static const char bytes[PIECE_MAX] = { 0 };
	struct http_peer *peer = &guest->peer;
	const struct limit *limit = guest->limit;

	(void)http_peer_send(peer, SIZE_MAX);
	if (peer->out_at < peer->out_size || guest->said >= limit->body
	    || sim_time() < guest->say_ns)
		return;
	guest->say_ns += limit->every_ns;
	guest->said += limit->piece;
	peer->out = limit->every_ns == WEFT_S ? "x" : bytes;
	peer->out_size = limit->piece;
	peer->out_at = 0;
	(void)http_peer_send(peer, SIZE_MAX);
}

static void
step(struct guest *guest)
{
	struct http_peer *peer = &guest->peer;

	if (peer->link == HTTP_LINK_NONE) {
		sim_check(http_peer_socket(peer));
		http_peer_connect(peer, &play.world);
	}
	if (peer->link == HTTP_LINK_CONNECTING)
		http_peer_look(peer);
	if (peer->link != HTTP_LINK_OPEN)
		return;
	if (!guest->since_ns) {
		guest->since_ns = sim_time();
		guest->say_ns = sim_time() + guest->limit->every_ns;
	}
	say(guest);
	(void)http_peer_receive(peer, IN_MAX);
	if (play.spoil == HTTP_LOAD_SPOIL_KEEP)
		peer->in_size = 0, peer->link = HTTP_LINK_OPEN;
	if (http_peer_is_over(peer) || (guest->limit->told_ns && peer->in_size > 0))
		judge_end(guest);
	else
		judge_time(guest, false);
}

/* --- the play -------------------------------------------------------------- */

static void
add_guests(const struct limit *limits, uint32_t count)
{
	play.count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct guest *guest = &play.guests[i];

		memset(guest, 0, sizeof(*guest));
		guest->limit = &limits[i];
		guest->peer = (struct http_peer){ .fd = -1,
			                          .out = limits[i].text,
			                          .out_size = strlen(limits[i].text),
			                          .in = guest->in,
			                          .in_max = IN_MAX };
	}
}

void
http_limit_play(enum http_load_spoil spoil)
{
	struct http_world_opts opts = {
		.loops = 1 + (uint32_t)sim_random_below(2),
		.routes = routes,
	};
	bool more = true;

	play.spoil = spoil;
	if (sim_random_below(2)) {
		add_guests(defaults, sizeof(defaults) / sizeof(defaults[0]));
	} else {
		opts.server.grace_ns = WEFT_S;
		add_guests(close_ones, sizeof(close_ones) / sizeof(close_ones[0]));
	}
	sim_calm_net();
	http_world_begin(&play.world, &opts);
	(void)sim_mask(SIM_MASK_ALL); /* this thread measures */
	while (more) {
		more = false;
		for (uint32_t i = 0; i < play.count; i++) {
			if (!play.guests[i].judged)
				step(&play.guests[i]);
			more |= !play.guests[i].judged;
		}
		pause_ns(TICK_NS);
	}
	http_world_close(&play.world);
	http_world_end(&play.world);
}
