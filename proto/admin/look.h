/* look.h - listing threadlets: what is asked for, and what is found.  Private. */
#ifndef WEFT_ADMIN_LOOK_H
#define WEFT_ADMIN_LOOK_H

#include "window.h"

#define WEFT__ADMIN_SYMBOL  160 /* bytes of text, with the NUL */
#define WEFT__ADMIN_SYMBOLS 256 /* that are remembered */

enum weft__admin_order {
	WEFT__ADMIN_AS_FOUND, WEFT__ADMIN_BY_SINCE, WEFT__ADMIN_BY_STACK, WEFT__ADMIN_BY_NAME,
};

struct weft__admin_symbol {
	const void *address;
	char        text[WEFT__ADMIN_SYMBOL];
};

struct weft__admin_found {
	uint64_t            loop;
	weft_threadlet_info info;
};

/* What is kept of all that were found: at most `max`, those that come first.  A heap whose
 * root is the last of them, until it is sorted. */
struct weft__admin_kept {
	struct weft__admin_found *items;
	size_t                    count, max;
	enum weft__admin_order    order;
};

/* One request; in memory of its own, since the stack of a threadlet is small. */
struct weft__admin_look {
	weft_http                *http;
	weft_admin               *admin;
	struct weft__admin_text   text;   /* not yet sent */
	bool                      json;
	const char               *query;  /* NULL: all */
	uint64_t                  loop;   /* 0: all */
	uint64_t                  max;
	uint64_t                  total, matched, shown;
	struct weft__admin_kept   kept;
	struct weft__admin_text   silent; /* JSON: loops that did not answer */
	weft_threadlet_info       slice[WEFT__ADMIN_SLICE];
	struct weft__admin_symbol symbols[WEFT__ADMIN_SYMBOLS];
};

/* A code address as text, valid until the next call; "?" if it has no name.  Raw addresses
 * would tell any local user where the program lies in memory. */
const char *weft__admin_symbol(struct weft__admin_look *look, const void *address);

/* Whether the text that is looked for stands in what is told of the threadlet. */
bool weft__admin_matches(struct weft__admin_look *look, const weft_threadlet_info *info);

/* A name that is not ours, as a line of text can have it. */
void weft__admin_put_name(struct weft__admin_text *text, const char *name);

/* Write one. */
void weft__admin_write_found(struct weft__admin_look *look,
                             const struct weft__admin_found *found);

/* Keep `found` if it is among the first. */
void weft__admin_keep(struct weft__admin_kept *kept, const struct weft__admin_found *found);

/* Put the next of them at its place, from the last to the first; false: all are. */
bool weft__admin_sort_step(struct weft__admin_kept *kept, size_t *left);

#endif
