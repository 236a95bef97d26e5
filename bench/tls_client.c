/* tls_client.c - a client of a TLS server, for served.py.
 *
 *     tls_client handshake PORT COUNT    COUNT full handshakes, one after another
 *     tls_client bulk PORT COUNT         COUNT times /file/bulk.txt, on one connection
 */
#include "bench.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "secure.h"

static SSL_CTX *context;
static uint16_t port;

static SSL *
start(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	SSL *ssl = SSL_new(context);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons(port);
	BENCH_CHECK(fd >= 0 && ssl);
	BENCH_CHECK(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	BENCH_CHECK(SSL_set_fd(ssl, fd) == 1);
	BENCH_CHECK(SSL_connect(ssl) == 1);
	return ssl;
}

static void
finish(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);

	(void)SSL_shutdown(ssl);
	SSL_free(ssl);
	(void)close(fd);
}

/* Get the file once; Content-Length gives the size of the body. */
static void
fetch(SSL *ssl)
{
	static const char request[] = "GET /file/bulk.txt HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	static char buf[65536];
	const char *length, *body;
	long left;
	int n = 0, got;

	BENCH_CHECK(SSL_write(ssl, request, sizeof(request) - 1) > 0);
	do { /* the header section, which may come with the first bytes of the body */
		got = SSL_read(ssl, buf + n, (int)sizeof(buf) - 1 - n);
		BENCH_CHECK(got > 0);
		n += got;
		buf[n] = '\0';
	} while (!(body = strstr(buf, "\r\n\r\n")));
	length = strcasestr(buf, "content-length:");
	BENCH_CHECK(length && length < body);
	left = strtol(length + 15, NULL, 10) - (buf + n - body - 4);
	BENCH_CHECK(strncmp(buf + 9, "200", 3) == 0);
	for (; left > 0; left -= got) {
		got = SSL_read(ssl, buf, sizeof(buf));
		BENCH_CHECK(got > 0);
	}
}

int
main(int argc, char **argv)
{
	long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	SSL *ssl;

	if (count < 1)
		bench_die("usage: %s handshake|bulk PORT COUNT", argv[0]);
	port = (uint16_t)strtol(argv[2], NULL, 10);
	context = secure_context();
	if (strcmp(argv[1], "handshake") == 0) {
		for (long i = 0; i < count; i++)
			finish(start());
		return 0;
	}
	ssl = start();
	for (long i = 0; i < count; i++)
		fetch(ssl);
	finish(ssl);
	return 0;
}
