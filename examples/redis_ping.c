/* redis_ping.c - how fast Redis servers answer, all asked at once by callbacks.
 *
 *     redis_ping ADDRESS...
 */
#include <stdio.h>
#include <weft/redis.h>
#include <weft/weft.h>

#define SERVERS 16

struct server {
	char name[160]; /* the address without its password */
	weft_redis *redis;
	weft_redis_reply *reply;
	weft_op ping;
	uint64_t sent_ns;
	int left; /* pings, also the first, which connects */
};

static int failures;

static void ping(struct server *server);

static void
finish(struct server *server, int error)
{
	if (error < 0) {
		failures++;
		printf("%s: %s\n", server->name, weft_strerror(error));
	}
	weft_redis_close(server->redis); /* now the run may return */
}

static void
on_reply(weft_op *op, int64_t result, void *arg)
{
	struct server *server = arg;
	double us = (double)(weft_now() - server->sent_ns) / WEFT_US;
	weft_span text;

	(void)op;
	if (result == 0)
		result = weft_redis_text(server->reply, &text);
	if (result == 0)
		printf("%s: %s after %.0f us\n", server->name,
		       (const char *)text.data, us);
	weft_redis_reply_free(server->reply);
	server->reply = NULL;
	if (result == 0 && --server->left > 0)
		ping(server);
	else
		finish(server, (int)result);
}

static void
ping(struct server *server)
{
	weft_span args[] = { weft_text("PING") };
	int rc;

	server->sent_ns = weft_now();
	rc = weft_redis_call_op(server->redis, args, 1, &server->reply,
	                        &server->ping, weft_after(2 * WEFT_S));
	if (rc < 0)
		finish(server, rc);
}

int
main(int argc, char **argv)
{
	static struct server servers[SERVERS];
	weft_loop *loop = weft_loop_new(NULL);
	weft_redis_opts opts = { .loop = loop };

	if (!loop || argc > SERVERS + 1)
		return 2;
	for (int i = 0; i < argc - 1; i++) {
		struct server *server = &servers[i];

		weft_addr_mask(argv[i + 1], server->name, sizeof server->name);
		server->left = 3;
		weft_op_init(&server->ping, loop, on_reply, server);
		if (weft_redis_open(argv[i + 1], &opts, &server->redis) < 0) {
			fprintf(stderr, "%s\n", weft_detail());
			return 2;
		}
		ping(server);
	}
	return weft_loop_run(loop) < 0 || weft_loop_free(loop) < 0
	       || failures > 0;
}
