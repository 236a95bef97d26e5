/* dns_world_server.c - a small DNS server on its own thread, over UDP and TCP.
 *
 * It answers by the name (dns_world.h).  It knows more names, for tests of broken or hostile
 * servers:
 *
 *   chain.test       through two aliases, with TTLs of 7 and 50 seconds
 *   ttlN.test        192.0.2.1 for N seconds
 *   nosoa.test       no such name, without a SOA record (no negative TTL)
 *   refused.test     REFUSED
 *   silent.test      no answer
 *   half.test        192.0.2.1, and no answer to the AAAA query
 *   garbage.test     announces five records, followed by junk
 *   cut.test         the right answer, cut in the middle
 *   torn4.test       the A answer is cut, and there is no AAAA record
 *   torn6.test       there is no A record, and the AAAA answer is cut
 *   short.test       an A record of three bytes, and no AAAA record
 *   stub.test        five bytes
 *   wrongid.test     first a forged answer with another query ID, then the right one
 *   wrongname.test   first a forged answer for another name, then the right one
 *   tcp.test         the answer comes over TCP only
 *   huge.test        4,000 addresses, over TCP only
 *   ring.test        an alias of an alias of itself
 *   host.search.test 192.0.2.9
 *   a.b.test         192.0.2.8
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "test.h"
#include "base/sys.h"
#include "dns_world.h"

enum { NAMES = 16384, HELD = 64, TCP_MAX = 32 };
enum { A = 1, CNAME = 5, SOA = 6, PTR = 12, AAAA = 28 };

struct message {
	uint8_t bytes[65535];
	size_t size;
};

struct question {
	char name[256];
	int type;
	const uint8_t *bytes; /* points into the message */
	size_t size;
	struct sockaddr_in from;
};

