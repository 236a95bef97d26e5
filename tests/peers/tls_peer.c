/* tls_peer.c - plain TLS without a protocol above it, for peers that have only TLS.
 *
 *     tls_peer serve|visit ADDRESS OPTION=VALUE ...
 *
 * `serve` prints its address and echoes each line that it receives, until SIGTERM.  At the line
 * "end" it sends close_notify first; at "cut" it ends the connection without one.  `visit`
 * sends a line, prints the reply, and ends as `end` says.  Both print the negotiated
 * parameters, and then how each connection ended: "goodbye" for the peer's close_notify, or the
 * error.  Every wait has a limit.
 *
 * Options of both: chain (begins a certificate; key and name belong to it), ca, alpn (may be
 * repeated), min (a TLS version, in hexadecimal).  Of `serve`: ask (request a client
 * certificate), no_tickets.  Of `visit`: times, host (to verify; default: that of the address),
 * say (empty: it only receives), end (first: send close_notify, then wait for the peer's; last:
 * wait for the peer's; cut: end without one).  It uses only the installed API.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <weft/weft.h>

#define PATIENCE  weft_after(120 * WEFT_S)
#define LIFETIME  weft_after(100 * WEFT_S)
#define CERTS_MAX 4
#define ALPN_MAX  4

static struct {
	const char *address, *host, *say, *end;
	const char *alpn[ALPN_MAX + 1];
	weft_tls_cert certs[CERTS_MAX];
	size_t alpn_count;
	weft_tls_opts tls;
	int times;
} words = { .say = "hello", .end = "first", .times = 1 };

/* --- options ---------------------------------------------------------------- */

/* Reads an option of the certificate that was begun last. */
static bool
read_cert_word(const char *option, const char *value)
{
	weft_tls_cert *cert = &words.certs[words.tls.cert_count];

	if (strcmp(option, "chain") == 0 && words.tls.cert_count < CERTS_MAX) {
		cert->chain_file = value;
		words.tls.cert_count++;
	} else if (words.tls.cert_count == 0) {
		return false;
	} else if (strcmp(option, "key") == 0) {
		cert[-1].key_file = value;
	} else if (strcmp(option, "name") == 0) {
		cert[-1].name = value;
	} else {
		return false;
	}
	return true;
}

static bool
read_tls_word(const char *option, const char *value)
{
	if (strcmp(option, "ca") == 0)
		words.tls.ca_file = value;
	else if (strcmp(option, "alpn") == 0 && words.alpn_count < ALPN_MAX)
		words.alpn[words.alpn_count++] = value;
	else if (strcmp(option, "min") == 0)
		words.tls.version_min = (uint32_t)strtoul(value, NULL, 16);
	else if (strcmp(option, "ask") == 0)
		words.tls.require_client_cert = strcmp(value, "1") == 0;
	else if (strcmp(option, "no_tickets") == 0)
		words.tls.no_tickets = strcmp(value, "1") == 0;
	else
		return false;
	return true;
}

static bool
read_visit_word(const char *option, const char *value)
{
	if (strcmp(option, "host") == 0)
		words.host = value;
	else if (strcmp(option, "say") == 0)
		words.say = value;
	else if (strcmp(option, "end") == 0)
		words.end = value;
	else if (strcmp(option, "times") == 0)
		words.times = (int)strtoul(value, NULL, 10);
	else
		return false;
	return true;
}

/* Splits the word at its '='. */
static bool
read_word(char *word)
{
	char *value = strchr(word, '=');

	if (!value)
		return false;
	*value++ = '\0';
	return read_cert_word(word, value) || read_tls_word(word, value)
	       || read_visit_word(word, value);
}

static int
open_tls(weft_tls **out)
{
	words.tls.certs = words.certs;
	words.tls.alpn = words.alpn;
	return weft_tls_open(&words.tls, out);
}

/* --- output -------------------------------------------------------------------- */

static void
tell(weft_stream *stream)
{
	weft_tls_info info;

	if (weft_stream_tls(stream, &info) < 0)
		return;
	printf("%s alpn=%s name=%s peer=%s %s\n", info.version, info.alpn, info.server_name,
	       info.peer_subject, info.resumed ? "resumed" : "full");
	fflush(stdout);
}

/* Prints how the connection ended: 0 means the peer's close_notify. */
static int
tell_end(int rc)
{
	if (rc == 0)
		puts("goodbye");
	else
		printf("%s: %s\n", weft_errname(rc), weft_detail());
	fflush(stdout);
	return rc;
}

/* Reads and discards everything up to the end. */
static int
await_end(weft_stream *stream)
{
	char rest[256];
	ssize_t n;

	do
		n = weft_stream_read(stream, rest, sizeof rest, PATIENCE);
	while (n > 0);
	return (int)n;
}

