/* json.h - JSON of a program that is looked at: whole documents, bounded, read at once.
 *
 * The bytes are foreign.  What is not JSON is refused with a text and its place; what is
 * too deep, too large or too much is refused before memory is spent on it.  Only one thing is
 * let pass: a text may have bytes that are no UTF-8, since names are cut at a count of
 * bytes.  Whoever shows a text cleans it (text.h).
 */
#ifndef WEFT_TOP_JSON_H
#define WEFT_TOP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_BYTES_MAX  ((size_t)16 << 20)
#define JSON_DEPTH_MAX  32u
#define JSON_VALUES_MAX (1u << 20)
#define JSON_TEXT_MAX   ((size_t)64 << 10) /* bytes of one text, as they stand */
#define JSON_NUMBER_MAX ((size_t)64)       /* bytes of one number */

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

struct json {
	enum json_kind kind;
	const char *name;  /* in an object; else NULL */
	struct json *next; /* in the same list or object */
	struct json *first;
	uint32_t count;    /* of a list or object */
	double number;
	const char *text;  /* NUL-terminated; U+0000 and halves of pairs stand as U+FFFD */
};

struct json_document {
	struct json *root;
	const char *error; /* NULL: none */
	size_t error_at;   /* byte, from 0 */
	struct json_block *blocks;
	char *texts;
};

/* Read a document, whatever was in `out`.  Returns 0; or -1 with its error, and nothing to
 * free. */
int  json_read(struct json_document *out, const char *bytes, size_t size);
void json_free(struct json_document *document);

/* A member by name, the first one; NULL if there is none, or `object` is none (NULL too). */
const struct json *json_get(const struct json *object, const char *name);

/* A member's number, or `otherwise`; its text, or "". */
double      json_number(const struct json *object, const char *name, double otherwise);
const char *json_text(const struct json *object, const char *name);

/* The first item of a member that is a list; NULL if it has none or is no list. */
const struct json *json_list(const struct json *object, const char *name);

#endif
