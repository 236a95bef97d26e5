/* store.c - a store inside the program, and a threadlet that uses it. */
#include <errno.h>
#include <stdio.h>
#include <store/store.h>
#include <string.h>
#include <sys/socket.h>
#include <weft/weft.h>

static int
ask(weft_stream *stream, const char *line)
{
	char answer[128];
	ssize_t rc = weft_stream_write(stream, line, strlen(line),
	                               weft_after(5 * WEFT_S));

	if (rc > 0)
		rc = weft_stream_read_until(stream, "\r\n", answer,
		                            sizeof(answer),
		                            weft_after(5 * WEFT_S));
	if (rc > 0)
		printf("%.*s", (int)rc, answer);
	return rc < 0 ? (int)rc : 0;
}

static int
talk(weft_store *store)
{
	weft_stream *ours, *theirs;
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return weft_fail(-errno, "socketpair: %s",
		                 weft_strerror(-errno));
	rc = weft_stream_open_fd(fds[0], false, &ours);
	if (rc < 0)
		return rc;
	rc = weft_stream_open_fd(fds[1], false, &theirs);
	if (rc == 0)
		rc = weft_store_serve(store, theirs);
	if (rc == 0)
		rc = ask(ours, "SET visits 41\r\n");
	if (rc == 0)
		rc = ask(ours, "INCR visits\r\n");
	weft_stream_close(ours);
	return rc;
}

static void
on_closed(void *event)
{
	weft_event_set(event);
}

static int
run(void *arg)
{
	weft_event closed = WEFT_INIT;
	weft_store *store;
	int rc = weft_store_open(NULL, NULL, &store);

	(void)arg;
	if (rc < 0)
		return rc;
	rc = talk(store);
	weft_store_close(store, on_closed, &closed);
	weft_event_wait(&closed, WEFT_NEVER);
	return rc;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