/* Ends the connection without the TLS session.  The peer ends it too, with any result, but
 * in time. */
static int
cut(weft_stream *stream)
{
	int rc;

	(void)shutdown(weft_stream_fd(stream), SHUT_WR);
	rc = await_end(stream);
	if (rc == WEFT_ETIMEDOUT)
		return tell_end(rc);
	puts("cut");
	fflush(stdout);
	return 0;
}

/* --- a server --------------------------------------------------------------- */

static bool
is_line(const char *line, ssize_t size, const char *text)
{
	return (size_t)size == strlen(text) && memcmp(line, text, (size_t)size) == 0;
}

static int
echo(weft_stream *peer)
{
	char line[256];

	for (;;) {
		ssize_t n = weft_stream_read_until(peer, "\n", line, sizeof line, PATIENCE);

		if (n > 0 && is_line(line, n, "cut\n"))
			return cut(peer);
		if (n > 0 && is_line(line, n, "end\n"))
			n = weft_stream_shutdown(peer, PATIENCE);
		else if (n > 0)
			n = weft_stream_write(peer, line, (size_t)n, PATIENCE);
		else
			return tell_end((int)n);
		if (n < 0)
			return tell_end((int)n);
	}
}

/* Does the handshake itself, to print its error. */
static int
greet(weft_stream *peer, void *tls)
{
	int rc = weft_tls_start(peer, tls, WEFT_TLS_SERVER, NULL, PATIENCE);

	if (rc < 0) {
		(void)tell_end(rc);
	} else {
		tell(peer);
		(void)echo(peer);
	}
	weft_stream_close(peer);
	return 0;
}

static int
open_door(weft_listener **out)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;
	int rc = weft_listener_open(words.address, NULL, out);

	if (rc == 0)
		rc = weft_listener_local(*out, &addr);
	if (rc == 0)
		rc = weft_addr_format(&addr, text, sizeof text);
	if (rc < 0)
		return rc;
	printf("listening on %s\n", text);
	fflush(stdout);
	return 0;
}

static int
serve(void *arg)
{
	weft_listener *door;
	weft_tls *tls;
	int rc = open_tls(&tls);

	(void)arg;
	if (rc < 0)
		return tell_end(rc);
	rc = open_door(&door);
	if (rc < 0)
		return tell_end(rc);
	rc = weft_listener_serve(door, NULL, greet, tls, LIFETIME);
	weft_listener_close(door);
	weft_tls_close(tls);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

/* --- a client --------------------------------------------------------------- */

static int
ask(weft_stream *stream)
{
	char line[256];
	int size = snprintf(line, sizeof line, "%s\n", words.say);
	ssize_t n = weft_stream_write(stream, line, (size_t)size, PATIENCE);

	if (n > 0)
		n = weft_stream_read_until(stream, "\n", line, sizeof line, PATIENCE);
	if (n <= 0)
		return (int)n;
	printf("heard %.*s", (int)n, line);
	fflush(stdout);
	return 1;
}

/* Returns 0 at the peer's close_notify. */
static int
talk(weft_stream *stream)
{
	int rc = words.say[0] ? ask(stream) : 1;

	if (rc <= 0)
		return tell_end(rc);
	if (strcmp(words.end, "cut") == 0)
		return cut(stream);
	rc = strcmp(words.end, "last") == 0 ? 0 : weft_stream_shutdown(stream, PATIENCE);
	return tell_end(rc < 0 ? rc : await_end(stream));
}

static int
visit_once(weft_tls *tls)
{
	weft_stream_connect_opts opts = { .tls = tls, .tls_name = words.host };
	weft_stream *stream;
	int rc = weft_stream_connect(words.address, &opts, &stream, PATIENCE);

	if (rc < 0)
		return tell_end(rc);
	tell(stream);
	rc = talk(stream);
	weft_stream_close(stream);
	return rc;
}

static int
visit(void *arg)
{
	weft_tls *tls;
	int rc = open_tls(&tls);

	(void)arg;
	if (rc < 0)
		return tell_end(rc);
	for (int i = 0; rc == 0 && i < words.times; i++)
		rc = visit_once(tls);
	weft_tls_close(tls);
	return rc;
}

int
main(int argc, char **argv)
{
	bool good = argc >= 3;

	for (int i = 3; i < argc; i++)
		good = good && read_word(argv[i]);
	if (!good) {
		fprintf(stderr, "usage: %s serve|visit ADDRESS OPTION=VALUE\n", argv[0]);
		return 2;
	}
	words.address = argv[2];
	return weft_main(NULL, strcmp(argv[1], "serve") == 0 ? serve : visit, NULL);
}
