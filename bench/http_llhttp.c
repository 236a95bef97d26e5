/* http_llhttp.c - llhttp, the generated parser of Node.js. */
#include "bench.h"
#include "http_pieces.h"
#include <llhttp.h>

static int
on_url(llhttp_t *parser, const char *data, size_t size)
{
	(void)parser;
	pieces.target = (struct piece){ data, size };
	return 0;
}

static int
on_name(llhttp_t *parser, const char *data, size_t size)
{
	(void)parser;
	return piece_name(data, size);
}

static int
on_value(llhttp_t *parser, const char *data, size_t size)
{
	(void)parser;
	return piece_value(data, size);
}

static int
on_end(llhttp_t *parser)
{
	(void)parser;
	pieces.done = true;
	return 0;
}

static size_t
head_parse(const char *data, size_t size)
{
	static llhttp_settings_t settings;
	llhttp_t parser;

	if (!settings.on_url) {
		llhttp_settings_init(&settings);
		settings.on_url = on_url;
		settings.on_header_field = on_name;
		settings.on_header_value = on_value;
		settings.on_message_complete = on_end;
	}
	pieces.count = 0;
	pieces.done = false;
	llhttp_init(&parser, HTTP_REQUEST, &settings);
	if (llhttp_execute(&parser, data, size) != HPE_OK || !pieces.done)
		return 0;
	return pieces.count;
}

#include "http_bench.h"
