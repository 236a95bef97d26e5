/* http_play.c - clients that send various requests to a simulated server: in pieces, pipelined,
 * or malformed; and that leave at any time.
 *
 *   1. Each request is answered once, in order, with what it requested; or its connection has
 *      ended, and that has a cause.
 *   2. No reply that was cut off ends as if it were complete.
 *   3. A bad request is rejected, and no request after it is answered.
 *   4. All waits are bounded: everything ends by itself.
 */
#include <poll.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include "sim/scenarios/http_play.h"

enum { CLIENTS = 10, ASKS = 6, IN_MAX = 65536 };

#define PATIENCE_NS (5 * WEFT_S)  /* for a connect */
#define STAY_NS     (30 * WEFT_S) /* of clients that are idle, or stall */
#define DRAIN_NS    (10 * WEFT_S)
#define LONG_NS     (2000 * WEFT_S) /* enough for some bytes on any network */

struct http_client {
	struct http_peer peer;
	enum http_manner manner;
	size_t trouble_at; /* offset in its data where its manner shows */
	uint64_t begin_ns;
	uint64_t send_ns; /* sends nothing before this time */
	uint64_t sent_ns; /* when it sent last */
	uint64_t heard_ns;
	uint64_t read_ns;
	uint64_t left_ns;
	uint64_t stay_ns; /* leaves after this time */
	size_t piece_max;
	uint32_t first, count, answered;
	bool told_last, upgraded, mute, done;
	struct http_text text;
	char in[IN_MAX];
};

static struct http_client clients[CLIENTS];
static struct http_reply reply;
static uint32_t clients_used;
static uint64_t healed_ns, closed_ns;

bool
http_client_is_bad(const struct http_client *client)
{
	return client->manner >= HTTP_CHOP;
}

uint64_t
http_client_left_ns(const struct http_client *client)
{
	return client->left_ns;
}

/* --- checks ---------------------------------------------------------------- */

static bool
is_excused(const struct http_client *client)
{
	return http_site.harsh || http_site.tight || http_site.forced || http_client_is_bad(client);
}

static bool
ends_connection(const struct http_request *request)
{
	return request->ask >= HTTP_ASK_LAST;
}

static bool
sends_events(const struct http_request *request)
{
	return request->ask == HTTP_ASK_EVENTS || request->ask == HTTP_ASK_ENDLESS;
}

static bool
may_be(const struct http_client *client, const struct http_request *request)
{
	int status = reply.status;

	if (status == http_status_of(request))
		return true;
	if (status == 503)
		return http_site.sheds || http_site.harsh;
	if (status == 500)
		return http_site.harsh || http_site.tight || http_site.forced;
	if (status == 408)
		return is_excused(client);
	return status == 400 && client->peer.out_at < request->end && is_excused(client);
}

static void
check_events(const struct http_request *request)
{
	size_t at = 0, count = 0;

	while (at < reply.size) {
		char want[64];
		int n = snprintf(want, sizeof(want), "%sdata: %zu\n\n",
		                 count % 2 ? "event: odd\n" : "", count);

		if (reply.size - at < (size_t)n || memcmp(reply.body + at, want, (size_t)n) != 0)
			sim_fail("a wrong event of request %u", request->id);
		at += (size_t)n;
		count++;
	}
	if (request->ask == HTTP_ASK_EVENTS && count != request->size && !http_site.closing)
		sim_fail("%zu of %zu events of request %u", count, request->size, request->id);
}

static void
check_body(const struct http_request *request)
{
	if (sends_events(request)) {
		check_events(request);
		return;
	}
	if (request->ask == HTTP_ASK_HEAD) {
		sim_check(reply.size == 0 && reply.length == request->size);
		return;
	}
	if (reply.size > 0 && http_spoils(HTTP_SPOIL_BYTE))
		reply.body[reply.size / 2] ^= 1;
	/* With harsh faults a reset may fail, and then looks like the end. */
	if (reply.size != request->size && !(request->ask == HTTP_ASK_OLD && http_site.harsh))
		sim_fail("%zu of %zu bytes to request %u", reply.size, request->size, request->id);
	for (size_t i = 0; i < reply.size; i++)
		if (reply.body[i] != http_byte(request->id, i))
			sim_fail("a wrong byte in the reply to %u", request->id);
}

/* A client that got no 100 Continue may send its body or not, so the connection may end. */
static bool
may_end(const struct http_request *request)
{
	return ends_connection(request) || (request->ask == HTTP_ASK_EXPECT && reply.status != 200);
}

