/* http_overload_play.c - twice as many requests as can be answered; and no descriptors.
 *
 * Handlers take a fixed time and at most requests_max of them run, so it is known how many
 * requests can be answered.
 *
 *   1. At twice that rate: excess requests are rejected within TOLD_NS, and nine tenths of the
 *      possible number are answered.
 *   2. At half that rate, after that: all are answered.
 *   3. Without a descriptor for another connection, accept is retried every 20 ms, which takes
 *      two loop iterations.  So all loops together make at most TURNS_MAX iterations in
 *      HELD_NS, which is less than with a retry every 10 ms.  Existing connections are served
 *      meanwhile, and new ones as soon as there is a descriptor.
 */
#include <string.h>
#include <weft/metrics.h>
#include "sim/scenarios/http_load.h"

#define HANDLE_NS (20 * WEFT_MS)
#define LOAD_NS   (WEFT_S / 2)
#define EASE_NS   (WEFT_S / 4)
#define TOLD_NS   (5 * WEFT_MS)
#define HELD_NS   (WEFT_S / 2)
#define SERVED_NS (WEFT_S / 4)

enum { AT_ONCE = 16, ASKERS = 200, LATE_ONES = 8, IN_MAX = 512, TURNS_MAX = 80 };

static const char text[] = "GET /work HTTP/1.1\r\nHost: sim\r\n\r\n";

struct asker {
	struct http_peer peer;
	uint64_t asked_ns; /* 0: no request is pending */
	char in[IN_MAX];
};

static struct {
	struct http_world world;
	uint32_t loops;
	struct asker askers[ASKERS + LATE_ONES];
	uint32_t answered, shed; /* requests of this phase */
	enum http_load_spoil spoil;
} load;

static int
on_work(weft_http *http, void *arg)
{
	int rc = weft_sleep_until(weft_after(HANDLE_NS));

	(void)arg;
	return rc < 0 ? rc
	              : weft_http_reply(http, 200, "text/plain", (weft_span){ "done", 4 },
	                                WEFT_NEVER);
}

static const struct http_route routes[] = { { "GET /work", on_work }, { NULL, NULL } };

/* --- requests -------------------------------------------------------------- */

static void
ask(struct asker *asker)
{
	struct http_peer *peer = &asker->peer;

	peer->out_at = 0;
	peer->in_size = 0;
	asker->asked_ns = sim_time();
	(void)http_peer_send(peer, SIZE_MAX);
	sim_check(peer->out_at == peer->out_size);
}

static bool
begins(const struct http_peer *peer, const char *status)
{
	return memcmp(peer->in, status, strlen(status)) == 0;
}

static void
hear(struct asker *asker)
{
	struct http_peer *peer = &asker->peer;
	uint64_t took_ns;

	if (!asker->asked_ns || http_peer_receive(peer, IN_MAX) == 0)
		return;
	took_ns = sim_time() - asker->asked_ns;
	asker->asked_ns = 0;
	if (begins(peer, "HTTP/1.1 503 ")) {
		load.shed++;
		if (took_ns > TOLD_NS)
			sim_fail("told after %llu us that it is too much",
			         (unsigned long long)(took_ns / WEFT_US));
	} else if (begins(peer, "HTTP/1.1 200 ")) {
		load.answered++;
	} else {
		sim_fail("answered by %.*s", 13, peer->in);
	}
}

static struct asker *
find_free(void)
{
	for (uint32_t i = 0; i < ASKERS; i++)
		if (!load.askers[i].asked_ns)
			return &load.askers[i];
	sim_fail("nobody is free to ask");
}

/* Send a request every `every_ns`, for `ns`, and receive all replies. */
static void
offer(uint64_t every_ns, uint64_t ns)
{
	uint64_t next_ns = sim_time(), until_ns = next_ns + ns;
	bool more = true;

	load.answered = load.shed = 0;
	while (more || next_ns < until_ns) {
		for (; next_ns < until_ns && next_ns <= sim_time(); next_ns += every_ns)
			ask(find_free());
		more = false;
		for (uint32_t i = 0; i < ASKERS; i++) {
			hear(&load.askers[i]);
			more |= load.askers[i].asked_ns != 0;
		}
		pause_ns(every_ns / 2);
	}
}

