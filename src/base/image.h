/* image.h - functions and lines of code, read from the file of a program or library.  Private.
 *
 * The file is bytes in memory, usually mapped.  The readers allocate nothing, take no lock,
 * use little stack and never read outside of the bytes, whatever these say: so they work in
 * a signal handler, on the stack of a threadlet, and on a damaged file.
 *
 * Not read: compressed sections, and debug information in a file of its own.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_BASE_IMAGE_H
#define WEFT_BASE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__bytes {
	const uint8_t *at;
	size_t         size;
};

/* The sections of a file that are of use; those that it lacks are empty. */
struct weft__image {
	struct weft__bytes symbols, names; /* of functions and other things */
	struct weft__bytes lines;          /* .debug_line, */
	struct weft__bytes texts[2];       /* and the names in .debug_str, .debug_line_str */
};

struct weft__function {
	const char *name;   /* ends with a NUL; points into the bytes */
	uint64_t    start;
};

struct weft__line {
	const char *file;   /* as the compiler was given it; the same */
	uint64_t    number;
};

/* The addresses that one line program of .debug_line is about. */
struct weft__lines_span {
	uint64_t low, high; /* the first, and the one after the last */
	size_t   at;        /* where the program begins in the section */
};

/* Find the sections.  False if that is not an ELF file of this CPU's width and byte order. */
bool weft__image_open(struct weft__image *image, struct weft__bytes file);

/* The function that the code at `address` is of; addresses are as in the file. */
bool weft__image_function(const struct weft__image *image, uint64_t address,
                          struct weft__function *out);

/* Count the line programs, and write the spans of the first `max`. */
size_t weft__lines_spans(const struct weft__image *image, struct weft__lines_span *out,
                         size_t max);

/* The line that the code at `address` is of: by the line program at `at`, or by all. */
bool weft__lines_find_in(const struct weft__image *image, size_t at, uint64_t address,
                         struct weft__line *out);
bool weft__lines_find(const struct weft__image *image, uint64_t address,
                      struct weft__line *out);

#endif
