/* screen.h - the lines of one frame, and how a terminal is updated to show them.
 *
 *   1. Text is cleaned when it is put (base/terminal_text.h): all bytes below 32 in a line are our
 *      own.
 *   2. Fields are put from left to right; text that does not fit is cut.
 *   3. Only lines that differ from the ones shown are written, in one write.
 *   4. Terminals disagree about the width of some characters.  After non-ASCII text the cursor
 *      is set explicitly, so that only that text can be misplaced.
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
	bool adrift; /* invariant 4: the cursor position is uncertain */
};

struct screen {
	int rows, columns;
	bool plain;   /* text only, for a file: no escape sequences */
	bool colours, utf8;
	bool all;     /* the terminal's contents are unknown: write every line */
	struct line *lines, *shown;
	size_t room;  /* bytes per line */
	char *out;    /* output buffer */
};

/* Set the size in rows and columns.  Returns 0, or WEFT_ENOMEM; then nothing has changed. */
int  screen_resize(struct screen *screen, int rows, int columns);
void screen_free(struct screen *screen);

/* Start a new frame: all lines are empty. */
void screen_begin(struct screen *screen);

/* A field: `width` cells from `column` on. */
struct field {
	int row, column, width;
	enum style style;
	bool right; /* align to the right */
};

/* Put a text in a field.  Nothing is put outside the screen.  Returns the number of cells used. */
int screen_put(struct screen *screen, struct field field, const char *text);

/* Write the changed lines to a terminal; or write `rows` lines as plain text.  Return 0 or
 * -errno. */
int screen_show(struct screen *screen, int fd);
int screen_print(const struct screen *screen, int rows, int fd);

#endif
