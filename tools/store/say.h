/* say.h - replies, in the protocol that the client has chosen. */
#ifndef STORE_SAY_H
#define STORE_SAY_H

#include "inner.h"

/* Bytes as they are. */
void say_raw(struct client *client, const char *data, size_t size);

void say_ok(struct client *client);
void say_status(struct client *client, const char *text);
void say_error(struct client *client, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void say_wrong_kind(struct client *client);
void say_syntax(struct client *client);
void say_unknown_part(struct client *client, const char *command, struct word part);
void say_number(struct client *client, int64_t number);
void say_bool(struct client *client, bool is);  /* RESP2: 1 or 0 */
void say_bulk(struct client *client, struct word word);
void say_text(struct client *client, const char *text);
void say_double(struct client *client, double number);
void say_verbatim(struct client *client, struct word word); /* plain text */
void say_null(struct client *client);
void say_null_array(struct client *client);

/* The begin of an array, of a map of `count` pairs, of a set, of a push. */
void say_array(struct client *client, size_t count);
void say_map(struct client *client, size_t count);
void say_set(struct client *client, size_t count);
void say_push(struct client *client, size_t count);

/* The begin of an array (or '%', '~') whose count is told by the second call, which gets what the
 * first has returned. */
size_t say_later(const struct client *client);
void   say_count(struct client *client, size_t place, char kind, size_t count);

/* Have what was said from `end` on, at most 128 bytes, stand before what was said from `begin`
 * on. */
void say_turn(struct client *client, size_t begin, size_t end);

#endif
