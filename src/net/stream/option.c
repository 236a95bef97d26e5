/* option.c - stream options, by name; addresses; the descriptor. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "net/addr.h"
#include "net/stream/stream.h"

enum {
	SOCKET,    /* an int option of the socket */
	KEEPALIVE, /* idle seconds before the first probe; 0: off */
	FIELD32,   /* a member of the stream */
	FIELD64,
	QUEUED,       /* read-only */
	UNSENT,       /* read-only */
	RECEIVES_FDS, /* accepts descriptors */
};

static const struct option {
	const char *name;
	int kind;
	int level, number; /* of a socket option */
	size_t offset;     /* of a member */
	int64_t min, max;
} options[] = {
	{ "nodelay", SOCKET, IPPROTO_TCP, TCP_NODELAY, 0, 0, 1 },
	{ "keepalive_s", KEEPALIVE, 0, 0, 0, 0, 32767 },
	{ "rcvbuf", SOCKET, SOL_SOCKET, SO_RCVBUF, 0, 1, INT32_MAX / 2 },
	{ "sndbuf", SOCKET, SOL_SOCKET, SO_SNDBUF, 0, 1, INT32_MAX / 2 },
	{ "linger_ns", FIELD64, 0, 0, offsetof(weft_stream, linger_ns), 0, INT64_MAX },
	{ "high_water", FIELD32, 0, 0, offsetof(weft_stream, high_water), 1, INT32_MAX },
	{ "low_water", FIELD32, 0, 0, offsetof(weft_stream, low_water), 0, INT32_MAX },
	{ "write_max", FIELD64, 0, 0, offsetof(weft_stream, write_max), 1, INT64_MAX },
	{ "read_max", FIELD32, 0, 0, offsetof(weft_stream, read_max), 1, INT32_MAX },
	{ "fds", RECEIVES_FDS, 0, 0, 0, 1, 1 },
	{ "queued", QUEUED, 0, 0, 0, 0, 0 },
	{ "unsent", UNSENT, 0, 0, 0, 0, 0 },
};

static const struct option *
stream_option_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(options) / sizeof(*options); i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

static int
stream_option_begin(weft_stream *stream, const char *name, const char *call,
                    const struct option **out)
{
	int rc = weft__stream_check(stream, call);

	if (rc < 0)
		return rc;
	*out = stream_option_find(name);
	return *out ? 0
	            : weft_fail(WEFT_ENOENT, "%s: there is no option named \"%s\"", call,
	                        name ? name : "");
}

/* Returns 0, or an error with a text that names the option. */
static int
explain(int rc, const char *name, const char *call)
{
	return rc < 0 ? weft_fail(rc, "%s \"%s\": %s", call, name, weft_strerror(rc)) : 0;
}

static int
set_int(const weft_stream *stream, int level, int number, int value)
{
	return weft__sys->set_option(stream->fd, level, number, &value, sizeof(value));
}

static int
get_int(const weft_stream *stream, int level, int number, int64_t *out)
{
	socklen_t size = sizeof(int);
	int value = 0;
	int rc = weft__sys->get_option(stream->fd, level, number, &value, &size);

	if (rc == 0)
		*out = value;
	return rc;
}

