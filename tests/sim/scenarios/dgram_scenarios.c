/* dgram_scenarios.c - datagrams on a network that loses, delays, repeats and refuses.
 *
 * Clients send questions to two servers, a threadlet and a callback, which send them back.
 * Another thread interrupts.
 *
 *   1. A message that arrives was sent by its stated sender, and is complete or marked as
 *      truncated.  An answer belongs to a question of that client.
 *   2. Waits end with WEFT_EINTR at most as often as they were interrupted.
 *   3. After healing, a client that sends often enough gets an answer.
 *   4. A close ends the server's wait, and makes the last call of the callback.
 *   5. A connected sender whose peer does not exist is refused, once per message.
 */
#include <errno.h>
#include <string.h>
#include <weft/dgram.h>
#include <weft/threadlet.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { CLIENTS = 3, ROUNDS = 15, BATCH = 4, TRIES_MAX = 1000 };

struct question {
	uint32_t client, number;
	uint64_t seal; /* checksum of the two */
	unsigned char filler[24];
};

struct client {
	weft_dgram *dgram;
	weft_addr at;
	uint32_t id, asked;
	struct once once;
	weft__a64 threadlet; /* its ID, or 0 */
};

static struct {
	struct host host;
	weft_dgram *server, *face, *lonely;
	weft_addr at_server, at_face, at_nobody;
	struct client clients[CLIENTS];
	struct once server_once, face_once;
	weft__a64 server_threadlet;
	weft__a32 done, healed, over, interrupts, eintrs;
} mail;

/* --- checks ----------------------------------------------------------- */

static uint64_t
seal_of(const struct question *q)
{
	return ((uint64_t)q->client << 32 | q->number) * UINT64_C(0x9e3779b97f4a7c15);
}

static const struct question *
check_question(const weft_message *message)
{
	const struct question *q = message->data;

	if (message->truncated) {
		sim_check(message->size < sizeof(*q));
		return NULL;
	}
	sim_check(message->size == sizeof(*q));
	sim_check(q->client < CLIENTS && q->seal == seal_of(q));
	sim_check(q->number < mail.clients[q->client].asked);
	for (size_t i = 0; i < sizeof(q->filler); i++)
		sim_check(q->filler[i] == (unsigned char)(q->number + i));
	return q;
}

/* Check an error of a waiting call. */
static void
check_error(int rc)
{
	switch (rc) {
	case WEFT_EINTR:
		(void)weft__add(&mail.eintrs, 1, WEFT__RELAXED);
		sim_check(weft__load(&mail.eintrs, WEFT__RELAXED)
		          <= weft__load(&mail.interrupts, WEFT__RELAXED));
		break;
	case WEFT_ETIMEDOUT:
	case WEFT_ENOMEM:
	case WEFT_ECONNREFUSED:
	case WEFT_ESHUTDOWN:
	case WEFT_ENOBUFS:
	case -EBADF: /* injected while arming */
	case -ENOSPC:
	case -EPERM:
		break;
	default:
		sim_check(rc > 0);
	}
}

/* --- servers ---------------------------------------------------------- */

static void
check_questions(const weft_message *messages, int count)
{
	for (int i = 0; i < count; i++) {
		const struct question *q = check_question(&messages[i]);

		if (q)
			sim_check(weft_addr_equal(&messages[i].addr, &mail.clients[q->client].at));
	}
}

/* Sometimes with too little room, so that messages are truncated. */
static int
serve(void *arg)
{
	struct question room[BATCH];
	weft_message messages[BATCH];
	int rc;

	(void)arg;
	weft__store(&mail.server_threadlet, (uint64_t)weft_self(), WEFT__RELAXED);
	once_begin(&mail.server_once);
	do {
		size_t size = sim_random_below(8) ? sizeof(room[0]) : 5;

		for (int i = 0; i < BATCH; i++)
			messages[i] = (weft_message){ .data = &room[i], .size = size };
		rc = weft_dgram_recv(mail.server, messages, BATCH,
		                     sim_random_below(4) ? WEFT_NEVER
		                                         : weft_after(sim_random_below(WEFT_MS)));
		check_error(rc);
		check_questions(messages, rc);
		if (rc > 0) {
			rc = weft_dgram_send(mail.server, messages, (size_t)rc,
			                     weft_after(WEFT_MS));
			check_error(rc);
		}
	} while (rc != WEFT_ESHUTDOWN);
	once_end(&mail.server_once);
	return 0;
}

static void
on_messages(weft_dgram *dgram, const weft_message *messages, int count, void *arg)
{
	(void)arg;
	sim_check(dgram == mail.face && once_is_open(&mail.face_once));
	if (count == WEFT_ESHUTDOWN) {
		once_end(&mail.face_once);
		return;
	}
	check_error(count);
	check_questions(messages, count);
	if (count > 0 && sim_random_below(8) > 0)
		check_error(weft_dgram_send(dgram, messages, (size_t)count, WEFT_NOWAIT));
	if (sim_random_below(8) == 0) {
		sim_check(weft_dgram_stop(dgram) == 0);
		while (weft_dgram_start(dgram, NULL, on_messages, NULL) < 0)
			continue;
	}
}

/* --- clients ---------------------------------------------------------- */

static bool
ask(struct client *client, const weft_addr *to)
{
	struct question q = { .client = client->id, .number = client->asked };
	weft_message message = { .data = &q, .size = sizeof(q), .addr = *to };
	int rc;

	q.seal = seal_of(&q);
	for (size_t i = 0; i < sizeof(q.filler); i++)
		q.filler[i] = (unsigned char)(q.number + i);
	client->asked++;
	rc = weft_dgram_send(client->dgram, &message, 1, weft_after(10 * WEFT_MS));
	check_error(rc);
	return rc == 1;
}