/* --- the phases ------------------------------------------------------------ */

/* Invariants 1 and 2. */
static void
overload(void)
{
	const uint64_t each_ns = HANDLE_NS / AT_ONCE;
	const uint32_t possible = (uint32_t)(LOAD_NS / each_ns);

	offer(each_ns / 2, LOAD_NS);
	if (load.spoil == HTTP_LOAD_SPOIL_SHED)
		load.answered /= 2;
	if (load.answered < possible - possible / 10)
		sim_fail("%u of %u that could be are answered", load.answered, possible);
	if (load.shed == 0)
		sim_fail("nothing was too much");
	offer(each_ns * 2, EASE_NS);
	if (load.shed > 0)
		sim_fail("%u are refused when it is no more too much", load.shed);
}

static uint64_t
count_turns(void)
{
	uint64_t turns = 0;

	for (uint32_t i = 0; i < load.loops; i++) {
		struct weft_loop_stats stats;

		sim_check(weft_loop_stats(weft_runtime_loop(load.world.runtime, i), &stats) == 0);
		turns += stats.turns;
	}
	return turns;
}

static void
serve_one(struct asker *asker)
{
	uint64_t since_ns = sim_time();

	load.answered = 0;
	ask(asker);
	while (load.answered == 0) {
		if (sim_time() - since_ns > SERVED_NS)
			sim_fail("not served in time");
		pause_ns(WEFT_MS);
		hear(asker);
	}
}

static void
come(struct asker *asker)
{
	uint64_t since_ns = sim_time();

	http_peer_connect(&asker->peer, &load.world);
	while (asker->peer.link == HTTP_LINK_CONNECTING) {
		if (sim_time() - since_ns > SERVED_NS)
			sim_fail("not connected in time");
		pause_ns(WEFT_MS);
		http_peer_look(&asker->peer);
	}
}

/* Invariant 3.  A connection that arrives meanwhile may have been rejected. */
static void
hold_descriptors(void)
{
	struct asker *late = &load.askers[ASKERS];
	uint64_t turns, since_ns = sim_time();

	for (uint32_t i = 0; i < LATE_ONES; i++)
		sim_check(http_peer_socket(&late[i].peer));
	sim_limit_fds(sim_count_fds());
	for (uint32_t i = 0; i + 1 < LATE_ONES; i++)
		come(&late[i]);
	turns = count_turns();
	while (sim_time() - since_ns < HELD_NS)
		pause_ns(WEFT_S / 10);
	turns = count_turns() - turns;
	if (load.spoil == HTTP_LOAD_SPOIL_SPIN)
		turns *= 2;
	if (turns > TURNS_MAX)
		sim_fail("%llu turns without a descriptor", (unsigned long long)turns);
	serve_one(&load.askers[0]);
	sim_limit_fds(1024);
	pause_ns(WEFT_S / 10);
	come(&late[LATE_ONES - 1]);
	serve_one(&late[LATE_ONES - 1]);
}

static void
make_askers(void)
{
	for (uint32_t i = 0; i < ASKERS + LATE_ONES; i++) {
		struct asker *asker = &load.askers[i];

		asker->asked_ns = 0;
		asker->peer = (struct http_peer){ .fd = -1,
			                          .out = text,
			                          .out_size = sizeof(text) - 1,
			                          .in = asker->in,
			                          .in_max = IN_MAX };
		if (i >= ASKERS)
			continue;
		sim_check(http_peer_socket(&asker->peer));
		come(asker);
	}
}

void
http_overload_play(enum http_load_spoil spoil)
{
	struct http_world_opts opts = {
		.loops = 1 + (uint32_t)sim_random_below(2),
		.routes = routes,
		.server = { .requests_max = AT_ONCE },
	};

	load.spoil = spoil;
	load.loops = opts.loops;
	sim_calm_net();
	http_world_begin(&load.world, &opts);
	(void)sim_mask(SIM_MASK_ALL); /* this thread measures */
	make_askers();
	overload();
	hold_descriptors();
	for (uint32_t i = 0; i < ASKERS + LATE_ONES; i++)
		http_peer_close(&load.askers[i].peer);
	http_world_close(&load.world);
	http_world_end(&load.world);
}
