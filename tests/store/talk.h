/* talk.h - a store without a network, with a clock set by the test: lines in, replies out. */
#ifndef WEFT_TEST_TALK_H
#define WEFT_TEST_TALK_H

#include "store/connection/client.h"
#include "unit/probe.h"

extern int64_t talk_ms; /* the wall clock of stores opened by talk_open() */

struct talk {
	weft_loop  *loop;
	weft_store *store;
};

struct talk    talk_open(const weft_store_opts *opts);
void           talk_close(struct talk *talk); /* checks that all memory was freed */
struct client *talk_client(struct talk *talk);

/* Send a line.  Returns all output of the client, valid until the next call for any client.  The
 * store does not keep a line behind a blocking command. */
const char *talk_send(struct client *client, const char *line);

/* Returns and removes the output of the client so far. */
const char *talk_output(struct client *client);

#define SEND(client, line, answer) CHECK_STR(talk_send((client), (line)), (answer))

#endif
