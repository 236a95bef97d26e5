/* frames.c - messages with their length in front, for at most eight peers.
 *
 *     frames ADDRESS
 *
 * A message is its length, four bytes in network order, and then its text.
 * The reply is the number of words in the text, as such a message.  Further
 * peers wait in the backlog.  SIGTERM ends accepting; the peers have five
 * seconds to end.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#define PEERS 8

static weft_sem seats; /* that are free */
static weft_group peers;

static int
count_words(const char *text, size_t size)
{
	int count = 0;

	for (size_t i = 0; i < size; i++)
		count += (i == 0 || strchr(" \t\r\n", text[i - 1]))
		         && !strchr(" \t\r\n", text[i]);
	return count;
}

static ssize_t
write_message(weft_stream *peer, int words)
{
	char message[4 + 12];
	int size = snprintf(message + 4, 12, "%d", words);
	uint32_t header = htonl((uint32_t)size);

	memcpy(message, &header, 4);
	return weft_stream_write(peer, message, 4 + (size_t)size,
	                         weft_after(5 * WEFT_S));
}

/* Returns WEFT_EOF after the last message, and in the middle of one. */
static ssize_t
answer(weft_stream *peer)
{
	uint32_t header;
	char text[1000];
	ssize_t n = weft_stream_read_exact(peer, &header, sizeof header,
	                                   weft_after(60 * WEFT_S));

	if (n < 0)
		return n;
	if (ntohl(header) > sizeof text)
		return WEFT_EMSGSIZE;
	n = weft_stream_read_exact(peer, text, ntohl(header),
	                           weft_after(5 * WEFT_S));
	return n < 0 ? n : write_message(peer, count_words(text, (size_t)n));
}

static void
log_peer(weft_stream *peer, int answers, int why)
{
	char from[WEFT_ADDR_TEXT_MAX] = "?", to[WEFT_ADDR_TEXT_MAX] = "?";
	weft_addr addr;

	if (weft_stream_peer(peer, &addr) == 0)
		weft_addr_format(&addr, from, sizeof from);
	if (weft_stream_local(peer, &addr) == 0)
		weft_addr_format(&addr, to, sizeof to);
	printf("%s at %s: %d answers, %s\n", from, to, answers,
	       weft_strerror(why));
}

static int
serve(void *peer)
{
	int answers = 0;
	ssize_t n;

	while ((n = answer(peer)) > 0)
		answers++;
	log_peer(peer, answers, (int)n);
	weft_stream_close(peer);
	weft_sem_release(&seats, 1);
	weft_group_done(&peers);
	return 0;
}

static int
accept_peers(weft_listener *listener)
{
	weft_stream *peer;
	int rc;

	while ((rc = weft_sem_acquire(&seats, WEFT_NEVER)) == 0
	       && (rc = weft_listener_accept(listener, &peer, WEFT_NEVER))
	                  == 0) {
		weft_group_add(&peers, 1);
		if (weft_go(serve, peer) < 0) {
			weft_stream_close(peer);
			weft_group_done(&peers);
			weft_sem_release(&seats, 1);
		}
	}
	return rc;
}

static int
run(void *address)
{
	weft_listener *listener;
	weft_scope scope;
	int rc = weft_listener_open(address, NULL, &listener);

	if (rc < 0)
		return rc;
	weft_sem_release(&seats, PEERS);
	rc = accept_peers(listener);
	weft_listener_close(listener);
	weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER);
	if (weft_group_wait(&peers, weft_after(5 * WEFT_S)) < 0)
		puts("some peers have not ended");
	weft_scope_close(&scope);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	return weft_main(NULL, run, argv[1]);
}
