/* starttls.c - how a mail server encrypts: SMTP, then TLS on the same stream.
 *
 *     starttls ADDRESS HOST [CA-FILE]
 *
 * HOST is the name that the server's certificate must have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

/* Send a command, if there is one, and read the reply: several lines, of
 * which the last has a space after its code.  Returns the code. */
static int
command(weft_stream *server, const char *text)
{
	char line[1000] = "";
	ssize_t n = text ? weft_stream_write(server, text, strlen(text),
	                                     weft_after(5 * WEFT_S))
	                 : 0;

	while (n >= 0 && line[3] != ' ') {
		n = weft_stream_read_until(server, "\r\n", line,
		                           sizeof line - 1,
		                           weft_after(30 * WEFT_S));
		if (n < 6)
			return n < 0 ? (int)n : WEFT_EPROTO;
		line[n] = '\0';
	}
	return n < 0 ? (int)n : (int)strtol(line, NULL, 10);
}

static int
expect(weft_stream *server, const char *text, int code)
{
	int rc = command(server, text);

	if (rc < 0 || rc == code)
		return rc;
	return weft_fail(WEFT_EPROTO, "the server replied %d to %s", rc,
	                 text ? text : "the connection");
}

static int
upgrade(weft_stream *server, const char *host, const char *ca_file)
{
	weft_tls_info info;
	weft_tls *tls;
	int rc = weft_tls_open(&(weft_tls_opts){ .ca_file = ca_file }, &tls);

	if (rc < 0)
		return rc;
	rc = weft_tls_start(server, tls, WEFT_TLS_CLIENT, host,
	                    weft_after(10 * WEFT_S));
	weft_tls_close(tls); /* the stream keeps a reference */
	if (rc == 0)
		rc = weft_stream_tls(server, &info);
	if (rc == 0)
		printf("%s\n%s\n%s\n", info.version, info.cipher,
		       info.peer_subject);
	return rc;
}

static int
run(void *arg)
{
	char **words = arg; /* address, host, CA file or NULL */
	weft_stream *server;
	int rc = weft_stream_connect(words[0], NULL, &server,
	                             weft_after(10 * WEFT_S));

	if (rc < 0)
		return rc;
	rc = expect(server, NULL, 220);
	if (rc >= 0)
		rc = expect(server, "EHLO localhost\r\n", 250);
	if (rc >= 0)
		rc = expect(server, "STARTTLS\r\n", 220);
	if (rc >= 0)
		rc = upgrade(server, words[1], words[2]);
	if (rc >= 0) /* encrypted from here on */
		rc = expect(server, "QUIT\r\n", 221);
	weft_stream_close(server);
	return rc;
}

int
main(int argc, char **argv)
{
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS HOST [CA-FILE]\n", argv[0]);
		return 2;
	}
	return weft_main(NULL, run, argv + 1);
}