/* Invariants 1 and 3. */
static void
judge_reply(struct http_client *client, const struct http_request *request)
{
	if (reply.id != UINT32_MAX && http_spoils(HTTP_SPOIL_ORDER))
		reply.id++;
	if (reply.id != UINT32_MAX && reply.id != request->id)
		sim_fail("the reply to %u instead of that to %u", reply.id, request->id);
	if (!may_be(client, request))
		sim_fail("request %u, of kind %d, is answered by %d", request->id,
		         (int)request->ask, reply.status);
	if (!request->reachable)
		sim_fail("request %u is answered", request->id);
	if (reply.status == 200)
		check_body(request);
	if (reply.status < 300 && client->peer.out_at < request->head_end)
		sim_fail("request %u is answered early", request->id);
	if (ends_connection(request) && request->ask < HTTP_ASK_ENDLESS && !reply.close
	    && reply.status == http_status_of(request))
		sim_fail("after request %u, of kind %d, it goes on: %d", request->id,
		         (int)request->ask, reply.status);
	if (reply.close && !may_end(request) && !http_site.closing && !is_excused(client))
		sim_fail("after request %u it ends", request->id);
}

/* How many replies there must be. */
static uint32_t
count_expected(const struct http_client *client)
{
	uint32_t count = 0;

	while (count < client->count && http_site.requests[client->first + count].reachable)
		count++;
	return count;
}

/* Replies are lost if bytes after the last request arrive when the server has closed, or if the
 * server has waited long enough for the client's end, or for the rest of a body that no handler
 * reads. */
static bool
was_cut_off(const struct http_client *client)
{
	uint32_t first = client->first + client->answered;
	const struct http_request *at =
		&http_site.requests[first > client->first ? first - 1 : first];

	for (; at < &http_site.requests[client->first + client->count]; at++) {
		bool has_body = at->ask == HTTP_ASK_ECHO || at->ask == HTTP_ASK_EXPECT
		                || at->ask == HTTP_ASK_IGNORE;

		if ((at->ask == HTTP_ASK_IGNORE && at->handled) || (has_body && http_site.sheds))
			return true;
		if (ends_connection(at) && client->peer.link == HTTP_LINK_RESET)
			return client->sent_ns + 5 * WEFT_S / 2 > at->ended_ns
			       || sim_time() - at->ended_ns > 19 * WEFT_S / 10;
	}
	return false;
}

/* Invariants 1 and 2. */
static void
judge_end(const struct http_client *client)
{
	const struct http_peer *peer = &client->peer;
	uint32_t expected = count_expected(client);
	enum http_ask ask = HTTP_ASK_WHOLE;

	if (client->answered < client->count)
		ask = http_site.requests[client->first + client->answered].ask;
	/* With harsh faults a reset may fail. */
	if (peer->link == HTTP_LINK_ENDED && peer->in_at < peer->in_size && !client->upgraded
	    && !http_site.harsh)
		sim_fail("a reply of kind %d ends after %zu bytes", (int)ask,
		         peer->in_size - peer->in_at);
	if (client->told_last || is_excused(client) || http_site.closing || ask == HTTP_ASK_ENDLESS)
		return;
	if (was_cut_off(client))
		return;
	if (client->answered < expected)
		sim_fail("%u of %u requests from %u on are answered; the "
		         "next is of kind %d, link %d",
		         client->answered, expected, client->first, (int)ask, (int)peer->link);
}

/* --- parsing --------------------------------------------------------------- */

static void
leave(struct http_client *client)
{
	client->left_ns = sim_time();
	http_peer_close(&client->peer);
	client->done = true;
}

static void
read_raw(struct http_client *client)
{
	struct http_request *request = &http_site.requests[client->first + client->answered];
	struct http_peer *peer = &client->peer;
	size_t size = peer->in_size - peer->in_at;

	if (size > request->size)
		sim_fail("bytes that nobody sent");
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)peer->in[peer->in_at + i] != http_byte(request->id, i))
			sim_fail("a wrong byte after an upgrade");
	if (size == request->size)
		client->answered++, client->told_last = true, peer->in_at = peer->in_size;
}

