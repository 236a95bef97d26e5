/* error.c - names and texts of errors, and the version.
 *
 * Errors are numbers.  A WEFT_E* that has an errno equals its negative, so that any other
 * -errno of the system passes through unchanged.
 */
#include <weft/base.h>

struct entry {
	int error;
	const char *name;
	const char *text;
};

#define ENTRY(error, text)          \
	{                           \
		error, #error, text \
	}

static const struct entry entries[] = {
	ENTRY(WEFT_ETIMEDOUT, "timed out"),
	ENTRY(WEFT_ECANCELED, "canceled"),
	ENTRY(WEFT_EINTR, "interrupted"),
	ENTRY(WEFT_ESHUTDOWN, "closed or shutting down on this side"),
	ENTRY(WEFT_EPIPE, "the other side is gone"),
	ENTRY(WEFT_EINVAL, "invalid argument"),
	ENTRY(WEFT_ENOMEM, "out of memory"),
	ENTRY(WEFT_EAGAIN, "queue is full, try again"),
	ENTRY(WEFT_EBUSY, "in use"),
	ENTRY(WEFT_EDEADLK, "would deadlock"),
	ENTRY(WEFT_EALREADY, "already done"),
	ENTRY(WEFT_ENOENT, "not found"),
	ENTRY(WEFT_EEXIST, "already exists"),
	ENTRY(WEFT_ESRCH, "no such threadlet"),
	ENTRY(WEFT_EBADF, "bad descriptor"),
	ENTRY(WEFT_ENOSYS, "not supported by this build or kernel"),
	ENTRY(WEFT_EPERM, "not permitted"),
	ENTRY(WEFT_EMSGSIZE, "too large"),
	ENTRY(WEFT_ENOBUFS, "no buffer space"),
	ENTRY(WEFT_EPROTO, "protocol error by the peer"),
	ENTRY(WEFT_ECONNRESET, "connection reset by the peer"),
	ENTRY(WEFT_ECONNREFUSED, "connection refused"),
	ENTRY(WEFT_EADDRINUSE, "address in use"),
	ENTRY(WEFT_ENONAME, "no such host name"),
	ENTRY(WEFT_ECERT, "certificate not accepted"),
	ENTRY(WEFT_ETRUNCATED, "ended too early"),
	ENTRY(WEFT_EREJECTED, "rejected"),
	ENTRY(WEFT_EREPLY, "error reply"),
	ENTRY(WEFT_ESCRIPT, "script error"),
	ENTRY(WEFT_EOF, "the stream has ended"),
	ENTRY(WEFT_ECLOSED, "closed"),
	ENTRY(WEFT_ENOSUSPEND, "the caller is not a threadlet and cannot suspend"),
	ENTRY(WEFT_EWRONGLOOP, "belongs to another loop, thread or process"),
	{ -EACCES, "-EACCES", "permission denied" },
	{ -EADDRNOTAVAIL, "-EADDRNOTAVAIL", "address not available" },
	{ -ECONNABORTED, "-ECONNABORTED", "connection aborted" },
	{ -EFAULT, "-EFAULT", "bad address" },
	{ -EHOSTUNREACH, "-EHOSTUNREACH", "host unreachable" },
	{ -EINPROGRESS, "-EINPROGRESS", "in progress" },
	{ -EIO, "-EIO", "input/output error" },
	{ -EISCONN, "-EISCONN", "already connected" },
	{ -EMFILE, "-EMFILE", "too many open files in this process" },
	{ -ENETUNREACH, "-ENETUNREACH", "network unreachable" },
	{ -ENFILE, "-ENFILE", "too many open files in this system" },
	{ -ENOSPC, "-ENOSPC", "no space left" },
	{ -ENOTCONN, "-ENOTCONN", "not connected" },
	{ -ENOTSOCK, "-ENOTSOCK", "not a socket" },
	{ -EOPNOTSUPP, "-EOPNOTSUPP", "not supported" },
};

static const struct entry *
base_error_find(int error)
{
	static const struct entry success = { 0, "0", "success" };
	static const struct entry unknown = { 0, "unknown", "unknown error" };

	if (error >= 0)
		return &success;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (entries[i].error == error)
			return &entries[i];
	return &unknown;
}

const char *
weft_strerror(int error)
{
	return base_error_find(error)->text;
}

const char *
weft_errname(int error)
{
	return base_error_find(error)->name;
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *
weft_version(void)
{
	return TEXT(WEFT_VERSION_MAJOR) "." TEXT(WEFT_VERSION_MINOR) "." TEXT(WEFT_VERSION_PATCH);
}
