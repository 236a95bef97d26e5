/* resp.h - the protocol of Redis, RESP2 and RESP3: replies read, words written.  Private.
 *
 * A reply is read in two steps.  The scan finds its end in bytes that come in pieces; it
 * keeps no bytes and makes no memory, so nothing is ever sized by a length that a peer
 * only announced.  The build makes the tree when all of it is there.
 *
 *   1. What the scan says depends on the bytes alone, never on how they were cut, and no
 *      byte is searched twice.
 *   2. A build trusts the scan: it takes what was scanned, and nothing else.
 *   3. A reply and all its items are one block, which goes with its last owner.
 */
#ifndef WEFT_REDIS_RESP_H
#define WEFT_REDIS_RESP_H

#include <stdarg.h>
#include <string.h>
#include <weft/redis.h>

#define WEFT__RESP_DEPTH 32 /* of lists in lists, whatever the limits say */

struct weft__resp_limits {
	size_t   bytes_max; /* of a whole reply, with all that frames it */
	uint32_t depth_max; /* 1: a list without lists in it */
	uint32_t nodes_max; /* items of all lists, and the reply itself */
};

/* Where a scan stands.  Zeroed at first and after each reply: weft__resp_restart(). */
struct weft__resp_scan {
	size_t   at;    /* bytes that were looked at or need not be */
	size_t   start; /* of the element that is read */
	size_t   end;   /* of its bytes, once its length was read; else 0 */
	uint32_t nodes; /* elements so far, those of attributes too */
	uint32_t depth; /* lists that are open, and the reply itself */
	bool     in_line; /* the line of the element is not complete */
	uint64_t left[WEFT__RESP_DEPTH + 1]; /* elements to come, of each that is open */
};

/* All of it but what is written before it is read. */
static inline void
weft__resp_restart(struct weft__resp_scan *scan)
{
	memset(scan, 0, offsetof(struct weft__resp_scan, left));
}

/* Read on.  `data` is always the same reply from its first byte, `size` what has arrived
 * of it, and maybe of what follows.
 * Returns its size if it is complete, 0 if not, WEFT_EPROTO or WEFT_EMSGSIZE with
 * weft_detail() saying what and at which byte. */
ssize_t weft__resp_scan(struct weft__resp_scan *scan, const struct weft__resp_limits *limits,
                        const char *data, size_t size);

/* Make the reply of `size` bytes that was scanned: nodes and a copy of the bytes in one
 * allocation.  Attributes are dropped.  Returns 0 or WEFT_ENOMEM. */
int weft__resp_build(const struct weft__resp_scan *scan, const char *data, size_t size,
                     weft_redis_reply **out);

/* The same for large ones: `data` is of weft_alloc(), becomes the reply's on success, and
 * is written to, each text's NUL over the '\r' that follows it. */
int weft__resp_build_taking(const struct weft__resp_scan *scan, char *data, size_t size,
                            weft_redis_reply **out);

/* One more owner of a whole reply; weft_redis_reply_free() gives one up. */
weft_redis_reply *weft__resp_ref(weft_redis_reply *reply);

/* The memory that a whole reply takes. */
size_t weft__resp_bytes(const weft_redis_reply *reply);

/* --- writing ----------------------------------------------------------------- */

/* Words as a server reads them: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".  Put returns the end;
 * there must be room for what size says. */
size_t weft__resp_size(const weft_span *words, size_t count);
char  *weft__resp_put(char *at, const weft_span *words, size_t count);

/* The words of a format (weft_redis_callf()), with copies of all that is in them, in one
 * allocation: give out->words to weft_release().
 * Returns 0, WEFT_EINVAL with weft_detail(), WEFT_ENOMEM. */
struct weft__resp_words {
	size_t     count;
	weft_span *words;
};
int weft__resp_format(struct weft__resp_words *out, const char *format, va_list args);

/* --- numbers ----------------------------------------------------------------- */

/* Texts that are all of a number, as Redis writes them: no white space, no leading plus
 * or zeros, and no "-0" as an integer.  The point is a point in all locales.  `out` may be
 * NULL.  False if it is none, or an integer that does not fit. */
bool weft__resp_integer(const char *text, size_t size, int64_t *out);
bool weft__resp_number(const char *text, size_t size, double *out);

/* --- the tree ------------------------------------------------------------------ */

/* One element.  Text, error, number: `data` and `size` are its bytes.  Integer, bool:
 * `integer`.  List, map, set, push: `items` and their count in `size`. */
struct weft_redis_reply {
	union {
		const char       *data;
		weft_redis_reply *items;
		int64_t           integer;
	} as;
	uint64_t size : 56;
	uint64_t kind : 8; /* weft_redis_type */
};

/* What a whole reply is in; its tree begins with nodes[0]. */
struct weft__resp_block {
	uint32_t         owners; /* atomic */
	size_t           bytes;  /* of memory, those of `taken` too */
	char            *taken;  /* bytes that are not behind the nodes, or NULL */
	weft_redis_reply nodes[];
};

static inline struct weft__resp_block *
weft__resp_block(const weft_redis_reply *reply)
{
	size_t before = offsetof(struct weft__resp_block, nodes);

	return (struct weft__resp_block *)(void *)((char *)(uintptr_t)reply - before);
}

/* A test counts the bytes that a scan looks at, to see that their number is linear. */
#ifdef WEFT__RESP_COUNT
extern uint64_t weft__resp_looked_at;
#define WEFT__RESP_LOOKED_AT(count) (weft__resp_looked_at += (count))
#else
#define WEFT__RESP_LOOKED_AT(count) ((void)0)
#endif

#endif
