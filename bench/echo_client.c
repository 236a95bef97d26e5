/* echo_client.c - the echo clients as a program, for servers that cannot fork them.
 *
 *     echo_client PORT CONNECTIONS
 */
#include "bench.h"
#include "echo_clients.h"

int
main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int connections = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0;

	if (connections < 1 || connections > ECHO_MAX)
		bench_die("usage: %s PORT CONNECTIONS", argv[0]);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)strtol(argv[1], NULL, 10));
	bench_pin(BENCH_OTHER_CORE);
	(void)raise_limit();
	be_clients(&addr, connections);
}
