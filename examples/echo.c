/* echo.c - an echo server: one threadlet for each connection, on all cores. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/weft.h>

static int
serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[4096];
	ssize_t n, sent;

	while (weft_wait_fd(fd, WEFT_READABLE, weft_after(30 * WEFT_S)) > 0
	       && (n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
		for (char *at = buf; n > 0; at += sent, n -= sent)
			if (weft_wait_fd(fd, WEFT_WRITABLE, weft_after(WEFT_S))
			            < 0
			    || (sent = send(fd, at, n, MSG_DONTWAIT)) < 0)
				return close(fd);
	return close(fd);
}

static int
accept_all(void *arg)
{
	const weft_go_opts opts = { .name = "peer", .loop = WEFT_LEAST_LOADED };
	int fd, listener = (int)(intptr_t)arg;

	while (weft_wait_fd(listener, WEFT_READABLE, WEFT_NEVER) > 0)
		if ((fd = accept(listener, NULL, NULL)) >= 0
		    && weft_go_with(&opts, serve, (void *)(intptr_t)fd) < 0)
			close(fd);
	return close(listener);
}

static int
run(void *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	addr.sin_port = htons(port ? (uint16_t)strtoul(port, NULL, 10) : 7000);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (void *)&addr, sizeof addr) < 0 || listen(fd, 512) < 0
	    || write(STDOUT_FILENO, "listening\n", 10) < 0)
		return -errno;
	if (weft_go(accept_all, (void *)(intptr_t)fd) < 0)
		return WEFT_ENOMEM;
	weft_signal_wait(WEFT_SIG(SIGINT) | WEFT_SIG(SIGTERM), WEFT_NEVER);
	return 0; /* weft_main() cancels the others and waits */
}

int
main(int argc, char **argv)
{
	return weft_main(NULL, run, argc > 1 ? argv[1] : NULL);
}
