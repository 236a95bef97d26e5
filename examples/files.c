/* files.c - a static file server: a directory over HTTP. */
#include <inttypes.h>
#include <stdio.h>
#include <weft/http.h>
#include <weft/weft.h>

static int
send_file(weft_http *http, void *folder)
{
	return weft_http_reply_file(http, folder, weft_http_param(http, "path"),
	                            WEFT_NEVER);
}

static void
print_stats(const weft_http_server *server)
{
	struct weft_http_server_stats stats;

	weft_http_server_stats(server, &stats);
	printf("%" PRIu64 " requests and %" PRIu64
	       " malformed ones, on %" PRIu64 " connections\n",
	       stats.requests, stats.bad_requests, stats.connections);
}

static int
run(void *arg)
{
	char **words = arg; /* address, directory */
	weft_http_server *server = weft_http_server_new(NULL);
	weft_listener *listener;
	int rc = weft_http_route(server, "GET /{path...}", send_file, words[1]);

	if (rc == 0)
		rc = weft_listener_open(words[0], NULL, &listener);
	if (rc == 0) {
		rc = weft_http_serve(server, listener, WEFT_NEVER);
		weft_listener_close(listener);
		print_stats(server);
	}
	weft_http_server_free(server);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS FOLDER\n", argv[0]);
		return 2;
	}
	return weft_main(NULL, run, argv + 1);
}
