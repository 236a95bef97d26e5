/* hiredis_test.c - a program that uses hiredis on a weft loop, against a redis-server. */
#include <arpa/inet.h>
#include <unistd.h>
#include <weft/hiredis.h>
#include "base/sys.h"
#include "real_redis.h"
#include "unit/probe.h"

/* One context, and the events it got. */
struct user {
	weft_loop *loop;
	struct real_redis *redis;
	redisAsyncContext *context;
	int sent, replies, lost; /* commands; lost ones had no reply */
	int total;               /* commands to send */
	int connected, disconnected;
	int status; /* of the last of these two events */
	void (*act)(struct user *user, const redisReply *reply);
};

static void
on_connect(const redisAsyncContext *context, int status)
{
	struct user *user = context->data;

	user->connected++;
	user->status = status;
}

static void
on_disconnect(const redisAsyncContext *context, int status)
{
	struct user *user = context->data;

	user->disconnected++;
	user->status = status;
}

/* `data` is the number of the command, and so is the text of its reply. */
static void
on_reply(redisAsyncContext *context, void *answer, void *data)
{
	struct user *user = context->data;
	const redisReply *reply = answer;

	CHECK_EQ((intptr_t)data, user->replies + user->lost);
	if (!reply) {
		user->lost++;
		return;
	}
	CHECK_EQ(user->lost, 0);
	CHECK_EQ(reply->type, REDIS_REPLY_STRING);
	CHECK_EQ(strtol(reply->str, NULL, 10), user->replies);
	user->replies++;
	if (user->act)
		user->act(user, reply);
}

static void
echo(struct user *user)
{
	CHECK_EQ(redisAsyncCommand(user->context, on_reply, (void *)(intptr_t)user->sent, "ECHO %d",
	                           user->sent),
	         REDIS_OK);
	user->sent++;
}

static void
attach(struct user *user, redisAsyncContext *context)
{
	CHECK(context && !context->err);
	user->context = context;
	context->data = user;
	OK(weft_redis_attach_hiredis(user->loop, context));
	CHECK_EQ(redisAsyncSetConnectCallback(context, on_connect), REDIS_OK);
	CHECK_EQ(redisAsyncSetDisconnectCallback(context, on_disconnect), REDIS_OK);
}

/* Start a server, a loop and a context with `count` commands in flight. */
static void
begin(struct user *user, struct real_redis *redis, int count)
{
	*user = (struct user){ .redis = redis };
	real_redis_start(redis);
	user->loop = make();
	attach(user, redisAsyncConnectUnix(redis->socket));
	for (int i = 0; i < count; i++)
		echo(user);
}

static void
end(struct user *user)
{
	OK(weft_loop_free(user->loop));
	real_redis_stop(user->redis);
}

/* --- commands ---------------------------------------------------------------- */

static void
send_next(struct user *user, const redisReply *reply)
{
	(void)reply;
	if (user->sent < user->total)
		echo(user);
	else if (user->replies == user->total)
		redisAsyncDisconnect(user->context);
}

TEST(ten_thousand_commands_get_their_replies_in_order)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 100);
	user.total = 10000;
	user.act = send_next;
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 10000);
	CHECK_EQ(user.connected, 1);
	CHECK_EQ(user.disconnected, 1);
	CHECK_EQ(user.status, REDIS_OK);
	end(&user);
}

TEST(eight_contexts_share_a_loop)
{
	struct real_redis redis;
	struct user user, others[7];

	begin(&user, &redis, 10);
	user.total = 1000;
	user.act = send_next;
	for (int i = 0; i < 7; i++) {
		others[i] = (struct user){ .loop = user.loop, .total = 1000, .act = send_next };
		attach(&others[i], redisAsyncConnectUnix(redis.socket));
		echo(&others[i]);
	}
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 1000);
	for (int i = 0; i < 7; i++)
		CHECK_EQ(others[i].replies, 1000);
	end(&user);
}

#define LARGE (8 << 20)

