/* world.c - the fixture of the admin tests: a loop with an admin endpoint and a client. */
#include "admin/world.h"

static struct reply reply;

static void
copy_header(weft_http *http, const char *name, char *out, size_t room)
{
	const char *value = weft_http_header(http, name);

	(void)snprintf(out, room, "%s", value ? value : "");
}

static void
forget(void)
{
	free(reply.body);
	reply = (struct reply){ 0 };
}

static void
find_place(struct world *world)
{
	weft_addr addr;

	OK(weft_admin_local(world->admin, &addr));
	CHECK(weft_addr_format(&addr, world->place, sizeof(world->place)) > 0);
	if (strncmp(world->place, "tcp://", 6) == 0)
		(void)snprintf(world->url, sizeof(world->url), "http://%s", world->place + 6);
}

static int
enter(void *arg)
{
	struct world *world = arg;
	const char *address = world->address ? world->address : "tcp://127.0.0.1:0";

	world->client = weft_http_client_new(NULL);
	CHECK(world->client);
	OK(weft_admin_open(address, &world->opts, &world->admin));
	find_place(world);
	world->play(world);
	OK(weft_http_client_free(world->client));
	weft_admin_close(world->admin);
	forget();
	return 0;
}

void
world_run(struct world *world, void (*play)(struct world *world))
{
	weft_loop *loop = make();

	world->play = play;
	(void)go_on(loop, enter, world);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* --- requests --------------------------------------------------------------------- */

static weft_http *
fetch_at(struct world *world, const char *url, const char *target)
{
	char whole[1024];
	weft_http_request request = { .url = whole, .no_redirect = true };
	weft_http *http;

	if (world->field.name) {
		request.fields = &world->field;
		request.field_count = 1;
	}
	(void)snprintf(whole, sizeof(whole), "%s%s", url, target);
	OK(weft_http_fetch(world->client, &request, &http, weft_after(HOUR)));
	return http;
}

weft_http *
begin_get(struct world *world, const char *target)
{
	return fetch_at(world, world->url, target);
}

static void
read_body(weft_http *http)
{
	size_t room = 0;
	ssize_t n = 1;

	while (n > 0) {
		if (room - reply.size < 65536) {
			room = room ? 2 * room : 1 << 17;
			reply.body = realloc(reply.body, room);
			CHECK(reply.body);
		}
		n = weft_http_read(http, reply.body + reply.size, 65535, weft_after(HOUR));
		CHECK(n >= 0);
		reply.size += (size_t)n;
	}
	reply.body[reply.size] = '\0';
}

const struct reply *
get_at(struct world *world, const char *url, const char *target)
{
	weft_http *http = fetch_at(world, url, target);

	forget();
	reply.status = weft_http_status(http);
	copy_header(http, "Content-Type", reply.type, sizeof(reply.type));
	copy_header(http, "Content-Security-Policy", reply.policy, sizeof(reply.policy));
	copy_header(http, "Location", reply.location, sizeof(reply.location));
	copy_header(http, "Set-Cookie", reply.cookie, sizeof(reply.cookie));
	copy_header(http, "Cache-Control", reply.cache, sizeof(reply.cache));
	read_body(http);
	weft_http_close(http);
	return &reply;
}

const struct reply *
get(struct world *world, const char *target)
{
	return get_at(world, world->url, target);
}

int
raw(const char *place, const char *request)
{
	char text[16];
	weft_stream *stream;
	int status = 0;

	OK(weft_stream_connect(place, NULL, &stream, weft_after(HOUR)));
	CHECK_EQ(weft_stream_write(stream, request, strlen(request), weft_after(HOUR)),
	         strlen(request));
	CHECK_EQ(weft_stream_read_exact(stream, text, 12, weft_after(HOUR)), 12);
	text[12] = '\0';
	CHECK(sscanf(text, "HTTP/1.1 %d", &status) == 1);
	weft_stream_close(stream);
	return status;
}

/* --- parsing ---------------------------------------------------------------------- */

double
number_after(const char *text, const char *key)
{
	char quoted[160];
	const char *at;

	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(text, quoted);
	if (!at) {
		(void)snprintf(quoted, sizeof(quoted), "\n%s ", key);
		at = strstr(text, quoted);
	}
	if (!at)
		test_fail(__FILE__, __LINE__, "there is no %s", key);
	return strtod(at + strlen(quoted), NULL);
}

int
times_in(const char *text, const char *part)
{
	int count = 0;

	while ((text = strstr(text, part)) != NULL) {
		count++;
		text += strlen(part);
	}
	return count;
}

static const char *
skip_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if ((unsigned char)*at < 0x20)
			return NULL;
		if (*at == '\\' && !*++at)
			return NULL;
	}
	return at + 1;
}

static const char *skip_value(const char *at, int depth);

/* `at` is at the opening bracket.  Returns the position after the closing one. */
static const char *
skip_members(const char *at, int depth)
{
	bool is_object = *at++ == '{';
	char end = is_object ? '}' : ']';

	if (*at == end)
		return at + 1;
	for (;; at++) {
		if (is_object && (!(at = skip_string(at)) || *at++ != ':'))
			return NULL;
		at = skip_value(at, depth + 1);
		if (!at || *at == end)
			return at ? at + 1 : NULL;
		if (*at != ',')
			return NULL;
	}
}

static const char *
skip_value(const char *at, int depth)
{
	char *end;

	if (depth > 16)
		return NULL;
	if (*at == '{' || *at == '[')
		return skip_members(at, depth);
	if (*at == '"')
		return skip_string(at);
	if (strncmp(at, "null", 4) == 0 || strncmp(at, "true", 4) == 0)
		return at + 4;
	if (strncmp(at, "false", 5) == 0)
		return at + 5;
	(void)strtod(at, &end);
	return end > at ? end : NULL;
}

bool
is_json(const char *text)
{
	const char *end = skip_value(text, 0);

	return end && *end == '\0';
}

const char *
next_event(weft_http *http)
{
	static char text[1 << 16];
	size_t used = 0;

	do {
		CHECK(used < sizeof(text) - 1);
		if (weft_http_read(http, text + used, 1, weft_after(HOUR)) != 1)
			return NULL;
		text[++used] = '\0';
	} while (used < 2 || strcmp(text + used - 2, "\n\n") != 0);
	CHECK(strncmp(text, "event: loops\ndata: ", 19) == 0);
	text[used - 2] = '\0';
	return text + 19;
}

/* --- the test's own server --------------------------------------------------------------- */

void
open_house(struct house *house)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;

	house->server = weft_http_server_new(NULL);
	CHECK(house->server);
	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &house->listener));
	OK(weft_listener_local(house->listener, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(house->url, sizeof(house->url), "http://%s", text + 6);
}

int
serve_house(void *arg)
{
	struct house *house = arg;

	CHECK_EQ(weft_http_serve(house->server, house->listener, WEFT_NEVER), WEFT_ESHUTDOWN);
	return 0;
}
