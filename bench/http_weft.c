/* http_weft.c - weft's HTTP parser. */
#include "bench.h"
#include "http/parse/parse.h"

static size_t
head_parse(const char *data, size_t size)
{
	static struct weft__http_field fields[WEFT__HTTP_FIELDS_MAX];
	struct weft__http_head head;

	weft__http_request_init(&head, fields, WEFT__HTTP_FIELDS_MAX, NULL);
	if (weft__http_head_parse(&head, data, size) != WEFT__HTTP_DONE)
		return 0;
	return head.lines.count;
}

#include "http_bench.h"
