/* dns_scenarios.c - host names, resolved by ops and by a threadlet.
 *
 * The DNS server is a thread of the scenario, which does not use the failing table.  If the
 * library has c-ares, c-ares allocates through the table here, so that its allocations fail,
 * too.  Whatever fails, each op ends once, with the right address or with an error.  After the
 * fault is healed, names are resolved.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/sys.h"
#include "fault.h"
#include "net/dns/dns.h"
#include "scenarios.h"
#if HAS_CARES
#include <ares.h>
#endif

enum { OPS = 3 };

/* --- the server --------------------------------------------------------- */

static const char farewell[4] = "bye";

struct server {
	pthread_t thread;
	int fd;
	char where[64];
};

/* Every host has the address 192.0.2.1 and no IPv6 address. */
static size_t
answer(uint8_t *bytes, size_t size)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1 };
	bool is4 = bytes[size - 4] == 0 && bytes[size - 3] == 1;

	bytes[2] = 0x81;
	bytes[3] = 0x80;
	bytes[7] = is4;
	if (is4)
		memcpy(bytes + size, record, sizeof(record));
	return is4 ? size + sizeof(record) : size;
}

static void *
serve(void *arg)
{
	struct server *server = arg;
	struct sockaddr_in from;
	uint8_t bytes[1024];
	ssize_t size;

	for (;;) {
		socklen_t room = sizeof(from);

		size = recvfrom(server->fd, bytes, 512, 0, (struct sockaddr *)&from, &room);
		if (size == sizeof(farewell))
			return NULL;
		if (size > 17)
			(void)!sendto(server->fd, bytes, answer(bytes, (size_t)size), 0,
			              (struct sockaddr *)&from, room);
	}
}

static void
address_of(const struct server *server, struct sockaddr_in *out)
{
	socklen_t size = sizeof(*out);

	EXPECT(getsockname(server->fd, (struct sockaddr *)out, &size) == 0);
}

static void
begin_serving(struct server *server)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	EXPECT(bind(server->fd, (struct sockaddr *)&in, sizeof(in)) == 0);
	address_of(server, &in);
	(void)snprintf(server->where, sizeof(server->where), "127.0.0.1:%d", ntohs(in.sin_port));
	EXPECT(pthread_create(&server->thread, NULL, serve, server) == 0);
}

static void
end_serving(struct server *server)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to;

	address_of(server, &to);
	EXPECT(sendto(fd, farewell, sizeof(farewell), 0, (struct sockaddr *)&to, sizeof(to))
	       == sizeof(farewell));
	EXPECT(pthread_join(server->thread, NULL) == 0);
	fault_close(fd);
	fault_close(server->fd);
}

/* --- memory of c-ares --------------------------------------------------- */

#if HAS_CARES
static void *
take(size_t size)
{
	return weft__sys->alloc(size);
}

static void *
resize(void *mem, size_t size)
{
	return weft__sys->resize(mem, size);
}

static void
give(void *mem)
{
	weft__sys->release(mem);
}

static void
take_over_memory(void)
{
	static bool done;

	if (!done)
		EXPECT(ares_library_init_mem(ARES_LIB_INIT_ALL, take, give, resize)
		       == ARES_SUCCESS);
	done = true;
}
#else
static void
take_over_memory(void)
{
}
#endif

/* --- queries ------------------------------------------------------------ */

struct query {
	struct job job;
	weft_addr out;
};

static void
on_found(weft_op *op, int64_t result, void *arg)
{
	struct query *query = arg;

	(void)op;
	EXPECT(query->job.left == 1);
	query->job.left = 0;
	query->job.result = result;
}

static void
start_query(struct world *world, struct query *query, const char *address)
{
	*query = (struct query){ .job = { .result = WEFT_EINVAL } };
	EXPECT(weft_op_init(&query->job.op, world->loop, on_found, query) == 0);
	begin(&query->job, weft__dns_resolve_op(address, &query->out, 1, &query->job.op,
	                                        weft_after(50 * WAIT_NS)));
}

/* Returns the result: the only address, or an error if a fault was injected. */
static int64_t
take_answer(struct world *world, struct query *query)
{
	char text[WEFT_ADDR_TEXT_MAX];
	int64_t result = await(world, &query->job);

	EXPECT(result == 1 || fault_hits() > 0);
	EXPECT(result == 1 || query->out.size == 0);
	if (result == 1) {
		EXPECT(weft_addr_format(&query->out, text, sizeof(text)) > 0);
		EXPECT(strcmp(text, "tcp://192.0.2.1:80") == 0);
	}
	return result;
}

static void
query_by_ops(struct world *world)
{
	static const char *const addresses[OPS] = {
		"tcp://a.test:80",
		"tcp://b.test:80",
		"tcp://a.test:80",
	};
	struct query queries[OPS], left;

	for (int i = 0; i < OPS; i++)
		start_query(world, &queries[i], addresses[i]);
	start_query(world, &left, "tcp://c.test:80");
	weft_op_cancel(&left.job.op);
	for (int i = 0; i < OPS; i++)
		(void)take_answer(world, &queries[i]);
	(void)await(world, &left.job);
	EXPECT(left.job.result == WEFT_ECANCELED || fault_hits() > 0);
	start_query(world, &left, "tcp://a.test:80"); /* cached by now */
	(void)take_answer(world, &left);
}

/* --- a threadlet -------------------------------------------------------- */

static int
use_names(void *arg)
{
	weft_addr out[2];
	int rc = weft_dns_resolve("tcp://localhost:80", out, 2, weft_after(50 * WAIT_NS));

	EXPECT(rc == 2 || fault_hits() > 0);
	rc = weft_dns_resolve("tcp://d.test:80", out, 2, weft_after(50 * WAIT_NS));
	EXPECT(rc == 1 || fault_hits() > 0);
	*(int *)arg = 0;
	return 0;
}

static void
query_by_threadlet(struct world *world)
{
	weft_go_opts opts = { .loop = world->loop };
	int left = 1;

	if (weft_go_with(&opts, use_names, &left) < 0) {
		EXPECT(fault_hits() > 0);
		return;
	}
	for (int i = 0; i < 100 && left > 0; i++)
		drive(world->loop, &left);
	EXPECT(left == 0);
}

/* --- all of it ---------------------------------------------------------- */

/* No more faults are injected: a name that was not queried before is resolved. */
static void
check_names(struct world *world)
{
	struct query query;

	check_works(world);
	if (fault_hits() == 0)
		return;
	fault_heal();
	start_query(world, &query, "tcp://e.test:80");
	for (int i = 0; i < 50 && query.job.left > 0; i++)
		drive(world->loop, &query.job.left);
	EXPECT(query.job.result == 1);
}

void
run_dns(const char *backend)
{
	struct weft__dns_setup set = { .resolv_conf = "/dev/null", .timeout_ms = 10, .tries = 3 };
	struct server server;
	struct world world;

	take_over_memory();
	begin_serving(&server);
	set.servers = server.where;
	if (make_world(&world, backend, 0)) {
		if (weft__dns_set_up(world.loop, &set) < 0) {
			EXPECT(fault_hits() > 0);
			fault_heal();
			EXPECT(weft__dns_set_up(world.loop, &set) == 0);
		}
		query_by_ops(&world);
		query_by_threadlet(&world);
		check_names(&world);
		end_world(&world);
	}
	end_serving(&server);
}