/* Receive an answer to any question of this client; false if none arrived in time. */
static bool
hear(struct client *client)
{
	struct question room;
	weft_message message = { .data = &room, .size = sizeof(room) };
	int rc = weft_dgram_recv(client->dgram, &message, 1, weft_after(10 * WEFT_MS));
	const struct question *q;

	check_error(rc);
	if (rc < 0)
		return false;
	if (message.size == 5) /* truncated by the server */
		return true;
	q = check_question(&message);
	sim_check(q && q->client == client->id);
	sim_check(weft_addr_equal(&message.addr, &mail.at_server)
	          || weft_addr_equal(&message.addr, &mail.at_face));
	return true;
}

static int
run_client(void *arg)
{
	const weft_addr *places[] = { &mail.at_server, &mail.at_face, &mail.at_nobody };
	struct client *client = arg;
	int tries = 0;

	weft__store(&client->threadlet, (uint64_t)weft_self(), WEFT__RELAXED);
	for (int i = 0; i < ROUNDS; i++)
		if (ask(client, places[sim_random_below(3)]))
			(void)hear(client);
	while (!weft__load(&mail.healed, WEFT__ACQUIRE))
		if (weft_sleep_until(weft_after(WEFT_MS)) < 0)
			continue;
	while (hear(client)) /* left from before */
		continue;
	do
		sim_check(++tries < TRIES_MAX);
	while (!ask(client, places[tries % 2]) || !hear(client));
	once_end(&client->once);
	count_up(&mail.done);
	return 0;
}

/* Connected to a port without a socket: each refusal is for one message, and is reported once. */
static int
be_refused(void *arg)
{
	char room[8];
	weft_message message = { .data = room };
	uint32_t sent = 0, refused = 0;
	int rc, tries = 0;

	(void)arg;
	do {
		bool sends = sim_random_below(2);

		message.size = sizeof(room);
		rc = sends ? weft_dgram_send(mail.lonely, &message, 1, weft_after(10 * WEFT_MS))
		           : weft_dgram_recv(mail.lonely, &message, 1, weft_after(10 * WEFT_MS));
		check_error(rc);
		sent += 2 * (sends && rc == 1); /* it may arrive twice */
		refused += rc == WEFT_ECONNREFUSED;
		sim_check(refused <= sent && (sends || rc < 0));
		tries += weft__load(&mail.healed, WEFT__ACQUIRE) != 0;
		sim_check(tries < TRIES_MAX);
	} while (tries == 0 || rc != WEFT_ECONNREFUSED);
	count_up(&mail.done);
	return 0;
}

/* --- the scenario ----------------------------------------------------- */

static weft_dgram *
open_one(weft_addr *at)
{
	weft_dgram *dgram;

	while (weft_dgram_open("udp://127.0.0.1:0", NULL, &dgram) < 0)
		continue;
	while (weft_dgram_local(dgram, at) < 0)
		continue;
	return dgram;
}

static void
go(weft_threadlet_fn fn, void *arg)
{
	while (weft_go(fn, arg) < 0)
		continue;
}

static void
begin(void *arg)
{
	(void)arg;
	go(serve, NULL);
	go(be_refused, NULL);
	once_begin(&mail.face_once);
	while (weft_dgram_start(mail.face, NULL, on_messages, NULL) < 0)
		continue;
	for (int i = 0; i < CLIENTS; i++) {
		once_begin(&mail.clients[i].once);
		go(run_client, &mail.clients[i]);
	}
}

static void
close_all(void *arg)
{
	(void)arg;
	weft_dgram_close(mail.server);
	weft_dgram_close(mail.face);
	weft_dgram_close(mail.lonely);
	for (int i = 0; i < CLIENTS; i++)
		weft_dgram_close(mail.clients[i].dgram);
}

static void
meddle(void *arg)
{
	(void)arg;
	while (!weft__load(&mail.over, WEFT__ACQUIRE)) {
		uint64_t who = sim_random_below(CLIENTS + 1);

		(void)weft__add(&mail.interrupts, 1, WEFT__RELAXED);
		(void)weft_interrupt((weft_threadlet)weft__load(
			who < CLIENTS ? &mail.clients[who].threadlet : &mail.server_threadlet,
			WEFT__RELAXED));
		pause_ns(sim_random_below(UINT64_C(1) << sim_random_below(21)));
	}
}

static void
run_dgram(void *arg)
{
	weft_dgram_opts opts = { 0 };
	uint64_t thread;

	(void)arg;
	memset(&mail, 0, sizeof(mail));
	mail.server = open_one(&mail.at_nobody);
	weft_dgram_close(mail.server);
	mail.server = open_one(&mail.at_server);
	mail.face = open_one(&mail.at_face);
	opts.peer = mail.at_nobody;
	while (weft_dgram_open(NULL, &opts, &mail.lonely) < 0)
		continue;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		mail.clients[i].id = i;
		mail.clients[i].dgram = open_one(&mail.clients[i].at);
	}
	host_make(&mail.host);
	host_run(&mail.host);
	host_call(&mail.host, begin, NULL);
	thread = thread_start("meddler", meddle, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (14 + sim_random_below(12))));
	sim_heal();
	weft__store(&mail.over, 1, WEFT__RELEASE);
	thread_join(thread);
	weft__store(&mail.healed, 1, WEFT__RELEASE);
	await_count(&mail.done, CLIENTS + 1);
	host_call(&mail.host, close_all, NULL);
	host_end(&mail.host);
	once_check(&mail.server_once);
	once_check(&mail.face_once);
	for (int i = 0; i < CLIENTS; i++)
		once_check(&mail.clients[i].once);
}

const struct sim_scenario sim_scenario_dgram = { .name = "dgram", .run = run_dgram };
