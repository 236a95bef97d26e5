/* http_peer.c - a scripted server for tests of the HTTP client. */
#include "proto/http_peer.h"

struct seat {
	struct peer *peer;
	weft_stream *stream;
	const struct step *script;
};

/* Copies the text, with port numbers inserted. */
static void
with_ports(const struct peer *peer, const char *text, char *out, size_t room)
{
	size_t used = 0;

	for (; *text && used + 8 < room; text++) {
		if (text[0] == '%' && (text[1] == 'P' || text[1] == 'Q')) {
			const struct peer *of = *++text == 'P' ? peer : peer->other;

			used += (size_t)snprintf(out + used, 8, "%u", of->port);
		} else {
			out[used++] = *text;
		}
	}
	out[used] = '\0';
}

static int
hear(struct seat *seat, const struct step *step)
{
	char *heard = seat->peer->heard, head[4096];
	size_t used = strlen(heard);
	ssize_t n = weft_stream_read_until(seat->stream, "\r\n\r\n", head, sizeof(head) - 1,
	                                   WEFT_NEVER);

	if (n <= 0)
		return WEFT_EPIPE;
	head[n] = '\0';
	if (used + (size_t)n + 1 < sizeof(seat->peer->heard))
		memcpy(heard + used, head, (size_t)n + 1);
	if (step->text && strncmp(head, step->text, strlen(step->text)) != 0)
		CHECK_STR(head, step->text);
	return 0;
}

static int
take_text(struct seat *seat, const struct step *step)
{
	char text[4096];
	size_t size = strlen(step->text);
	ssize_t n = weft_stream_read_exact(seat->stream, text, size, WEFT_NEVER);

	if (n < 0)
		return (int)n;
	text[n] = '\0';
	CHECK_STR(text, step->text);
	return 0;
}

static int
say(struct seat *seat, const struct step *step)
{
	char text[4096];
	size_t size, at;

	with_ports(seat->peer, step->text, text, sizeof(text));
	size = strlen(text);
	if (step->act == SAY)
		return weft_stream_write(seat->stream, text, size, WEFT_NEVER) < 0 ? -1 : 0;
	for (at = 0; at < size; at++)
		if (weft_stream_write(seat->stream, text + at, 1, WEFT_NEVER) < 0
		    || weft_sleep_until(weft_after(WEFT_US)) < 0)
			return -1;
	return 0;
}

static int
flood(struct seat *seat, size_t count)
{
	static const char bytes[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

	while (count > 0) {
		size_t size = count < 64 ? count : 64;

		if (weft_stream_write(seat->stream, bytes, size, WEFT_NEVER) < 0)
			return -1;
		count -= size;
	}
	return 0;
}

static int
sink(struct seat *seat, size_t count)
{
	char bytes[4096];
	ssize_t n = 1;

	for (; count > 0 && n > 0; count -= (size_t)n)
		n = weft_stream_read(seat->stream, bytes,
		                     count < sizeof(bytes) ? count : sizeof(bytes), WEFT_NEVER);
	return count > 0 ? -1 : 0;
}

static int
await_end(struct seat *seat)
{
	char bytes[4096];

	while (weft_stream_read(seat->stream, bytes, sizeof(bytes), WEFT_NEVER) > 0)
		;
	return 0;
}

static int
play(struct seat *seat, const struct step *step)
{
	switch (step->act) {
	case HEAR:
		return hear(seat, step);
	case TAKE:
		return take_text(seat, step);
	case SAY:
	case DRIP:
		return say(seat, step);
	case FLOOD:
		return flood(seat, step->count);
	case SINK:
		return sink(seat, step->count);
	case WAIT:
		return await_end(seat);
	case HOLD:
		return weft_event_wait(&seat->peer->go_on, WEFT_NEVER);
	default:
		return 0;
	}
}

static int
sit(void *arg)
{
	struct seat seat = *(struct seat *)arg;
	const struct step *step = seat.script;
	int rc = 0;

	free(arg);
	while (step->act != PLAYED && step->act != RESET && rc == 0)
		rc = play(&seat, step++);
	if (rc == 0)
		seat.peer->ended++;
	seat.peer->open--;
	if (step->act == RESET && rc == 0)
		weft_stream_reset(seat.stream);
	else
		weft_stream_close(seat.stream);
	return 0;
}

static int
accept_all(void *arg)
{
	struct peer *peer = arg;
	weft_stream *stream;

	while (weft_listener_accept(peer->listener, &stream, WEFT_NEVER) == 0) {
		weft_go_opts opts = { .background = true };
		struct seat *seat = malloc(sizeof(*seat));

		CHECK(seat && peer->scripts[peer->accepted]);
		*seat = (struct seat){ peer, stream, peer->scripts[peer->accepted++] };
		peer->open++;
		CHECK(weft_go_with(&opts, sit, seat) > 0);
	}
	return 0;
}

void
peer_open(struct peer *peer, weft_loop *loop)
{
	weft_listener_opts opts = { .tls = peer->tls };
	weft_go_opts go = { .loop = loop, .background = true };
	weft_addr local;
	char text[WEFT_ADDR_TEXT_MAX];

	OK(weft_listener_open(peer->tls ? "tls://127.0.0.1:0" : "tcp://127.0.0.1:0", &opts,
	                      &peer->listener));
	OK(weft_listener_local(peer->listener, &local));
	CHECK(weft_addr_format(&local, text, sizeof(text)) > 0);
	peer->port = (unsigned)strtoul(strrchr(text, ':') + 1, NULL, 10);
	peer->accepted = peer->ended = peer->open = 0;
	peer->heard[0] = '\0';
	peer->go_on = (weft_event)WEFT_INIT;
	CHECK(weft_go_with(&go, accept_all, peer) > 0);
}

void
peer_close(struct peer *peer)
{
	weft_listener_close(peer->listener);
}

void
peer_go_on(struct peer *peer)
{
	OK(weft_event_set(&peer->go_on));
}

const char *
peer_url(const struct peer *peer, const char *path)
{
	static char texts[4][256];
	static unsigned next;
	char *text = texts[next++ % 4];

	(void)snprintf(text, sizeof(texts[0]), "http%s://127.0.0.1:%u%s", peer->tls ? "s" : "",
	               peer->port, path);
	return text;
}

int
peer_heard(const struct peer *peer, const char *text)
{
	const char *at = peer->heard;
	int count = 0;

	for (; (at = strstr(at, text)); at += strlen(text))
		count++;
	return count;
}
