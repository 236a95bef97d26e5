/* stream.c - streams: creation, and the owner loop. */
#include <errno.h>
#include <sys/socket.h>
#include "net/stream/stream.h"
#include "net/tls/tls.h"

#define READ_MAX   65536u
#define HIGH_WATER 65536u
#define LOW_WATER  16384u
#define WRITE_MAX  ((uint64_t)16 << 20)
#define LINGER_NS  (10 * WEFT_S)

/* --- state shared by the streams of a loop ------------------------------ */

static struct weft__net *
net_at(const weft_loop *loop)
{
	return (struct weft__net *)(void *)weft__loop_part(loop, WEFT__PART_STREAMS);
}

/* Whether the loop has started streams, or closing streams that wait for their letter.  Until both
 * are gone, the loop has not ended. */
static bool
net_has_streams(weft_loop *loop)
{
	return net_at(loop)->started || net_at(loop)->awaited > 0;
}

/* Invariant 4 of letter.c.  While a thread has yet to announce the letters, nothing else shows the
 * loop that they are on their way. */
static bool
net_end(weft_loop *loop)
{
	if (net_at(loop)->awaited == 0)
		return false;
	weft__sys->yield();
	return true;
}

static void
net_free(weft_loop *loop, bool alone)
{
	struct weft__net *net = net_at(loop);

	(void)alone;
	weft__chunks_fini(&net->chunks);
	while (net->senders) {
		struct weft__sender *sender = net->senders;

		net->senders = sender->next;
		weft__sys->release(sender);
	}
	while (net->writes) {
		struct weft__write *write = net->writes;

		net->writes = write->next;
		weft__sys->release(write);
	}
	weft__sys->release(net->scratch);
	weft__sys->release(net);
}

struct weft__net *
weft__net_of(weft_loop *loop)
{
	static const struct weft__part_ops ops = {
		.has = net_has_streams, .stop = weft__events_stop, .end = net_end, .free = net_free
	};
	struct weft__net *net = net_at(loop);

	if (net)
		return net;
	net = weft__alloc_zero(sizeof(*net));
	if (!net)
		return NULL;
	net->part.ops = &ops;
	weft__mailbox_init(&net->letters, loop, weft__events_on_letter);
	(void)weft__loop_attach(loop, WEFT__PART_STREAMS, &net->part);
	return net;
}

/* --- creation and freeing ----------------------------------------------- */

weft_stream *
weft__stream_make(int fd, uint32_t flags)
{
	weft_stream *stream = weft__alloc_zero(sizeof(*stream));

	if (!stream) {
		(void)weft__fail(WEFT_ENOMEM, "weft_stream_*: out of memory");
		return NULL;
	}
	stream->fd = fd;
	stream->received_fd = -1;
	stream->flags = flags;
	stream->read_max = READ_MAX;
	stream->high_water = HIGH_WATER;
	stream->low_water = LOW_WATER;
	stream->write_max = WRITE_MAX;
	stream->linger_ns = LINGER_NS;
	return stream;
}

void
weft__stream_free(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);

	if (loop) /* else nothing was received */
		weft__queue_clear(&stream->in_queue, &weft__net_of(loop)->chunks);
	weft__stream_fd_drop(stream);
	if (stream->keeper)
		*stream->keeper = NULL;
	weft__session_close(stream->tls);
	if (stream->flags & WEFT__STREAM_BOUND)
		weft_loop_unref(loop);
	if (stream->quota)
		weft__quota_leave(stream->quota);
	weft__sys->release(stream);
}

