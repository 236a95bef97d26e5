/* http.c - a program outside of the tree that uses the installed HTTP library. */
#include <stdio.h>
#include <weft/http.h>

static int
answer(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 204, NULL, weft_text(NULL), WEFT_NEVER);
}

int
main(void)
{
	weft_http_server *server = weft_http_server_new(NULL);
	int rc = weft_http_route(server, "GET /{name}", answer, NULL);

	printf("weft_http from C: %s\n", weft_strerror(rc));
	return rc < 0 || weft_http_server_free(server) < 0;
}
