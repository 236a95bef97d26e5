/* ask_time.c - ask time servers over UDP, all at once, for two seconds.
 *
 *     ask_time ADDRESS...      for example udp://localhost:3700
 *
 * A host name is resolved to one address.  Only a datagram from exactly that
 * address counts as the reply: any host can send one to an open port.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <weft/weft.h>

#define SERVERS 16

struct inquiry {
	char **names;
	int count, missing;
	weft_addr servers[SERVERS];
	char times[SERVERS][32];
	weft_event complete;
};

static void
take_reply(struct inquiry *inquiry, const weft_message *reply)
{
	for (int i = 0; i < inquiry->count; i++)
		if (weft_addr_equal(&reply->addr, &inquiry->servers[i])
		    && !*inquiry->times[i] && reply->size > 0) {
			snprintf(inquiry->times[i], sizeof *inquiry->times,
			         "%.*s", (int)reply->size, (char *)reply->data);
			inquiry->missing--;
		}
}

static void
on_replies(weft_dgram *dgram, const weft_message *replies, int count, void *arg)
{
	struct inquiry *inquiry = arg;

	for (int i = 0; i < count; i++)
		take_reply(inquiry, &replies[i]);
	if (count < 0 || inquiry->missing == 0) {
		weft_dgram_stop(dgram); /* further replies do not count */
		weft_event_set(&inquiry->complete);
	}
}

static int
ask_all(struct inquiry *inquiry, weft_dgram *dgram)
{
	char what[] = "what time is it?";
	weft_message messages[SERVERS];
	int rc = weft_dgram_start(dgram, NULL, on_replies, inquiry);

	for (int i = 0; i < inquiry->count; i++)
		messages[i] = (weft_message){ .data = what,
			                      .size = strlen(what),
			                      .addr = inquiry->servers[i] };
	for (int sent = 0; rc >= 0 && sent < inquiry->count; sent += rc)
		rc = weft_dgram_send(dgram, messages + sent,
		                     (size_t)(inquiry->count - sent),
		                     weft_after(WEFT_S));
	return rc < 0 ? rc
	              : weft_event_wait(&inquiry->complete,
	                                weft_after(2 * WEFT_S));
}

static int
print_replies(const struct inquiry *inquiry)
{
	for (int i = 0; i < inquiry->count; i++) {
		char host[256]; /* its name, or else its address */

		if (!*inquiry->times[i]) {
			printf("%s: no reply\n", inquiry->names[i]);
			continue;
		}
		if (weft_dns_reverse(&inquiry->servers[i], host, sizeof host,
		                     weft_after(2 * WEFT_S))
		    < 0)
			weft_addr_format(&inquiry->servers[i], host,
			                 sizeof host);
		printf("%s: %.*s, from %s\n", inquiry->names[i],
		       (int)strcspn(inquiry->times[i], "\r\n"),
		       inquiry->times[i], host);
	}
	return inquiry->missing;
}

static int
run(void *arg)
{
	struct inquiry *inquiry = arg;
	int rc = 0, room = 1 << 20; /* they may all reply at once */
	weft_dgram *dgram;

	for (int i = 0; i < inquiry->count && rc >= 0; i++)
		rc = weft_dns_resolve(inquiry->names[i], &inquiry->servers[i],
		                      1, weft_after(5 * WEFT_S));
	if (rc < 0 || (rc = weft_dgram_open("udp://:0", NULL, &dgram)) < 0)
		return rc;
	setsockopt(weft_dgram_fd(dgram), SOL_SOCKET, SO_RCVBUF, &room,
	           sizeof room);
	rc = ask_all(inquiry, dgram);
	weft_dgram_close(dgram);
	if (rc < 0 && rc != WEFT_ETIMEDOUT)
		return rc;
	return print_replies(inquiry) == 0 ? 0 : WEFT_ETIMEDOUT;
}

int
main(int argc, char **argv)
{
	static struct inquiry inquiry;

	if (argc < 2 || argc > SERVERS + 1) {
		fprintf(stderr, "usage: %s ADDRESS...\n", argv[0]);
		return 2;
	}
	inquiry.names = argv + 1;
	inquiry.count = inquiry.missing = argc - 1;
	return weft_main(NULL, run, &inquiry);
}
