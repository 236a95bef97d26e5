/* hiredis_ask.c - a program that uses hiredis with a store at a Unix socket.
 *
 *     hiredis_ask PATH
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext *context;

static void
check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "not as it should be: %s (%s)\n", what,
	        context ? context->errstr : "no connection");
	exit(1);
}

static void
expect_text(const char *command, const char *text)
{
	redisReply *reply = redisCommand(context, command);

	check(reply && reply->str && strcmp(reply->str, text) == 0, command);
	freeReplyObject(reply);
}

static void
expect_number(const char *command, long long number)
{
	redisReply *reply = redisCommand(context, command);

	check(reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == number, command);
	freeReplyObject(reply);
}

static void
pipeline(int count)
{
	redisReply *reply;

	for (int i = 0; i < count; i++)
		check(redisAppendCommand(context, "RPUSH l %d", i) == REDIS_OK, "append");
	for (int i = 0; i < count; i++) {
		check(redisGetReply(context, (void **)&reply) == REDIS_OK, "pipeline");
		check(reply->integer == i + 1, "answers in their order");
		freeReplyObject(reply);
	}
	reply = redisCommand(context, "LRANGE l 0 -1");
	check(reply && reply->elements == (size_t)count, "LRANGE");
	freeReplyObject(reply);
}

int
main(int argc, char **argv)
{
	char bytes[] = "a\0b";
	redisReply *reply;

	check(argc == 2, "usage: hiredis_ask PATH");
	context = redisConnectUnix(argv[1]);
	check(context && !context->err, "connect");
	expect_text("FLUSHALL", "OK");
	expect_text("SET a 41", "OK");
	expect_number("INCR a", 42);
	expect_text("GET a", "42");
	expect_text("HGET a f", "WRONGTYPE Operation against a key holding the "
	                        "wrong kind of value");
	reply = redisCommand(context, "SET b %b", bytes, (size_t)3);
	freeReplyObject(reply);
	expect_number("STRLEN b", 3);
	pipeline(10000);
	expect_number("HSET h f v", 1);
	reply = redisCommand(context, "HGETALL h");
	check(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2, "HGETALL");
	freeReplyObject(reply);
	redisFree(context);
	return 0;
}
