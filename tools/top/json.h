/* json.h - a bounded JSON parser for the replies of the monitored program.
 *
 * The input is untrusted.  Invalid JSON is rejected with an error text and its position.  Input
 * that is too deep, too large or has too many values is rejected before memory is spent on it.
 * There is one exception: a string may contain bytes that are not UTF-8, because the program
 * truncates names at a byte count.  Code that displays a string must clean it
 * (base/terminal_text.h).
 */
#ifndef WEFT_TOP_JSON_H
#define WEFT_TOP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_BYTES_MAX  ((size_t)16 << 20)
#define JSON_DEPTH_MAX  32u
#define JSON_VALUES_MAX (1u << 20)
#define JSON_TEXT_MAX   ((size_t)64 << 10) /* bytes of one string in the source */
#define JSON_NUMBER_MAX ((size_t)64)       /* bytes of one number */

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

struct json {
	enum json_kind kind;
	const char *name;  /* member name in an object; else NULL */
	struct json *next; /* next item of the same list or object */
	struct json *first;
	uint32_t count;    /* items of a list or object */
	double number;
	const char *text;  /* NUL-terminated; U+0000 and lone surrogates become U+FFFD */
};

struct json_document {
	struct json *root;
	const char *error; /* NULL: none */
	size_t error_at;   /* byte offset */
	struct json_block *blocks;
	char *texts;
};

/* Parse a document; previous contents of `out` are overwritten.  Returns 0; or -1 with the error
 * in `out` and nothing to free. */
int  json_read(struct json_document *out, const char *bytes, size_t size);
void json_free(struct json_document *document);

/* The first member of that name; NULL if there is none, or if `object` is NULL or not an object. */
const struct json *json_get(const struct json *object, const char *name);

/* A member's number, or `otherwise` if it has none; a member's string, or "". */
double      json_number(const struct json *object, const char *name, double otherwise);
const char *json_text(const struct json *object, const char *name);

/* The first item of a member that is a list; NULL if it is empty or not a list. */
const struct json *json_list(const struct json *object, const char *name);

#endif
