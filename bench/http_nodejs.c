/* http_nodejs.c - http-parser, the parser of Node.js before llhttp. */
#include "bench.h"
#include "http_pieces.h"
#include <http_parser.h>

static int
on_url(http_parser *parser, const char *data, size_t size)
{
	(void)parser;
	pieces.target = (struct piece){ data, size };
	return 0;
}

static int
on_name(http_parser *parser, const char *data, size_t size)
{
	(void)parser;
	return piece_name(data, size);
}

static int
on_value(http_parser *parser, const char *data, size_t size)
{
	(void)parser;
	return piece_value(data, size);
}

static int
on_end(http_parser *parser)
{
	(void)parser;
	pieces.done = true;
	return 0;
}

static size_t
head_parse(const char *data, size_t size)
{
	static const http_parser_settings settings = {
		.on_url = on_url,
		.on_header_field = on_name,
		.on_header_value = on_value,
		.on_message_complete = on_end,
	};
	http_parser parser;

	pieces.count = 0;
	pieces.done = false;
	http_parser_init(&parser, HTTP_REQUEST);
	if (http_parser_execute(&parser, &settings, data, size) != size || !pieces.done)
		return 0;
	return pieces.count;
}

#include "http_bench.h"
