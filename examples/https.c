/* https.c - an HTTP server with TLS, which reads its certificate again at SIGHUP.
 *
 *     https ADDRESS CHAIN KEY    https tls://127.0.0.1:8443 cert.pem key.pem
 */
#include <signal.h>
#include <stdio.h>
#include <weft/http.h>
#include <weft/weft.h>

static int
hello(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, "text/plain", weft_text("hello\n"),
	                       WEFT_NEVER);
}

/* Connections keep the certificate that they began with. */
static int
reload(void *tls)
{
	int rc;

	while ((rc = weft_signal_wait(WEFT_SIG(SIGHUP), WEFT_NEVER)) > 0)
		printf("reload: %s\n",
		       weft_tls_reload(tls) < 0 ? weft_detail() : "done");
	return rc == WEFT_ECANCELED ? 0 : rc;
}

static int
run(void *arg)
{
	char **words = arg; /* address, certificate chain, key */
	weft_tls_cert cert = { .chain_file = words[1], .key_file = words[2] };
	weft_tls_opts tls = { .certs = &cert, .cert_count = 1 };
	weft_listener_opts opts = WEFT_INIT;
	weft_http_server *server = weft_http_server_new(NULL);
	weft_listener *listener = NULL;
	int rc = weft_tls_open(&tls, &opts.tls);

	if (rc == 0)
		rc = weft_http_route(server, "GET /", hello, NULL);
	if (rc == 0)
		rc = weft_listener_open(words[0], &opts, &listener);
	if (rc == 0 && (rc = (int)weft_go(reload, opts.tls)) > 0)
		rc = weft_http_serve(server, listener, WEFT_NEVER);
	weft_listener_close(listener);
	weft_tls_close(opts.tls);
	weft_http_server_free(server);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return argc != 4 ? 2 : weft_main(NULL, run, argv + 1);
}