static struct {
	pthread_t thread;
	pthread_mutex_t lock; /* protects names and held */
	int udp, tcp, ends[2];
	int peers[TCP_MAX], peer_count;
	char where[64];
	struct {
		char name[64];
		int counts[2]; /* of AAAA queries, and of others */
	} names[NAMES];
	int name_count;
	struct {
		struct sockaddr_in to;
		uint8_t bytes[512];
		size_t size;
	} held[HELD];
	int held_count;
	bool open; /* answers are no longer held */
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- counting ----------------------------------------------------------- */

static int *
counts_of(const char *name)
{
	int i = 0;

	while (i < server.name_count && strcmp(server.names[i].name, name) != 0)
		i++;
	if (i == server.name_count) {
		CHECK(i < NAMES);
		server.name_count++;
		memset(&server.names[i], 0, sizeof(server.names[i]));
		(void)snprintf(server.names[i].name, sizeof(server.names[i].name), "%s", name);
	}
	return server.names[i].counts;
}

static void
note(const struct question *q)
{
	pthread_mutex_lock(&server.lock);
	counts_of(q->name)[q->type != AAAA]++;
	pthread_mutex_unlock(&server.lock);
}

int
world_count(const char *name)
{
	const int *counts;
	int count;

	pthread_mutex_lock(&server.lock);
	counts = counts_of(name);
	count = counts[0] > counts[1] ? counts[0] : counts[1];
	pthread_mutex_unlock(&server.lock);
	return count;
}

/* --- messages ----------------------------------------------------------- */

static void
put(struct message *m, uint32_t number, size_t size)
{
	while (size-- > 0)
		m->bytes[m->size++] = (uint8_t)(number >> 8 * size);
}

static void
put_name(struct message *m, const char *name)
{
	while (*name) {
		size_t label = strcspn(name, ".");

		put(m, (uint32_t)label, 1);
		memcpy(m->bytes + m->size, name, label);
		m->size += label;
		name += label + (name[label] == '.');
	}
	put(m, 0, 1);
}

/* Writes the start of a record of `owner`, or of the queried name if `owner` is NULL. */
static void
put_record(struct message *m, const char *owner, int type, uint32_t ttl)
{
	if (owner)
		put_name(m, owner);
	else
		put(m, 0xc00c, 2);
	put(m, (uint32_t)type, 2);
	put(m, 1, 2);
	put(m, ttl, 4);
}

static void
put_v4(struct message *m, const char *owner, uint32_t ip, uint32_t ttl)
{
	put_record(m, owner, A, ttl);
	put(m, 4, 2);
	put(m, ip, 4);
}

static void
put_v6(struct message *m)
{
	static const uint8_t ip[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };

	put_record(m, NULL, AAAA, 300);
	put(m, 16, 2);
	memcpy(m->bytes + m->size, ip, 16);
	m->size += 16;
}

static void
put_alias(struct message *m, const char *owner, const char *of, uint32_t ttl)
{
	size_t at;

	put_record(m, owner, CNAME, ttl);
	at = m->size;
	put(m, 0, 2);
	put_name(m, of);
	m->bytes[at + 1] = (uint8_t)(m->size - at - 2);
}

static void
put_soa(struct message *m)
{
	put_record(m, "test", SOA, 900);
	put(m, 1 + 1 + 20, 2);
	put(m, 0, 1); /* primary server: the root */
	put(m, 0, 1); /* mailbox: the root */
	put(m, 1, 4);
	put(m, 2, 4);
	put(m, 3, 4);
	put(m, 4, 4);
	put(m, 20, 4); /* negative TTL, in seconds */
}

static void
set_counts(struct message *m, int answers, int authorities)
{
	m->bytes[7] = (uint8_t)answers;
	m->bytes[6] = (uint8_t)(answers >> 8);
	m->bytes[9] = (uint8_t)authorities;
}

static void
begin_answer(struct message *m, const struct question *q, const uint8_t *from)
{
	m->size = 0;
	put(m, (uint32_t)from[0] << 8 | from[1], 2);
	put(m, 0x8180, 2);
	put(m, 1, 2);
	put(m, 0, 4);
	put(m, 0, 2);
	memcpy(m->bytes + m->size, q->bytes, q->size);
	m->size += q->size;
}

static void
set_code(struct message *m, int code)
{
	m->bytes[3] = (uint8_t)(0x80 | code);
}

/* --- the names it knows ------------------------------------------------- */

static bool
is(const struct question *q, const char *name)
{
	return strcmp(q->name, name) == 0;
}

static bool
begins(const struct question *q, const char *with)
{
	return strncmp(q->name, with, strlen(with)) == 0;
}

static void
answer_no(struct message *m, int code, bool soa)
{
	set_code(m, code);
	if (soa) {
		put_soa(m);
		set_counts(m, 0, 1);
	}
}

static void
answer_v4(struct message *m, const struct question *q, uint32_t ip, uint32_t ttl)
{
	if (q->type == A) {
		put_v4(m, NULL, ip, ttl);
		set_counts(m, 1, 0);
	} else {
		answer_no(m, 0, true);
	}
}

static void
answer_chain(struct message *m, const struct question *q)
{
	if (q->type != A) {
		answer_no(m, 0, true);
		return;
	}
	put_alias(m, "chain.test", "chain2.test", 7);
	put_alias(m, "chain2.test", "chain3.test", 50);
	put_v4(m, "chain3.test", 0xc0000201, 300);
	set_counts(m, 3, 0);
}

static void
answer_ring(struct message *m)
{
	put_alias(m, "ring.test", "ring2.test", 300);
	put_alias(m, "ring2.test", "ring.test", 300);
	set_counts(m, 2, 0);
}

static void
answer_huge(struct message *m, const struct question *q)
{
	if (q->type != A) {
		answer_no(m, 0, true);
		return;
	}
	for (uint32_t i = 0; i < 4000; i++)
		put_v4(m, NULL, 0x0a000000 + i, 300);
	set_counts(m, 4000, 0);
}

static void
answer_name(struct message *m)
{
	size_t at;

	put_record(m, NULL, PTR, 300);
	at = m->size;
	put(m, 0, 2);
	put_name(m, "v4.test");
	m->bytes[at + 1] = (uint8_t)(m->size - at - 2);
	set_counts(m, 1, 0);
}

static void
answer_both(struct message *m, const struct question *q)
{
	if (q->type == A)
		put_v4(m, NULL, 0xc0000201, 300);
	else
		put_v6(m);
	set_counts(m, 1, 0);
}

static void
answer_garbage(struct message *m)
{
	static const uint8_t junk[] = "\377\377this is no record at all\300";

	memcpy(m->bytes + m->size, junk, sizeof(junk));
	m->size += sizeof(junk);
	set_counts(m, 5, 0);
}

static void
answer_short(struct message *m, const struct question *q)
{
	answer_v4(m, q, 0xc0000201, 300);
	if (q->type == A) {
		m->bytes[m->size - 5] = 3;
		m->size--;
	}
}

/* The correct answer.  answer_datagram() may still cut or hold it. */
static void
answer_truly(struct message *m, const struct question *q)
{
	if ((is(q, "v6.test") || is(q, "torn6.test")) && q->type == AAAA)
		answer_both(m, q);
	else if (is(q, "short.test"))
		answer_short(m, q);
	else if (is(q, "torn6.test"))
		answer_no(m, 0, true);
	else if (is(q, "torn4.test"))
		answer_v4(m, q, 0xc0000201, 300);
	else if (is(q, "v6.test") || is(q, "nodata.test"))
		answer_no(m, 0, true);
	else if (is(q, "both.test"))
		answer_both(m, q);
	else if (is(q, "nosoa.test"))
		answer_no(m, 3, false);
	else if (is(q, "fail.test"))
		answer_no(m, 2, false);
	else if (is(q, "refused.test"))
		answer_no(m, 5, false);
	else if (is(q, "chain.test"))
		answer_chain(m, q);
	else if (is(q, "ring.test"))
		answer_ring(m);
	else if (is(q, "huge.test"))
		answer_huge(m, q);
	else if (is(q, "garbage.test"))
		answer_garbage(m);
	else if (is(q, "1.2.0.192.in-addr.arpa"))
		answer_name(m);
	else if (is(q, "host.search.test"))
		answer_v4(m, q, 0xc0000209, 300);
	else if (is(q, "a.b.test"))
		answer_v4(m, q, 0xc0000208, 300);
	else if (strstr(q->name, ".many.test"))
		answer_v4(m, q, 0x0a000000 + (uint32_t)strtoul(q->name, NULL, 10), 300);
	else if (begins(q, "ttl"))
		answer_v4(m, q, 0xc0000201, (uint32_t)strtoul(q->name + 3, NULL, 10));
	else if (is(q, "v4.test") || is(q, "half.test") || begins(q, "held") || begins(q, "wrong")
	         || is(q, "tcp.test") || is(q, "cut.test"))
		answer_v4(m, q, 0xc0000201, 300);
	else
		answer_no(m, 3, true);
}

/* --- the thread --------------------------------------------------------- */

/* Reads the question of a message.  Returns false if there is none. */
static bool
read_question(const uint8_t *bytes, size_t size, struct question *q)
{
	size_t at = 12, end = 0;

	if (size < 17)
		return false;
	q->bytes = bytes + 12;
	while (at < size && bytes[at] > 0) {
		size_t label = bytes[at];

		if (at + 1 + label >= size || end + label + 2 > sizeof(q->name))
			return false;
		if (end > 0)
			q->name[end++] = '.';
		memcpy(q->name + end, bytes + at + 1, label);
		end += label;
		at += 1 + label;
	}
	if (at + 5 > size)
		return false;
	q->name[end] = 0;
	q->type = bytes[at + 1] << 8 | bytes[at + 2];
	q->size = at + 5 - 12;
	return true;
}

static void
reply(const struct question *q, const void *bytes, size_t size)
{
	(void)!sendto(server.udp, bytes, size, 0, (const struct sockaddr *)&q->from,
	              sizeof(q->from));
}

static bool
hold(const struct question *q, const struct message *m)
{
	bool kept;

	pthread_mutex_lock(&server.lock);
	kept = !server.open;
	if (kept) {
		CHECK(server.held_count < HELD && m->size <= 512);
		server.held[server.held_count].to = q->from;
		memcpy(server.held[server.held_count].bytes, m->bytes, m->size);
		server.held[server.held_count++].size = m->size;
	}
	pthread_mutex_unlock(&server.lock);
	return kept;
}

/* Sends a forged answer: another address, with a wrong query ID or for a wrong name. */
static void
lie(const struct question *q, const uint8_t *from, bool id)
{
	static struct message m;
	struct question other = *q;
	uint8_t bytes[512];

	memcpy(bytes, q->bytes, q->size);
	if (!id)
		bytes[1] ^= 1;
	other.bytes = bytes;
	begin_answer(&m, &other, from);
	if (id)
		m.bytes[0] ^= 0x55;
	answer_v4(&m, q, 0xc6336401, 300);
	reply(q, m.bytes, m.size);
}

static void
answer_datagram(const struct question *q, const uint8_t *from)
{
	static struct message m;

	begin_answer(&m, q, from);
	if (is(q, "silent.test") || (is(q, "half.test") && q->type == AAAA))
		return;
	if (is(q, "wrongid.test") || is(q, "wrongname.test"))
		lie(q, from, is(q, "wrongid.test"));
	if (is(q, "tcp.test") || is(q, "huge.test"))
		m.bytes[2] |= 2; /* TC: truncated */
	else
		answer_truly(&m, q);
	if (is(q, "stub.test"))
		m.size = 5;
	if (is(q, "cut.test") || (is(q, "torn4.test") && q->type == A)
	    || (is(q, "torn6.test") && q->type == AAAA))
		m.size -= 6;
	if (!begins(q, "held") || !hold(q, &m))
		reply(q, m.bytes, m.size);
}

static void
serve_datagram(void)
{
	uint8_t bytes[1024];
	struct question q;
	socklen_t size = sizeof(q.from);
	ssize_t count = recvfrom(server.udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&q.from,
	                         &size);

	if (count > 0 && read_question(bytes, (size_t)count, &q)) {
		note(&q);
		answer_datagram(&q, bytes);
	}
}

/* A query over TCP is small and comes from this host, so it arrives complete. */
static bool
serve_stream(int fd)
{
	static struct message m, out;
	struct question q;
	uint8_t size[2];

	if (recv(fd, size, 2, MSG_WAITALL) != 2)
		return false;
	m.size = (size_t)size[0] << 8 | size[1];
	if (recv(fd, m.bytes, m.size, MSG_WAITALL) != (ssize_t)m.size
	    || !read_question(m.bytes, m.size, &q))
		return false;
	note(&q);
	begin_answer(&out, &q, m.bytes);
	answer_truly(&out, &q);
	size[0] = (uint8_t)(out.size >> 8);
	size[1] = (uint8_t)out.size;
	return send(fd, size, 2, MSG_NOSIGNAL) == 2
	       && send(fd, out.bytes, out.size, MSG_NOSIGNAL) == (ssize_t)out.size;
}

static void
serve_peers(const struct pollfd *fds)
{
	int left = 0;

	for (int i = 0; i < server.peer_count; i++) {
		if (!fds[i].revents || serve_stream(server.peers[i]))
			server.peers[left++] = server.peers[i];
		else
			(void)close(server.peers[i]);
	}
	server.peer_count = left;
}

static void *
serve(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd fds[3 + TCP_MAX] = {
			{ .fd = server.ends[0], .events = POLLIN },
			{ .fd = server.udp, .events = POLLIN },
			{ .fd = server.tcp, .events = POLLIN },
		};
		int peers = server.peer_count;

		for (int i = 0; i < peers; i++)
			fds[3 + i] = (struct pollfd){ .fd = server.peers[i], .events = POLLIN };
		(void)poll(fds, 3 + (nfds_t)peers, -1);
		if (fds[0].revents)
			return NULL;
		if (fds[1].revents)
			serve_datagram();
		serve_peers(fds + 3);
		if (fds[2].revents && server.peer_count < TCP_MAX)
			server.peers[server.peer_count++] = accept(server.tcp, NULL, NULL);
	}
}