/* A file is always ready, so it cannot be a stream. */
static int
check_kind(int fd, uint32_t *flags)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);
	int kind = weft__sys->kind(fd);

	if (kind < 0)
		return weft_fail(kind, "weft_stream_open_fd: descriptor %d: %s", fd,
		                 weft_strerror(kind));
	if (kind == WEFT__FD_FILE)
		return weft__fail(
			WEFT_EINVAL,
			"weft_stream_open_fd: a file cannot be a stream; use the calls of "
			"weft/file.h");
	if (kind == WEFT__FD_OTHER)
		*flags |= WEFT__STREAM_PLAIN;
	else if (weft__sys->sockname(fd, (struct sockaddr *)&name, &size) < 0
	         || name.ss_family == AF_UNIX)
		*flags |= WEFT__STREAM_LOCAL;
	return 0;
}

int
weft_stream_open_fd(int fd, bool borrow, weft_stream **out)
{
	uint32_t flags = borrow ? WEFT__STREAM_BORROWED : 0;
	weft_stream *stream;
	int rc;

	if (!out)
		return weft__misuse(WEFT_EINVAL, "weft_stream_open_fd: out is NULL");
	rc = check_kind(fd, &flags);
	if (rc == 0)
		rc = weft__sys->set_nonblock(fd);
	if (rc < 0)
		return rc;
	stream = weft__stream_make(fd, flags);
	if (!stream)
		return WEFT_ENOMEM;
	*out = stream;
	return 0;
}

/* --- the owner loop ----------------------------------------------------- */

static enum weft__fd_kind
kind_of(const weft_stream *stream)
{
	return stream->flags & WEFT__STREAM_PLAIN          ? WEFT__FD_IS_PLAIN
	       : stream->flags & WEFT__STREAM_RECEIVES_FDS ? WEFT__FD_IS_RECEIVING_FDS
	       : stream->flags & WEFT__STREAM_LOCAL        ? WEFT__FD_IS_SOCKET
	                                                   : WEFT__FD_IS_STREAM;
}

/* Bind the stream to the loop, which registers the descriptor. */
static int
introduce(weft_stream *stream, weft_loop *loop, const char *call)
{
	int rc = weft__loop_open_backend(loop);

	if (rc == 0 && !weft__net_of(loop))
		rc = WEFT_ENOMEM;
	if (rc == 0)
		rc = weft__fd_own(loop, stream->fd, kind_of(stream));
	if (rc < 0)
		return weft_fail(rc, "%s: the loop cannot register the stream's descriptor: %s",
		                 call, weft_strerror(rc));
	weft__stream_bind(stream, loop);
	(void)weft_loop_ref(loop);
	stream->flags |= WEFT__STREAM_BOUND;
	return 0;
}

int
weft__stream_use_slow(weft_stream *stream, weft_loop *loop, const char *call)
{
	weft_loop *its = stream ? weft__stream_loop(stream) : NULL;
	int rc;

	if (!stream)
		return weft__misuse_in(WEFT_EINVAL, call, "stream is NULL");
	if (its && loop && its != loop)
		return weft__misuse_in(WEFT_EWRONGLOOP, call, "the stream belongs to another loop");
	if (!its)
		its = weft__loop_or_current(loop);
	rc = weft__loop_check(its, call);
	if (rc < 0)
		return rc;
	if (stream->flags & WEFT__STREAM_CLOSING)
		return weft__fail_in(WEFT_ESHUTDOWN, call, "the stream was already closed");
	return stream->flags & WEFT__STREAM_BOUND ? 0 : introduce(stream, its, call);
}

int
weft__stream_check(weft_stream *stream, const char *call)
{
	if (!stream)
		return weft__misuse_in(WEFT_EINVAL, call, "stream is NULL");
	if (stream->flags & WEFT__STREAM_BOUND)
		return weft__stream_use(stream, NULL, call);
	return 0;
}

int
weft__stream_wait(weft_stream *stream, uint64_t deadline_ns, const char *call)
{
	int rc = weft__stream_use(stream, NULL, call);

	if (rc < 0)
		return rc;
	if (deadline_ns == WEFT_NOWAIT)
		return 0;
	rc = weft__may_wait_in(deadline_ns, call);
	if (rc == 0 && weft__stream_take_interrupt(stream))
		rc = WEFT_EINTR;
	return rc;
}
