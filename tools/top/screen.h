/* screen.h - the lines of one picture, and how a terminal gets from the last one to it.
 *
 *   1. Texts are cleaned as they are put (text.h): bytes below 32 in a line are our own.
 *   2. Who puts goes from left to right; what does not fit is cut.
 *   3. Only lines that differ from what is shown are written, in one write.
 *   4. Terminals differ in how wide some characters are.  After a text that is not ASCII
 *      the cursor is told where it is, so that only that text can be out of its place.
 */
#ifndef WEFT_TOP_SCREEN_H
#define WEFT_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#define SCREEN_ROWS_MAX    500
#define SCREEN_COLUMNS_MAX 500

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_BAR, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLES };

struct line {
	char *bytes;
	size_t size;
	int cells;
	bool adrift; /* 4: the cursor may be elsewhere */
};

struct screen {
	int rows, columns;
	bool plain;   /* text alone, for a file: no sequences */
	bool colours, utf8;
	bool all;     /* nothing is known of what is shown: write all */
	struct line *lines, *shown;
	size_t room;  /* bytes of a line */
	char *out;    /* what is written */
};

/* Set its size, as it stands or as the terminal has it now.  Returns 0, WEFT_ENOMEM: then it is as
 * it was. */
int  screen_resize(struct screen *screen, int rows, int columns);
void screen_free(struct screen *screen);

/* Begin a new picture: all lines are empty. */
void screen_begin(struct screen *screen);

/* A field: `width` cells from `column` on. */
struct field {
	int row, column, width;
	enum style style;
	bool right; /* it ends there, if it is shorter */
};

/* Put a text in a field; lines and columns that are not there take nothing.  Returns how many
 * cells it has taken. */
int screen_put(struct screen *screen, struct field field, const char *text);

/* Write to a terminal what has changed; or so many lines, as text.  Returns 0, or -errno. */
int screen_show(struct screen *screen, int fd);
int screen_print(const struct screen *screen, int rows, int fd);

/* Write all of it to a descriptor, whatever it takes. */
int screen_write_all(int fd, const char *bytes, size_t size);

#endif