/* Handle a complete reply; true: another may follow. */
static bool
take_reply(struct http_client *client, struct http_request *request)
{
	struct http_peer *peer = &client->peer;

	if (reply.status == 100) {
		if (request->ask != HTTP_ASK_EXPECT)
			sim_fail("request %u has not asked", request->id);
		peer->in_at += reply.used;
		return true;
	}
	if (reply.used > 1 && http_spoils(HTTP_SPOIL_CUT)) {
		peer->in_size = peer->in_at + reply.used - 1;
		peer->link = HTTP_LINK_ENDED;
		return false;
	}
	judge_reply(client, request);
	peer->in_at += reply.used;
	client->told_last |= reply.close;
	if (reply.status == 101) {
		client->upgraded = true;
		return true;
	}
	if (!http_client_is_bad(client) && client->answered + 1 == count_expected(client)
	    && !reply.close && http_spoils(HTTP_SPOIL_FORGET))
		return false;
	client->answered++;
	/* The client has sent bytes that are not HTTP; or it gets a body that it cannot expect,
	 * because the server has not parsed its method. */
	if (request->ask == HTTP_ASK_UPGRADE
	    || (request->ask == HTTP_ASK_HEAD && reply.close && is_excused(client))) {
		leave(client);
		return false;
	}
	return !reply.close;
}

static void
read_replies(struct http_client *client)
{
	struct http_peer *peer = &client->peer;
	bool more = !client->told_last;

	while (more && client->answered < client->count && !client->upgraded) {
		struct http_request *request =
			&http_site.requests[client->first + client->answered];
		enum http_body body = request->ask == HTTP_ASK_HEAD ? HTTP_BODY_NONE
		                                                    : HTTP_BODY_TOLD;

		if (!http_reply_read(peer->in + peer->in_at, peer->in_size - peer->in_at, body,
		                     peer->link == HTTP_LINK_ENDED, &reply))
			return;
		more = take_reply(client, request);
	}
	if (client->upgraded && !client->told_last)
		read_raw(client);
	else if (peer->in_at < peer->in_size && !client->done && peer->link != HTTP_LINK_ENDED)
		sim_fail("redis: the server sent a reply that no command waits for");
}

/* --- sending and receiving ------------------------------------------------- */

/* Misbehave according to the client's manner. */
static void
misbehave(struct http_client *client)
{
	int fd = client->peer.fd;

	client->mute = true;
	if (client->manner == HTTP_VANISH || client->manner == HTTP_BREAK) {
		if (client->manner == HTTP_BREAK)
			sim_break(fd);
		leave(client);
	} else if (client->manner == HTTP_CHOP || client->manner == HTTP_HALF) {
		(void)weft__sys->shutdown(fd, SHUT_WR);
		client->left_ns = sim_time(); /* with respect to events */
	}
}

static bool
shows_manner(const struct http_client *client)
{
	if (client->mute || client->peer.out_at < client->trouble_at)
		return false;
	return client->manner == HTTP_HALF || http_client_is_bad(client);
}

static void
say(struct http_client *client)
{
	size_t most = 1 + sim_random_below(client->piece_max);
	size_t left = client->trouble_at - client->peer.out_at;

	if (client->mute || sim_time() < client->send_ns)
		return;
	if (http_client_is_bad(client) && most > left)
		most = left;
	if (http_peer_send(&client->peer, most) > 0)
		client->sent_ns = sim_time();
	if (sim_random_below(4) == 0)
		client->send_ns = sim_time()
		                  + sim_random_below(UINT64_C(1) << (8 + sim_random_below(16)));
}

/* A server that drains does not wait for idle clients. */
static void
judge_idle(const struct http_client *client)
{
	uint64_t now_ns = sim_time();

	if (http_site.closing && !http_site.harsh && client->count > 0
	    && client->answered == client->count && !client->upgraded
	    && now_ns - client->heard_ns > DRAIN_NS && now_ns - closed_ns > DRAIN_NS)
		sim_fail("who is idle is not drained");
}

/* A client that reads endless events leaves by itself. */
static bool
has_enough(const struct http_client *client)
{
	const struct http_peer *peer = &client->peer;

	if (sim_time() > client->stay_ns && (client->mute || client->answered == client->count)) {
		if (http_site.tight && !http_site.harsh && !client->upgraded)
			sim_fail("who is slow is not dropped");
		return true;
	}
	if (client->told_last)
		return false;
	if (client->answered == client->count)
		return client->manner != HTTP_IDLE;
	return http_site.requests[client->first + client->answered].ask == HTTP_ASK_ENDLESS
	       && peer->in_size - peer->in_at > 200;
}

static void
talk(struct http_client *client)
{
	if (sim_time() >= client->read_ns) {
		if (http_peer_receive(&client->peer, 1 + sim_random_below(4096)) > 0)
			client->heard_ns = sim_time();
		read_replies(client);
	}
	if (client->done || http_peer_is_over(&client->peer))
		return;
	judge_idle(client);
	say(client);
	if (shows_manner(client))
		misbehave(client);
	else if (has_enough(client))
		leave(client);
}

