/* store_fuzz.c - the store, for any input of clients and any split of it.
 *
 * The first byte of an input selects where the rest is split.  The second selects RESP3, a
 * password and tight limits.  The rest is the input of one client; a second client has subscribed
 * to everything.  Short inputs also run with a request_max smaller than the input; the first byte
 * selects it.  The rules:
 *
 *   1. The replies are the same for the input at once, byte by byte, and in pieces.
 *   2. The output is a sequence of complete replies.
 *   3. When the store is freed, all its memory has been freed.
 *   4. No incomplete request is kept beyond request_max.
 */
#include <string.h>
#include "fuzz.h"
#include "store/connection/client.h"

#define SMALL 400 /* up to this size also byte by byte */
#define TIGHT 16  /* in the second byte: request_max is smaller than the input */

struct outcome {
	char text[1 << 16];
	size_t size;
	uint32_t flags;
	size_t keys;
};

static struct outcome whole, other;

static int64_t
clock_ms(void)
{
	return INT64_C(1700000000000);
}

/* --- rule 2 ------------------------------------------------------------------ */

static const char *
check_line(const char *at, const char *end)
{
	const char *line = memchr(at, '\r', (size_t)(end - at));

	ORACLE(line && line + 1 < end && line[1] == '\n', "no end of a line");
	return line + 2;
}

static const char *
check_reply(const char *at, const char *end, int depth)
{
	const char *line;
	long long count;
	char kind;

	ORACLE(at < end && depth < 8, "a reply is not whole");
	kind = *at;
	ORACLE(strchr("+-:$*,#_%~>=", kind), "no reply: %d", kind);
	line = check_line(at, end);
	if (!strchr("$*%~>=", kind))
		return line;
	count = strtoll(at + 1, NULL, 10);
	if (kind == '$' || kind == '=') {
		if (count < 0)
			return line;
		ORACLE(end - line >= count + 2, "a bulk is not whole");
		return line + count + 2;
	}
	for (count *= kind == '%' ? 2 : 1; count > 0; count--)
		line = check_reply(line, end, depth + 1);
	return line;
}

static void
check_replies(const struct client *client)
{
	const char *at = client->out.data, *end;

	if ((client->flags & CLIENT_CLOSING) || client->out.size == 0)
		return;
	end = at + client->out.size;
	while (at < end)
		at = check_reply(at, end, 0);
}

/* --- rule 4 ------------------------------------------------------------------ */

/* Checks the `size` bytes that a client has not consumed.  The line end after the last argument,
 * and the size of the next one, may be beyond the limit.  Inline commands have a limit of their
 * own. */
static void
check_limit(const struct client *client, const uint8_t *data, size_t size)
{
	size_t most = client->store->limits.request_max + 34;

	if (client->reader.need <= size || client->flags & (CLIENT_CLOSING | CLIENT_LAST))
		return; /* it is complete, and waits */
	ORACLE(size == 0 || data[0] != '*' || size <= most,
	       "%zu bytes of an incomplete request, more than %zu", size, most);
}

/* --- rules 1 and 3 ------------------------------------------------------------ */

static void
take(struct outcome *outcome, const struct client *client)
{
	size_t room = sizeof(outcome->text) - outcome->size;
	size_t size = client->out.size < room ? client->out.size : room;

	check_replies(client);
	if (size > 0)
		memcpy(outcome->text + outcome->size, client->out.data, size);
	outcome->size += size;
	outcome->flags = client->flags;
}

static void
begin(struct client *client, unsigned how)
{
	static const char hello[] = "HELLO 3\r\n", login[] = "AUTH p\r\n";

	if ((how & 6) == 6)
		(void)client_run(client, login, sizeof(login) - 1);
	if (how & 1)
		(void)client_run(client, hello, sizeof(hello) - 1);
}

static void
run(struct outcome *outcome, const uint8_t *data, size_t size, size_t cut, unsigned how)
{
	static const char all[] = "PSUBSCRIBE *\r\n";
	weft_store_opts opts = { 0 };
	weft_loop *loop = weft_loop_new(NULL);
	struct client *client, *listener;
	weft_store *store;
	size_t used = 0;

	opts.password = how & 2 ? "p" : NULL;
	opts.output_max = 1 << 20;
	opts.memory_max = 8 << 20;
	opts.bulk_max = how & 8 ? 16 : 1 << 16;
	opts.args_max = how & 8 ? 4 : 1000;
	opts.request_max = how & TIGHT ? 1 + (how >> 8) % size : 0;
	if (weft_store_open(loop, &opts, &store) < 0)
		abort();
	store->clock_ms = clock_ms;
	store->now_ms = clock_ms();
	listener = client_new(store);
	(void)client_run(listener, all, sizeof(all) - 1);
	client = client_new(store);
	begin(client, how);
	for (size_t at = cut; at < size + cut; at += cut) {
		size_t end = at < size ? at : size;

		if (end - used < client->reader.need)
			continue;
		used += client_run(client, (const char *)data + used, end - used);
		check_limit(client, data + used, end - used);
	}
	outcome->size = 0;
	take(outcome, listener);
	take(outcome, client);
	outcome->keys = map_count(&store->keys);
	ORACLE(store_free(store) == 0, "memory was lost");
	(void)weft_loop_free(loop);
}

static void
compare(const uint8_t *data, size_t size, size_t cut, unsigned how)
{
	run(&other, data, size, cut, how);
	ORACLE(whole.size == other.size && memcmp(whole.text, other.text, whole.size) == 0
	               && whole.keys == other.keys
	               && ((whole.flags ^ other.flags) & (CLIENT_LAST | CLIENT_BLOCKED)) == 0,
	       "other answers in pieces of %zu", cut);
}

/* The replies of INFO differ between runs. */
static bool
is_fickle(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 4 <= size; at++)
		if (strncasecmp((const char *)data + at, "info", 4) == 0)
			return true;
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const uint8_t *data = input + 2;
	unsigned how;

	if (size < 3 || size > (1 << 14))
		return 0;
	size -= 2;
	how = input[1] | (unsigned)input[0] << 8;
	if (is_fickle(data, size))
		return 0;
	run(&whole, data, size, size, how);
	if (size <= SMALL) {
		compare(data, size, 1, how);
		run(&other, data, size, 1, how | TIGHT);
	}
	compare(data, size, input[0] % size + 1, how);
	return 0;
}
