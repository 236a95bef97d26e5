/* redis_node.c - a node that runs a Redis command. */
#include <stdlib.h>
#include <string.h>
#include "run.h"

#define DEFAULT_SERVER "redis://127.0.0.1:6379"

static int
connect_to(struct dagrun *run)
{
	const char *server = run->opts.server ? run->opts.server : run->file->server;

	if (run->redis)
		return 0;
	return weft_redis_open(server ? server : DEFAULT_SERVER, NULL, &run->redis);
}

/* Formats a reply as text, one line per item; for a map both keys and values. */
static int
add_reply(struct bytes *to, const weft_redis_reply *reply, int depth)
{
	weft_span span;
	int64_t integer;
	char digits[40];

	if (weft_redis_text(reply, &span) == 0)
		return bytes_add(to, span.data, span.size);
	if (weft_redis_reply_type(reply) == WEFT_REDIS_INTEGER
	    || weft_redis_reply_type(reply) == WEFT_REDIS_BOOL) {
		(void)weft_redis_integer(reply, &integer);
		(void)snprintf(digits, sizeof(digits), "%lld", (long long)integer);
		return bytes_add_text(to, digits);
	}
	if (weft_redis_reply_type(reply) == WEFT_REDIS_NUMBER) {
		double number = 0;

		(void)weft_redis_number(reply, &number);
		(void)snprintf(digits, sizeof(digits), "%.17g", number);
		return bytes_add_text(to, digits);
	}
	for (size_t i = 0; i < weft_redis_count(reply) && to->rc == 0 && depth < 8; i++) {
		(void)add_reply(to, weft_redis_item(reply, i), depth + 1);
		(void)bytes_add_text(to, "\n");
	}
	return to->rc;
}

static void
show_reply(struct attempt *attempt, const struct bytes *text)
{
	const char *at = text->data ? text->data : "";

	while (*at) {
		size_t size = strcspn(at, "\n");

		show_output(&attempt->run->show, stdout, attempt->label.text,
		            (weft_span){ at, size });
		at += size + (at[size] == '\n');
	}
}

static int
redis_node_call(struct attempt *attempt, const weft_span *words, size_t count)
{
	weft_redis_reply *reply = NULL;
	struct bytes text = { 0 };
	int rc = weft_redis_call(attempt->run->redis, words, count, &reply, WEFT_NEVER);

	if (rc == 0)
		rc = add_reply(&text, reply, 0);
	if (rc == 0 && text.size > OUTPUT_MAX)
		rc = weft_fail(WEFT_EMSGSIZE, "the output is larger than %zu bytes", OUTPUT_MAX);
	if (rc == 0 && attempt->node->output == DAGFILE_OUTPUT_SHOW)
		show_reply(attempt, &text);
	if (rc == 0)
		rc = attempt_output(attempt, &text);
	weft_redis_reply_free(reply);
	bytes_free(&text);
	return rc;
}

int
redis_run(struct attempt *attempt)
{
	size_t count = 0, made = 0;
	struct bytes *texts;
	weft_span *words;
	int rc = connect_to(attempt->run);

	for (struct dagfile_word *w = attempt->node->words; w; w = w->next)
		count++;
	texts = calloc(count, sizeof(*texts));
	words = calloc(count, sizeof(*words));
	if (!texts || !words)
		rc = weft_fail(WEFT_ENOMEM, "out of memory");
	for (struct dagfile_word *w = attempt->node->words; w && rc == 0; w = w->next, made++) {
		rc = attempt_word(attempt, w, &texts[made]);
		words[made] = (weft_span){ texts[made].data, texts[made].size };
	}
	if (rc == 0)
		rc = redis_node_call(attempt, words, count);
	for (size_t i = 0; texts && i < count; i++)
		bytes_free(&texts[i]);
	free(texts);
	free(words);
	return rc;
}

void
redis_end(struct dagrun *run)
{
	weft_redis_close(run->redis);
	run->redis = NULL;
}