static void
on_large(redisAsyncContext *context, void *answer, void *data)
{
	struct user *user = context->data;
	const redisReply *reply = answer;

	CHECK(reply && reply->type == REDIS_REPLY_STRING);
	CHECK_EQ(reply->len, LARGE);
	CHECK(memcmp(reply->str, data, LARGE) == 0);
	user->replies++;
	redisAsyncDisconnect(context);
}

TEST(value_larger_than_socket_buffers_is_transferred)
{
	struct real_redis redis;
	struct user user;
	char *data = malloc(LARGE);

	for (int i = 0; i < LARGE; i++)
		data[i] = (char)(i * 7 + i / 251);
	begin(&user, &redis, 0);
	CHECK_EQ(redisAsyncCommand(user.context, NULL, NULL, "SET k %b", data, (size_t)LARGE),
	         REDIS_OK);
	CHECK_EQ(redisAsyncCommand(user.context, on_large, data, "GET k"), REDIS_OK);
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 1);
	end(&user);
	free(data);
}

/* --- publish and subscribe ------------------------------------------------------- */

static void
on_message(redisAsyncContext *context, void *answer, void *data)
{
	struct user *user = context->data, *other = data;
	const redisReply *reply = answer;

	if (!reply)
		return;
	CHECK_EQ(reply->elements, 3);
	if (strcmp(reply->element[0]->str, "subscribe") == 0) {
		CHECK_EQ(redisAsyncCommand(other->context, NULL, NULL, "PUBLISH news hello"),
		         REDIS_OK);
		return;
	}
	CHECK_STR(reply->element[2]->str, "hello");
	user->replies++;
	redisAsyncFree(context);
	redisAsyncDisconnect(other->context);
}

TEST(subscriber_gets_messages)
{
	struct real_redis redis;
	struct user user, hearer;

	begin(&user, &redis, 0);
	hearer = (struct user){ .loop = user.loop };
	attach(&hearer, redisAsyncConnectUnix(redis.socket));
	CHECK_EQ(redisAsyncCommand(hearer.context, on_message, &user, "SUBSCRIBE news"), REDIS_OK);
	OK(weft_loop_run(user.loop));
	CHECK_EQ(hearer.replies, 1);
	CHECK_EQ(hearer.disconnected, 1);
	CHECK_EQ(user.disconnected, 1);
	end(&user);
}

/* --- disconnecting --------------------------------------------------------------- */

static void
disconnect(struct user *user, const redisReply *reply)
{
	(void)reply;
	redisAsyncDisconnect(user->context);
}

TEST(disconnect_in_a_callback_finishes_commands_in_flight)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 100);
	user.act = disconnect;
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 100);
	CHECK_EQ(user.disconnected, 1);
	CHECK_EQ(user.status, REDIS_OK);
	end(&user);
}

static void
free_it(struct user *user, const redisReply *reply)
{
	(void)reply;
	if (user->replies == 10)
		redisAsyncFree(user->context);
}

TEST(context_freed_in_a_callback_fails_other_commands)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 100);
	user.act = free_it;
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 10);
	CHECK_EQ(user.lost, 90);
	CHECK_EQ(user.disconnected, 1);
	end(&user);
}

TEST(context_freed_before_the_loop_runs_leaves_nothing)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 5);
	redisAsyncFree(user.context);
	CHECK_EQ(user.lost, 5);
	OK(weft_loop_run(user.loop));
	end(&user);
}

static void
kill_server(struct user *user, const redisReply *reply)
{
	(void)reply;
	if (user->replies < 50) {
		echo(user);
		return;
	}
	if (user->redis->pid)
		real_redis_kill(user->redis);
	if (user->sent < 2000)
		echo(user); /* gets no reply, unless it was answered before */
}

TEST(server_that_dies_fails_commands_in_flight)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 20);
	user.act = kill_server;
	OK(weft_loop_run(user.loop));
	CHECK(user.replies >= 50);
	CHECK(user.lost > 0);
	CHECK_EQ(user.replies + user.lost, user.sent);
	CHECK_EQ(user.disconnected, 1);
	CHECK_EQ(user.status, REDIS_ERR);
	end(&user);
}

