/* talk.c - a store without a network: command lines in, replies out. */
#include "store/talk.h"

int64_t talk_ms;

static int64_t
clock_ms(void)
{
	return talk_ms;
}

struct talk
talk_open(const weft_store_opts *opts)
{
	struct talk talk = { .loop = make() };

	talk_ms = INT64_C(1700000000000);
	OK(weft_store_open(talk.loop, opts, &talk.store));
	talk.store->clock_ms = clock_ms;
	talk.store->now_ms = talk_ms;
	return talk;
}

void
talk_close(struct talk *talk)
{
	CHECK_EQ(store_free(talk->store), 0);
	OK(weft_loop_free(talk->loop));
}

struct client *
talk_client(struct talk *talk)
{
	return client_new(talk->store);
}

const char *
talk_hear(struct client *client)
{
	static char heard[1 << 20];
	size_t size = client->out.size;

	CHECK(size < sizeof(heard));
	if (size > 0)
		memcpy(heard, client->out.data, size);
	heard[size] = '\0';
	client->out.size = 0;
	return heard;
}

const char *
talk_say(struct client *client, const char *line)
{
	client_feed(client, line, strlen(line));
	client_feed(client, "\r\n", 2);
	return talk_hear(client);
}
