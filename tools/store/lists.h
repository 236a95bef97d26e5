/* lists.h - the ends of lists, for commands that move elements and for those that block. */
#ifndef STORE_LISTS_H
#define STORE_LISTS_H

#include "command.h"

/* Parse LEFT or RIGHT.  Returns false after replying with an error if it is neither. */
bool list_side(struct client *client, struct word word, bool *out_left);

/* Add an element at one end of a list, which is created if it does not exist. */
void list_push(struct client *client, struct word name, struct text *text, bool left);

/* Remove an element from one end; an empty list is deleted.  The caller owns the element. */
struct text *list_pop(struct client *client, struct key *key, bool left);

/* Move an element from one list to another, and reply with it.  Returns false, without a reply,
 * if there is no element. */
struct list_move {
	struct word from, to;
	bool        from_left, to_left;
};
bool list_move(struct client *client, const struct list_move *move);

#endif
