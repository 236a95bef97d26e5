/* serve.c - an echo server: one threadlet per connection, on all cores. */
#include <weft/weft.h>

static int
serve(weft_stream *peer, void *arg)
{
	char buf[4096];
	ssize_t n;

	(void)arg;
	while ((n = weft_stream_read(peer, buf, sizeof buf,
	                             weft_after(30 * WEFT_S)))
	       > 0)
		if ((n = weft_stream_write(peer, buf, (size_t)n,
		                           weft_after(5 * WEFT_S)))
		    < 0)
			break;
	weft_stream_close(peer);
	return (int)n;
}

int
main(int argc, char **argv)
{
	return weft_serve(argc > 1 ? argv[1] : "tcp://127.0.0.1:7000", serve,
	                  NULL);
}
