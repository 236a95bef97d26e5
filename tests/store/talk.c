/* talk.c - a store without a network: command lines in, replies out. */
#include "store/talk.h"
#include <stdio.h>

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
talk_output(struct client *client)
{
	static char output[1 << 20];
	size_t size = client->out.size;

	CHECK(size < sizeof(output));
	if (size > 0)
		memcpy(output, client->out.data, size);
	output[size] = '\0';
	client->out.size = 0;
	return output;
}

const char *
talk_send(struct client *client, const char *line)
{
	char data[4096];
	int size = snprintf(data, sizeof(data), "%s\r\n", line);

	CHECK(size > 0 && size < (int)sizeof(data));
	(void)client_run(client, data, (size_t)size);
	return talk_output(client);
}
