/* admin_listing.h - listing threadlets: the request and its results.  Private. */
#ifndef WEFT_ADMIN_LISTING_H
#define WEFT_ADMIN_LISTING_H

#include <weft/debug.h>
#include "admin_private.h"

#define WEFT__ADMIN_SYMBOL  160 /* bytes of text, including the NUL */
#define WEFT__ADMIN_SYMBOLS 256 /* cached symbols */

enum weft__admin_order {
	WEFT__ADMIN_AS_FOUND, WEFT__ADMIN_BY_SINCE, WEFT__ADMIN_BY_STACK, WEFT__ADMIN_BY_NAME,
};

struct weft__admin_symbol {
	const void *address;
	char        text[WEFT__ADMIN_SYMBOL];
};

struct weft__admin_entry {
	uint64_t            loop;
	weft_threadlet_info info;
};

/* The first `max` of the threadlets found so far, in the given order (top-k).  A heap whose
 * root is the last of them, until it is sorted. */
struct weft__admin_top {
	struct weft__admin_entry *items;
	size_t                    count, max;
	enum weft__admin_order    order;
};

/* One request.  It is allocated, since the stack of a threadlet is small. */
struct weft__admin_listing {
	weft_http                *http;
	weft_admin               *admin;
	struct weft__admin_text   text;   /* not yet sent */
	bool                      json;
	const char               *query;  /* NULL: all threadlets */
	uint64_t                  loop;   /* 0: all loops */
	uint64_t                  max;
	uint64_t                  total, matched, shown;
	struct weft__admin_top    top;
	struct weft__admin_text   silent; /* JSON: loops that did not answer */
	weft_threadlet_info       slice[WEFT__ADMIN_SLICE];
	struct weft__admin_symbol symbols[WEFT__ADMIN_SYMBOLS];
};

/* A code address as text, valid until the next call; "?" if it has no name.  Raw addresses
 * would reveal the program's memory layout to any local user. */
const char *weft__admin_symbol(struct weft__admin_listing *listing, const void *address);

/* Whether the text of the query occurs in the description of the threadlet. */
bool weft__admin_matches(struct weft__admin_listing *listing, const weft_threadlet_info *info);

/* Write a name that is not trusted into a line of text. */
void weft__admin_put_name(struct weft__admin_text *text, const char *name);

/* Write one threadlet. */
void weft__admin_write_entry(struct weft__admin_listing *listing,
                             const struct weft__admin_entry *entry);

/* Keep `entry` if it is among the first `max`. */
void weft__admin_top_add(struct weft__admin_top *top, const struct weft__admin_entry *entry);

/* Move the last of the first *left entries to its place, and decrement *left.  False: all are
 * sorted. */
bool weft__admin_top_sort_step(struct weft__admin_top *top, size_t *left);

#endif