static void
step(struct http_client *client)
{
	struct http_peer *peer = &client->peer;

	if (peer->link == HTTP_LINK_NONE && sim_time() >= client->begin_ns) {
		if (peer->fd >= 0 || http_peer_socket(peer))
			http_peer_connect(peer, &http_site.world);
		else
			client->begin_ns = sim_time() + WEFT_MS;
	}
	if (peer->link == HTTP_LINK_CONNECTING)
		http_peer_look(peer);
	if (peer->link == HTTP_LINK_CONNECTING && http_site.harsh
	    && sim_time() > client->begin_ns + PATIENCE_NS)
		leave(client);
	if (peer->link == HTTP_LINK_OPEN)
		talk(client);
	if (!client->done && http_peer_is_over(peer)) {
		read_replies(client);

		judge_end(client);
		leave(client);
	}
}

/* --- all clients ----------------------------------------------------------- */

static uint64_t
nearer(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What the client waits for, and until when at most. */
static void
prepare_wait(const struct http_client *client, struct pollfd *look, uint64_t *until_ns)
{
	uint64_t now_ns = sim_time();
	const struct http_peer *peer = &client->peer;

	*look = (struct pollfd){ .fd = client->done ? -1 : peer->fd };
	if (client->done)
		return;
	if (peer->link == HTTP_LINK_NONE)
		*until_ns = nearer(*until_ns, client->begin_ns);
	if (peer->link == HTTP_LINK_CONNECTING)
		look->events = POLLOUT;
	if (peer->link != HTTP_LINK_OPEN)
		return;
	if (client->read_ns > now_ns)
		*until_ns = nearer(*until_ns, client->read_ns);
	else
		look->events |= POLLIN;
	if (!client->mute && peer->out_at < peer->out_size) {
		if (client->send_ns > now_ns)
			*until_ns = nearer(*until_ns, client->send_ns);
		else
			look->events |= POLLOUT;
	}
	if (!look->events)
		look->fd = -1; /* the end of the connection does not matter, either */
}

static void
check_live(void)
{
	if (!healed_ns || sim_time() - healed_ns < 2 * LONG_NS)
		return;
	for (uint32_t i = 0; i < clients_used; i++)
		if (!clients[i].done)
			sim_fail("not live: client %u waits, %u of %u, sent "
			         "%zu of %zu, manner %d, link %d",
			         i, clients[i].answered, clients[i].count, clients[i].peer.out_at,
			         clients[i].peer.out_size, (int)clients[i].manner,
			         (int)clients[i].peer.link);
}

static void
run_clients(void *arg)
{
	struct pollfd looks[CLIENTS];
	bool more = true;

	(void)arg;
	while (more) {
		uint64_t until_ns = sim_time() + WEFT_S, now_ns;

		more = false;
		for (uint32_t i = 0; i < clients_used; i++) {
			if (!clients[i].done)
				step(&clients[i]);
			prepare_wait(&clients[i], &looks[i], &until_ns);
			more |= !clients[i].done;
		}
		check_live();
		now_ns = sim_time();
		if (more && until_ns > now_ns)
			(void)weft__sys->poll(looks, clients_used, (int64_t)(until_ns - now_ns));
	}
}

/* --- the play -------------------------------------------------------------- */

static enum http_ask
draw_ask(bool last)
{
	if (last && sim_random_below(3) == 0)
		return HTTP_ASK_ENDLESS + (enum http_ask)sim_random_below(2);
	return sim_random_below(5) ? (enum http_ask)sim_random_below(HTTP_ASK_LAST)
	                           : HTTP_ASK_LAST + (enum http_ask)sim_random_below(4);
}

static void
add_request(struct http_client *client, bool last, bool *reachable)
{
	uint32_t id = http_site.requests_used++;
	struct http_request *request = &http_site.requests[id];

	sim_check(id < HTTP_REQUESTS);
	*request = (struct http_request){
		.ask = draw_ask(last),
		.id = id,
		.reachable = *reachable,
		.client = client,
	};
	request->size = 1 + sim_random_below(UINT64_C(1) << sim_random_below(12));
	if (request->ask == HTTP_ASK_EVENTS)
		request->size = 1 + request->size % 8;
	http_compose(request, &client->text);
	if (ends_connection(request))
		*reachable = false;
	client->count++;
}

/* A client that gets events must not half-close: the server would take it as gone. */
static enum http_manner
draw_manner(const struct http_client *client)
{
	enum http_manner manner = (enum http_manner)sim_random_below(
		sim_random_below(2) ? HTTP_CHOP : HTTP_MANNERS);

	for (uint32_t i = 0; i < client->count; i++)
		if (sends_events(&http_site.requests[client->first + i]) && manner == HTTP_HALF)
			return HTTP_POLITE;
	return manner;
}

static void
add_client(struct http_client *client)
{
	uint64_t count = 1 + sim_random_below(ASKS);
	bool reachable = true;

	memset(client, 0, offsetof(struct http_client, in));
	client->first = http_site.requests_used;
	for (uint64_t i = 0; i < count; i++)
		add_request(client, i + 1 == count, &reachable);
	client->manner = draw_manner(client);
	client->trouble_at = http_client_is_bad(client) ? sim_random_below(client->text.size + 1)
	                                                : client->text.size;
	client->piece_max = UINT64_C(1) << sim_random_below(14);
	client->begin_ns = sim_time() + sim_random_below(UINT64_C(1) << sim_random_below(28));
	if (client->manner == HTTP_DEAF)
		client->read_ns = client->begin_ns + sim_random_below(WEFT_S / 2);
	client->stay_ns = WEFT_NEVER;
	if (client->manner == HTTP_IDLE || client->manner == HTTP_STALL)
		client->stay_ns = client->begin_ns + STAY_NS;
	client->peer = (struct http_peer){ .fd = -1,
		                           .out = client->text.bytes,
		                           .out_size = client->text.size,
		                           .in = client->in,
		                           .in_max = IN_MAX };
}

static uint64_t
draw_limit(void)
{
	return http_site.tight ? WEFT_MS + sim_random_below(WEFT_S) : LONG_NS;
}

static void
begin_site(void)
{
	struct http_world_opts opts = {
		.loops = 1 + (uint32_t)sim_random_below(3),
		.routes = http_routes,
	};

	http_site.harsh = sim_random_below(2);
	http_site.tight = sim_random_below(4) == 0;
	http_site.sheds = sim_random_below(4) == 0;
	http_site.requests_max = http_site.sheds ? 1 + (uint32_t)sim_random_below(3) : 1000;
	if (!http_site.harsh)
		sim_spare(SIM_MASK(SIM_RESET) | SIM_MASK(SIM_REFUSE) | SIM_MASK(SIM_ERRNO)
		          | SIM_MASK(SIM_ALLOC) | SIM_MASK(SIM_CLOCK) | SIM_MASK(SIM_THREAD));
	opts.server = (weft_http_server_opts){
		.header_ns = draw_limit(),
		.idle_ns = draw_limit(),
		.request_ns = draw_limit(),
		.grace_ns = draw_limit(),
		.requests_max = http_site.requests_max,
	};
	opts.listener.connections_max = (http_site.tight ? 2 : CLIENTS)
	                                + (uint32_t)sim_random_below(10);
	http_world_begin(&http_site.world, &opts);
}

/* Limit the number of descriptors for a while. */
static void
squeeze(void)
{
	if (!http_site.harsh || sim_random_below(4) > 0)
		return;
	sim_limit_fds(sim_count_fds() + (int)sim_random_below(5));
	pause_ns(sim_random_below(WEFT_S / 4));
	sim_limit_fds(1024);
}

/* Close the server while clients are connected, in half of the runs. */
static void
end_early(void)
{
	if (sim_random_below(2))
		return;
	http_site.closing = true;
	closed_ns = sim_time();
	http_site.forced = sim_random_below(4) == 0;
	if (http_site.forced)
		(void)weft_cancel(http_site.world.serves);
	http_world_close(&http_site.world);
}

void
http_play(enum http_spoil spoil)
{
	uint64_t thread;

	memset(&http_site, 0, sizeof(http_site));
	http_site.spoil = spoil;
	healed_ns = 0;
	begin_site();
	clients_used = 1 + (uint32_t)sim_random_below(CLIENTS);
	for (uint32_t i = 0; i < clients_used; i++)
		add_client(&clients[i]);
	thread = thread_start("clients", run_clients, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(20))));
	squeeze();
	end_early();
	sim_heal();
	healed_ns = sim_time();
	thread_join(thread);
	if (!http_site.closing) {
		http_site.closing = true;
		http_world_close(&http_site.world);
	}
	http_world_end(&http_site.world);
	sim_check(count_of(&http_site.inside) == 0);
}
