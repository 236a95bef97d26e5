/* secure.c - TLS: an echo server, and a client that verifies it. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

static int
echo(weft_stream *peer, void *arg)
{
	char buf[4096];
	ssize_t n;

	(void)arg;
	while ((n = weft_stream_read(peer, buf, sizeof buf,
	                             weft_after(WEFT_S * 30)))
	       > 0)
		if (weft_stream_write(peer, buf, (size_t)n, weft_after(WEFT_S))
		    < 0)
			break;
	weft_stream_close(peer);
	return (int)n;
}

static int
serve(void *arg)
{
	char **words = arg; /* address, chain, key */
	weft_tls_cert cert = { NULL, words[1], words[2] };
	weft_tls_opts tls = { .certs = &cert, .cert_count = 1 };
	weft_listener_opts opts = { 0 };
	weft_listener *listener;
	int rc = weft_tls_open(&tls, &opts.tls);

	if (rc < 0 || (rc = weft_listener_open(words[0], &opts, &listener)) < 0)
		return rc;
	puts("listening");
	fflush(stdout);
	weft_listener_serve(listener, NULL, echo, NULL, WEFT_NEVER);
	weft_listener_close(listener);
	weft_tls_close(opts.tls);
	return 0;
}

static int
ask(void *arg)
{
	char **words = arg, buf[256]; /* address, CA file, text */
	weft_stream_connect_opts opts = { 0 };
	weft_stream *server;
	ssize_t n = weft_tls_open(&(weft_tls_opts){ .ca_file = words[1] },
	                          &opts.tls);

	if (n == 0)
		n = weft_stream_connect(words[0], &opts, &server,
		                        weft_after(WEFT_S * 5));
	weft_tls_close(opts.tls);
	if (n < 0)
		return puts(weft_detail()), 0;
	weft_stream_write(server, words[2], strlen(words[2]),
	                  weft_after(WEFT_S));
	n = weft_stream_read(server, buf, sizeof buf, weft_after(WEFT_S * 10));
	printf("%.*s\n", n < 0 ? 0 : (int)n, buf);
	weft_stream_close(server);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	return weft_main(NULL, argv[1][0] == 's' ? serve : ask, argv + 2);
}
