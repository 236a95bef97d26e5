/* lists.h - ends of lists, for the commands that move elements and those that wait. */
#ifndef STORE_LISTS_H
#define STORE_LISTS_H

#include "command.h"

/* Read LEFT or RIGHT; whether it is one, else the client was told. */
bool list_side(struct client *client, struct word word, bool *out_left);

/* Put an element at an end of a list, which is made if it is not there. */
void list_push(struct client *client, struct word name, struct text *text, bool left);

/* Take one from an end; an empty list goes.  The element is the caller's. */
struct text *list_pop(struct client *client, struct key *key, bool left);

/* Move an element from list to list and say it.  Whether there was one; if not, nothing was. */
struct list_move {
	struct word from, to;
	bool        from_left, to_left;
};
bool list_move(struct client *client, const struct list_move *move);

#endif