/* --- the interface for tests -------------------------------------------- */

static struct weft__sys warped;
static uint64_t warp_ns;
static const struct weft__sys *before;

static uint64_t
now(void)
{
	return before->now() + warp_ns;
}

void
world_warp(uint64_t ns)
{
	warp_ns += ns;
}

/* Both sockets need the same port, which may take several attempts. */
static void
open_sockets(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t size = sizeof(in);
	int rc = -1, room = 4 << 20;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 100 && rc < 0; i++) {
		in.sin_port = 0;
		server.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		server.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(bind(server.udp, (struct sockaddr *)&in, size) == 0);
		CHECK(getsockname(server.udp, (struct sockaddr *)&in, &size) == 0);
		rc = bind(server.tcp, (struct sockaddr *)&in, size);
		if (rc < 0) {
			(void)close(server.udp);
			(void)close(server.tcp);
		}
	}
	CHECK(rc == 0 && listen(server.tcp, 16) == 0);
	(void)setsockopt(server.udp, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	(void)snprintf(server.where, sizeof(server.where), "127.0.0.1:%d", ntohs(in.sin_port));
}

void
world_begin(void)
{
	open_sockets();
	CHECK(pipe(server.ends) == 0);
	server.open = false;
	server.name_count = server.held_count = 0;
	before = weft__sys;
	warp_ns = 0;
	warped = *weft__sys;
	warped.now = now;
	weft__sys = &warped;
	CHECK(pthread_create(&server.thread, NULL, serve, NULL) == 0);
}

