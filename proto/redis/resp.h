/* resp.h - the Redis protocol, RESP2 and RESP3: parse replies, encode commands.  Private.
 *
 * A reply is read in two steps.  The scan finds its end in bytes that arrive in pieces.  It
 * stores no bytes and allocates nothing, so no allocation depends on a length that the peer
 * only announced.  The build makes the tree once the reply is complete.
 *
 *   1. The result of a scan depends only on the bytes, never on how they were split, and no
 *      byte is searched twice.
 *   2. A build trusts the scan: it accepts only bytes that were scanned.
 *   3. A reply and all its items are one block, which is freed with its last reference.
 */
#ifndef WEFT_REDIS_RESP_H
#define WEFT_REDIS_RESP_H

#include <stdarg.h>
#include <string.h>
#include <weft/redis.h>
#include "base/proto_refs.h"

#define WEFT__RESP_DEPTH 32 /* nesting of lists, whatever the limits say */

struct weft__resp_limits {
	size_t   bytes_max; /* of a whole reply, including its framing */
	uint32_t depth_max; /* 1: a list without lists in it */
	uint32_t nodes_max; /* items of all lists, plus the reply itself */
};

/* State of a scan.  Zeroed at first; weft__resp_restart() after each reply. */
struct weft__resp_scan {
	size_t   at;    /* bytes that were searched or skipped */
	size_t   start; /* of the current element */
	size_t   end;   /* of its bytes, once their length is known; else 0 */
	uint32_t nodes; /* elements so far, including those of attributes */
	uint32_t depth; /* open lists, plus the reply itself */
	bool     in_line; /* the line of the element is not complete */
	uint64_t left[WEFT__RESP_DEPTH + 1]; /* elements to come in each open list */
};

/* Clears everything except `left`, which is written before it is read. */
static inline void
weft__resp_restart(struct weft__resp_scan *scan)
{
	memset(scan, 0, offsetof(struct weft__resp_scan, left));
}

/* Continue a scan.  `data` is always the same reply from its first byte on; `size` counts the bytes
 * of it, and maybe of later replies, that have arrived.
 * Returns its size if it is complete, 0 if not; WEFT_EPROTO or WEFT_EMSGSIZE, with the reason
 * and the offset in weft_detail(). */
ssize_t weft__resp_scan(struct weft__resp_scan *scan, const struct weft__resp_limits *limits,
                        const char *data, size_t size);

/* Build the scanned reply of `size` bytes: nodes and a copy of the bytes in one allocation.
 * Attributes are dropped.  Returns 0 or WEFT_ENOMEM. */
int weft__resp_build(const struct weft__resp_scan *scan, const char *data, size_t size,
                     weft_redis_reply **out);

/* The same for large replies.  `data` is from weft_alloc().  On success the reply owns it, and
 * its texts are ended by a NUL that overwrites the '\r' after each. */
int weft__resp_build_taking(const struct weft__resp_scan *scan, char *data, size_t size,
                            weft_redis_reply **out);

/* Add a reference to a whole reply; weft_redis_reply_free() drops one. */
weft_redis_reply *weft__resp_ref(weft_redis_reply *reply);

/* The memory that a whole reply uses. */
size_t weft__resp_bytes(const weft_redis_reply *reply);

/* --- encoding ---------------------------------------------------------------- */

/* Encode arguments for the server: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".  _size() returns the size,
 * _put() writes that many bytes and returns the end. */
size_t weft__resp_size(const weft_span *args, size_t count);
char  *weft__resp_put(char *at, const weft_span *args, size_t count);

/* The arguments of a format (weft_redis_callf()), copied into one allocation; the caller passes
 * out->args to weft_release().
 * Returns 0, WEFT_EINVAL with weft_detail(), WEFT_ENOMEM. */
struct weft__resp_args {
	size_t     count;
	weft_span *args;
};
int weft__resp_format(struct weft__resp_args *out, const char *format, va_list args);

/* --- numbers ----------------------------------------------------------------- */

/* Parse a text that is entirely a number as Redis writes it: no white space, no leading plus
 * or zeros, and no "-0" as an integer.  The decimal point is "." in all locales.  `out` may be
 * NULL.  False if the text is not such a number, or an integer that does not fit. */
bool weft__resp_integer(const char *text, size_t size, int64_t *out);
bool weft__resp_number(const char *text, size_t size, double *out);

/* --- the tree ------------------------------------------------------------------ */

/* One element.  Text, error, number: `data` and `size` are its bytes.  Integer, bool:
 * `integer`.  List, map, set, push: `items`, with their count in `size`. */
struct weft_redis_reply {
	union {
		const char       *data;
		weft_redis_reply *items;
		int64_t           integer;
	} as;
	uint64_t size : 56;
	uint64_t kind : 8; /* weft_redis_type */
};

/* The allocation of a whole reply; nodes[0] is the root of its tree. */
struct weft__resp_block {
	struct weft__refs refs;
	size_t           bytes;  /* of memory, including `taken` */
	char            *taken;  /* bytes that are not behind the nodes, or NULL */
	weft_redis_reply nodes[];
};

static inline struct weft__resp_block *
weft__resp_block(const weft_redis_reply *reply)
{
	size_t before = offsetof(struct weft__resp_block, nodes);

	return (struct weft__resp_block *)(void *)((char *)(uintptr_t)reply - before);
}

/* A test counts the bytes that a scan searches, to check that their number is linear. */
#ifdef WEFT__RESP_COUNT
extern uint64_t weft__resp_scanned;
#define WEFT__RESP_COUNT_SCANNED(count) (weft__resp_scanned += (count))
#else
#define WEFT__RESP_COUNT_SCANNED(count) ((void)0)
#endif

#endif
