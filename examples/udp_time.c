/* udp_time.c - UDP time server, in batches of up to 16.
 *
 *     udp_time [ADDRESS]    udp://127.0.0.1:3700 if none is given
 */
#include <stdio.h>
#include <time.h>
#include <weft/weft.h>

#define BATCH 16

static int
open_socket(const char *address, weft_dgram **out)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr local;
	int rc = weft_dgram_open(address ? address : "udp://127.0.0.1:3700",
	                         NULL, out);

	if (rc < 0)
		return rc;
	rc = weft_dgram_local(*out, &local);
	if (rc == 0 && weft_addr_format(&local, text, sizeof(text)) > 0) {
		printf("listening on %s\n", text);
		(void)fflush(stdout);
	}
	return 0;
}

static int
run(void *arg)
{
	char bufs[BATCH][64];
	weft_message messages[BATCH];
	weft_dgram *dgram;
	int n = open_socket(arg, &dgram);

	if (n < 0)
		return n;
	do {
		for (int i = 0; i < BATCH; i++)
			messages[i] = (weft_message){ .data = bufs[i],
				                      .size = sizeof(bufs[i]) };
		n = weft_dgram_recv(dgram, messages, BATCH, WEFT_NEVER);
		for (int i = 0; i < n; i++)
			messages[i].size = (size_t)snprintf(
				bufs[i], sizeof(bufs[i]), "%lld\n",
				(long long)time(NULL));
		if (n > 0)
			n = weft_dgram_send(dgram, messages, (size_t)n,
			                    weft_after(1 * WEFT_S));
	} while (n > 0);
	weft_dgram_close(dgram);
	return n == WEFT_ECANCELED ? 0 : n;
}

int
main(int argc, char **argv)
{
	return weft_main(NULL, run, argc > 1 ? argv[1] : NULL);
}
