/* talk.h - a store without a network: lines in, replies out; and its clock, which the test sets. */
#ifndef WEFT_TEST_TALK_H
#define WEFT_TEST_TALK_H

#include "store/inner.h"
#include "unit/probe.h"

extern int64_t talk_ms; /* the wall clock of stores that talk_open() has opened */

struct talk {
	weft_loop  *loop;
	weft_store *store;
};

struct talk    talk_open(const weft_store_opts *opts);
void           talk_close(struct talk *talk); /* nothing was lost */
struct client *talk_client(struct talk *talk);

/* Say a line, and hear all that was answered, up to the next call for any client. */
const char *talk_say(struct client *client, const char *line);

/* What it was told meanwhile. */
const char *talk_hear(struct client *client);

#define SAY(client, line, answer) CHECK_STR(talk_say((client), (line)), (answer))

#endif
