/* chat.c - a web chat: lines arrive by POST and leave as server-sent events. */
#include <weft/http.h>
#include <weft/weft.h>

#define SEATS 100

struct line {
	char text[500];
};

/* One loop, so no lock: nothing else runs between two suspending calls. */
static weft_chan *seats[SEATS];

static int
hear(weft_http *http, void *arg)
{
	struct line line = { "welcome" };
	int i = 0, rc = 0;

	(void)arg;
	while (i < SEATS && seats[i])
		i++;
	if (i == SEATS || !(seats[i] = weft_chan_new(sizeof line, 16, 0)))
		return weft_http_reply(http, 503, NULL, (weft_span){ 0 },
		                       weft_after(WEFT_S));
	while (rc == 0
	       && (rc = weft_http_send_event(http, NULL, line.text,
	                                     weft_after(WEFT_S)))
	                  == 0)
		rc = weft_chan_recv(seats[i], &line, WEFT_NEVER);
	seats[i] = weft_chan_unref(seats[i]);
	return rc;
}

static int
say(weft_http *http, void *arg)
{
	struct line line = { "" };
	ssize_t n = weft_http_read_all(http, line.text, sizeof line.text - 1,
	                               weft_after(5 * WEFT_S));

	(void)arg;
	for (int i = 0; n >= 0 && i < SEATS; i++)
		if (seats[i]) /* slow readers miss lines */
			weft_chan_send(seats[i], &line, WEFT_NOWAIT);
	return n < 0 ? (int)n
	             : weft_http_reply(http, 204, NULL, (weft_span){ 0 },
	                               weft_after(WEFT_S));
}

static int
page(weft_http *http, void *folder)
{
	return weft_http_reply_file(http, folder, "chat.html", WEFT_NEVER);
}

static int
run(void *arg)
{
	char **words = arg; /* address, directory of the page */
	weft_http_server *server = weft_http_server_new(NULL);
	weft_listener *listener;
	int rc = weft_listener_open(words[0], NULL, &listener);

	if (rc < 0)
		return rc;
	weft_http_route(server, "GET /", page, words[1]);
	weft_http_route(server, "GET /lines", hear, NULL);
	weft_http_route(server, "POST /lines", say, NULL);
	weft_http_serve(server, listener, WEFT_NEVER);
	weft_listener_close(listener);
	return weft_http_server_free(server);
}

int
main(int argc, char **argv)
{
	weft_runtime_opts opts = { .loops = 1 };

	return argc != 3 ? 2 : weft_main(&opts, run, argv + 1);
}
