/* image.h - function names and source lines, read from an ELF file.  Private.
 *
 * The file is a range of bytes, usually mapped.  The readers allocate nothing, take no lock,
 * use little stack and never read outside of the bytes, whatever their contents.  So they work
 * in a signal handler, on the stack of a threadlet, and on a damaged file.
 *
 * Not supported: compressed sections, and debug information in a separate file.
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

/* The sections that are used; those that the file lacks are empty. */
struct weft__image {
	struct weft__bytes symbols, names; /* the symbol table and its string table */
	struct weft__bytes lines;          /* .debug_line */
	struct weft__bytes texts[2];       /* its strings: .debug_str, .debug_line_str */
};

struct weft__function {
	const char *name;   /* NUL-terminated; points into the file's bytes */
	uint64_t    start;
};

struct weft__line {
	const char *file;   /* as given to the compiler; NUL-terminated, points into the bytes */
	uint64_t    number;
};

/* The address range that one line program of .debug_line covers. */
struct weft__lines_span {
	uint64_t low, high; /* first address, and the one after the last */
	size_t   at;        /* offset of the program in the section */
};

/* Find the sections.  False if `file` is not an ELF file with this CPU's width and byte order. */
bool weft__image_open(struct weft__image *image, struct weft__bytes file);

/* Find the function that contains `address`.  Addresses are as in the file, before relocation. */
bool weft__image_function(const struct weft__image *image, uint64_t address,
                          struct weft__function *out);

/* Count the line programs, and write the spans of the first `max`. */
size_t weft__lines_spans(const struct weft__image *image, struct weft__lines_span *out,
                         size_t max);

/* Find the source line of the code at `address`: in the line program at offset `at`, or in all
 * of them. */
bool weft__lines_find_in(const struct weft__image *image, size_t at, uint64_t address,
                         struct weft__line *out);
bool weft__lines_find(const struct weft__image *image, uint64_t address,
                      struct weft__line *out);

#endif