static void
stop_loop(struct user *user, const redisReply *reply)
{
	(void)reply;
	if (user->replies == 10)
		weft_loop_shutdown(user->loop);
	if (user->replies < 10)
		echo(user);
}

TEST(loop_shutdown_frees_the_context_and_fails_its_commands)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 3);
	user.act = stop_loop;
	OK(weft_loop_run(user.loop));
	CHECK(user.replies >= 10);
	CHECK_EQ(user.replies + user.lost, user.sent);
	CHECK_EQ(user.disconnected, 1);
	end(&user);
}

static void
on_blocked(redisAsyncContext *context, void *answer, void *data)
{
	struct user *user = context->data;

	(void)data;
	CHECK(!answer);
	user->lost++;
	/* The context is being freed.  That must not happen twice. */
	redisAsyncFree(context);
	redisAsyncDisconnect(context);
}

static void
stop_now(struct user *user, const redisReply *reply)
{
	(void)reply;
	CHECK_EQ(redisAsyncCommand(user->context, on_blocked, NULL, "BLPOP nothing 0"), REDIS_OK);
	weft_loop_shutdown(user->loop);
}

TEST(blocking_command_ends_with_the_loop)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 1);
	user.act = stop_now;
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 1);
	CHECK_EQ(user.lost, 1);
	CHECK_EQ(user.disconnected, 1);
	end(&user);
}

TEST(unused_context_is_freed_with_its_loop)
{
	struct real_redis redis;
	struct user user = { .redis = &redis };
	redisAsyncContext *context;

	real_redis_start(&redis);
	user.loop = make();
	context = redisAsyncConnectUnix(redis.socket);
	OK(weft_redis_attach_hiredis(user.loop, context));
	turn(user.loop);
	weft_loop_shutdown(user.loop);
	OK(weft_loop_run(user.loop));
	end(&user);
}

/* --- refused contexts ---------------------------------------------------------- */

TEST(context_can_be_attached_only_once)
{
	struct real_redis redis;
	struct user user;

	begin(&user, &redis, 1);
	CHECK_EQ(weft_redis_attach_hiredis(user.loop, user.context), WEFT_EBUSY);
	CHECK_EQ(weft_redis_attach_hiredis(user.loop, NULL), WEFT_EINVAL);
	user.act = disconnect;
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.replies, 1);
	end(&user);
}

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(attach_fails_without_memory_or_connection)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys sys = *before;
	struct real_redis redis;
	struct user user;
	redisAsyncContext *none = redisAsyncConnectUnix("/nonexistent/socket");
	redisAsyncContext *other;

	begin(&user, &redis, 0);
	CHECK(none && none->err);
	CHECK_EQ(weft_redis_attach_hiredis(user.loop, none), WEFT_EBADF);
	redisAsyncFree(none);
	other = redisAsyncConnectUnix(redis.socket);
	sys.alloc = no_memory;
	weft__sys = &sys;
	CHECK_EQ(weft_redis_attach_hiredis(user.loop, other), WEFT_ENOMEM);
	weft__sys = before;
	CHECK(!other->ev.data);
	redisAsyncFree(other);
	redisAsyncFree(user.context);
	end(&user);
}

/* A port of this machine without a listener.  It stays bound, so that no process can listen on
 * it. */
static int
closed_port(int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(fd, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

TEST(refused_connection_is_reported)
{
	struct user user = { .loop = make() };
	int port, fd = closed_port(&port);

	attach(&user, redisAsyncConnect("127.0.0.1", port));
	echo(&user);
	OK(weft_loop_run(user.loop));
	CHECK_EQ(user.connected, 1);
	CHECK_EQ(user.status, REDIS_ERR);
	CHECK_EQ(user.lost, 1);
	(void)close(fd);
	OK(weft_loop_free(user.loop));
}