void
world_end(void)
{
	CHECK(write(server.ends[1], "", 1) == 1);
	CHECK(pthread_join(server.thread, NULL) == 0);
	while (server.peer_count > 0)
		(void)close(server.peers[--server.peer_count]);
	(void)close(server.ends[0]);
	(void)close(server.ends[1]);
	(void)close(server.udp);
	(void)close(server.tcp);
	weft__sys = before;
}

weft_loop *
world_loop(struct weft__dns_setup *set)
{
	struct weft__dns_setup none = { 0 };
	weft_loop *loop = weft_loop_new(NULL);

	set = set ? set : &none;
	if (!set->servers)
		set->servers = server.where;
	if (!set->timeout_ms)
		set->timeout_ms = 2000;
	if (!set->resolv_conf)
		set->resolv_conf = "/dev/null";
	CHECK(loop != NULL);
	CHECK_EQ(weft__dns_set_up(loop, set), 0);
	return loop;
}

void
world_release(void)
{
	pthread_mutex_lock(&server.lock);
	server.open = true;
	while (server.held_count > 0) {
		server.held_count--;
		(void)!sendto(server.udp, server.held[server.held_count].bytes,
		              server.held[server.held_count].size, 0,
		              (const struct sockaddr *)&server.held[server.held_count].to,
		              sizeof(struct sockaddr_in));
	}
	pthread_mutex_unlock(&server.lock);
}
