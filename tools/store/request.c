/* request.c - copies of requests: queued by MULTI, or blocked on a key. */
#include "inner.h"

struct request *
request_keep(struct heap *heap, const struct command *command, const struct word *words,
             size_t count)
{
	size_t bytes = sizeof(struct request) + count * sizeof(*words);
	struct request *request;
	char *at;

	for (size_t i = 0; i < count; i++)
		bytes += words[i].size;
	request = heap_take(heap, bytes);
	*request = (struct request){ .command = command, .bytes = bytes, .count = count };
	at = (char *)(request->words + count);
	for (size_t i = 0; i < count; i++) {
		request->words[i] = (struct word){ at, words[i].size };
		memcpy(at, words[i].data, words[i].size);
		at += words[i].size;
	}
	return request;
}

void
request_free(struct heap *heap, struct request *request)
{
	if (request)
		heap_give(heap, request, request->bytes);
}