static int
set_keepalive(const weft_stream *stream, int seconds)
{
	int rc = set_int(stream, SOL_SOCKET, SO_KEEPALIVE, seconds > 0);

	if (rc == 0 && seconds > 0)
		rc = set_int(stream, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
	return rc;
}

static int
get_keepalive(const weft_stream *stream, int64_t *out)
{
	int64_t on;
	int rc = get_int(stream, SOL_SOCKET, SO_KEEPALIVE, &on);

	if (rc == 0 && on)
		return get_int(stream, IPPROTO_TCP, TCP_KEEPIDLE, out);
	if (rc == 0)
		*out = 0;
	return rc;
}

/* Queued bytes, in memory and of files. */
static int64_t
count_queued(const weft_stream *stream)
{
	return (int64_t)(stream->queued + stream->queued_files);
}

int64_t
weft__stream_unsent(const weft_stream *stream)
{
	int64_t kernel = weft__sys->unsent(stream->fd);

	return count_queued(stream) + (kernel > 0 ? kernel : 0);
}

int
weft_stream_set(weft_stream *stream, const char *name, int64_t value)
{
	const struct option *option;
	int rc = stream_option_begin(stream, name, "weft_stream_set", &option);
	char *field;

	if (rc < 0)
		return rc;
	if (option->kind == QUEUED || option->kind == UNSENT || value < option->min
	    || value > option->max)
		return weft_fail(
			WEFT_EINVAL,
			"weft_stream_set \"%s\": the value is out of range, or the option is "
			"read-only",
			name);
	field = (char *)stream + option->offset;
	switch (option->kind) {
	case SOCKET:
		rc = set_int(stream, option->level, option->number, (int)value);
		break;
	case KEEPALIVE:
		rc = set_keepalive(stream, (int)value);
		break;
	case FIELD32:
		*(uint32_t *)(void *)field = (uint32_t)value;
		break;
	case RECEIVES_FDS:
		return weft__stream_fd_enable(stream, "weft_stream_set \"fds\"");
	default:
		*(uint64_t *)(void *)field = (uint64_t)value;
		break;
	}
	return explain(rc, name, "weft_stream_set");
}

int
weft_stream_get(weft_stream *stream, const char *name, int64_t *out)
{
	const struct option *option;
	int rc = stream_option_begin(stream, name, "weft_stream_get", &option);
	const char *field;

	if (rc == 0 && !out)
		rc = weft__misuse(WEFT_EINVAL, "weft_stream_get: out is NULL");
	if (rc < 0)
		return rc;
	field = (const char *)stream + option->offset;
	switch (option->kind) {
	case SOCKET:
		rc = get_int(stream, option->level, option->number, out);
		break;
	case KEEPALIVE:
		rc = get_keepalive(stream, out);
		break;
	case FIELD32:
		*out = *(const uint32_t *)(const void *)field;
		break;
	case RECEIVES_FDS:
		*out = !!(stream->flags & WEFT__STREAM_RECEIVES_FDS);
		break;
	case QUEUED:
		*out = count_queued(stream);
		break;
	case UNSENT:
		*out = weft__stream_unsent(stream);
		break;
	default:
		*out = *(const int64_t *)(const void *)field;
		break;
	}
	return explain(rc, name, "weft_stream_get");
}

/* --- addresses ---------------------------------------------------------- */

typedef int name_fn(int fd, struct sockaddr *addr, socklen_t *size);

static int
get_name(weft_stream *stream, name_fn *get, const char *call, weft_addr *out)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);
	int rc = weft__stream_check(stream, call);

	if (rc == 0 && !out)
		rc = weft__misuse_in(WEFT_EINVAL, call, "out is NULL");
	if (rc < 0)
		return rc;
	rc = get(stream->fd, (struct sockaddr *)&name, &size);
	if (rc < 0)
		return weft__fail_in(rc, call, weft_strerror(rc));
	weft__addr_from((struct sockaddr *)&name, size, SOCK_STREAM, out);
	return 0;
}

int
weft_stream_peer(weft_stream *stream, weft_addr *out)
{
	return get_name(stream, weft__sys->peername, "weft_stream_peer", out);
}

int
weft_stream_local(weft_stream *stream, weft_addr *out)
{
	return get_name(stream, weft__sys->sockname, "weft_stream_local", out);
}

int
weft__stream_explain(const weft_stream *stream, const char *call, int error)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);
	char text[WEFT_ADDR_TEXT_MAX] = "the stream";
	weft_addr peer;

	/* After a reset getpeername(2) fails, but SO_PEERNAME works.  That option refuses a buffer
	 * that is larger than the name, so `size` is the size of the local name: for TCP it is the
	 * same.  The name of a Unix peer may be cut or missing. */
	if (weft__sys->sockname(stream->fd, (struct sockaddr *)&name, &size) == 0
	    && weft__sys->get_option(stream->fd, SOL_SOCKET, SO_PEERNAME, &name, &size) == 0
	    && name.ss_family != AF_UNSPEC) {
		weft__addr_from((struct sockaddr *)&name, size, SOCK_STREAM, &peer);
		(void)weft_addr_format(&peer, text, sizeof(text));
	}
	return weft_fail(error, "%s %s: %s", call, text,
	                 error == WEFT_ENOBUFS
	                         ? "the peer was dropped because it does not read; more than "
	                           "write_max was queued"
	                         : weft_strerror(error));
}

int
weft_stream_fd(weft_stream *stream)
{
	int rc = weft__stream_check(stream, "weft_stream_fd");

	return rc < 0 ? rc : stream->fd;
}
