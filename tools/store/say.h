/* say.h - writes replies, in the protocol that the client has chosen. */
#ifndef STORE_SAY_H
#define STORE_SAY_H

#include "inner.h"

/* Write bytes unchanged. */
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

/* Start an array, a map of `count` pairs, a set, or a push message. */
void say_array(struct client *client, size_t count);
void say_map(struct client *client, size_t count);
void say_set(struct client *client, size_t count);
void say_push(struct client *client, size_t count);

/* Start an array (or '%', '~') of unknown size: say_later() returns the position to pass to
 * say_count(), which inserts the header afterwards. */
size_t say_later(const struct client *client);
void   say_count(struct client *client, size_t place, char kind, size_t count);

/* Move what was written from `end` on, at most 128 bytes, before what was written from `begin`
 * on. */
void say_turn(struct client *client, size_t begin, size_t end);

#endif
