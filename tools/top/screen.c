/* screen.c - the lines of one frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <base/terminal.h>
#include <base/terminal_text.h>
#include <weft/base.h>
#include "screen.h"

#define SEQUENCE_MAX 16 /* bytes of one of our escape sequences */

/* With colors, and without. */
static const char *const styles[STYLES][2] = {
	[STYLE_PLAIN] = { "", "" },
	[STYLE_BOLD] = { "\033[1m", "\033[1m" },
	[STYLE_BAR] = { "\033[7m", "\033[7m" },
	[STYLE_GOOD] = { "\033[32m", "" },
	[STYLE_WARN] = { "\033[33m", "" },
	[STYLE_BAD] = { "\033[1;31m", "\033[1m" },
};

/* --- memory ----------------------------------------------------------------- */

/* Lines, with their bytes after them. */
static struct line *
new_lines(int rows, size_t room)
{
	struct line *lines = calloc((size_t)rows, sizeof(*lines) + room);

	for (int i = 0; lines && i < rows; i++)
		lines[i].bytes = (char *)(lines + rows) + (size_t)i * room;
	return lines;
}

static int
within(int number, int max)
{
	return number < 1 ? 1 : number > max ? max : number;
}

int
screen_resize(struct screen *screen, int rows, int columns)
{
	struct screen fresh = *screen;

	fresh.rows = within(rows, SCREEN_ROWS_MAX);
	fresh.columns = within(columns, SCREEN_COLUMNS_MAX);
	fresh.room = (size_t)fresh.columns * 8 + 1024;
	fresh.lines = new_lines(fresh.rows, fresh.room);
	fresh.shown = new_lines(fresh.rows, fresh.room);
	fresh.out = malloc((size_t)fresh.rows * (fresh.room + 64) + 64);
	fresh.all = true;
	if (!fresh.lines || !fresh.shown || !fresh.out) {
		screen_free(&fresh);
		return weft_fail(WEFT_ENOMEM, "out of memory");
	}
	screen_free(screen);
	*screen = fresh;
	return 0;
}

void
screen_free(struct screen *screen)
{
	free(screen->lines);
	free(screen->shown);
	free(screen->out);
	screen->lines = screen->shown = NULL;
	screen->out = NULL;
	screen->rows = 0;
}

/* --- adding text ------------------------------------------------------------ */

void
screen_begin(struct screen *screen)
{
	for (int i = 0; i < screen->rows; i++) {
		screen->lines[i].size = 0;
		screen->lines[i].cells = 0;
		screen->lines[i].adrift = false;
	}
}

/* Returns false if `size` bytes do not fit; keeps room for the sequences that end a line. */
static bool
top_screen_add(const struct screen *screen, struct line *line, const char *bytes, size_t size)
{
	if (line->size + size + 2 * (size_t)SEQUENCE_MAX > screen->room)
		return false;
	memcpy(line->bytes + line->size, bytes, size);
	line->size += size;
	return true;
}

/* The room for these is reserved by top_screen_add(). */
static void
add_sequence(const struct screen *screen, struct line *line, const char *bytes)
{
	size_t size = strlen(bytes);

	if (screen->plain || line->size + size > screen->room)
		return;
	memcpy(line->bytes + line->size, bytes, size);
	line->size += size;
}

static void
set_cursor(const struct screen *screen, struct line *line)
{
	char sequence[SEQUENCE_MAX];

	if (!line->adrift)
		return;
	(void)snprintf(sequence, sizeof(sequence), "\033[%dG", line->cells + 1);
	add_sequence(screen, line, sequence);
	line->adrift = false;
}

static void
pad(const struct screen *screen, struct line *line, int column)
{
	while (line->cells < column && top_screen_add(screen, line, " ", 1))
		line->cells++;
}

/* The number of cells that a text needs, limited to `max`. */
static int
cells_of(const struct screen *screen, const char *text, int max)
{
	int cells = 0;

	while (*text && cells < max) {
		char bytes[4];
		size_t size;
		int width = text_next(&text, screen->utf8, bytes, &size);

		if (cells + width > max)
			break;
		cells += width;
	}
	return cells;
}

static void
add_text(const struct screen *screen, struct line *line, const char *text, int width)
{
	int end = line->cells + width;

	while (*text) {
		char bytes[4];
		size_t size;
		int cells = text_next(&text, screen->utf8, bytes, &size);

		if (line->cells + cells > end || !top_screen_add(screen, line, bytes, size))
			return;
		line->cells += cells;
		line->adrift |= size > 1;
	}
}

/* STYLE_BAR covers the whole field; other styles cover only the text. */
int
screen_put(struct screen *screen, struct field field, const char *text)
{
	struct line *line;
	const char *style = styles[field.style][screen->colours ? 0 : 1];
	int begin = field.column, cells;
	bool bar = field.style == STYLE_BAR;

	if (field.row < 0 || field.row >= screen->rows || begin >= screen->columns)
		return 0;
	if (field.width > screen->columns - begin)
		field.width = screen->columns - begin;
	line = &screen->lines[field.row];
	cells = cells_of(screen, text, field.width);
	pad(screen, line, begin);
	set_cursor(screen, line);
	if (bar)
		add_sequence(screen, line, style);
	if (field.right)
		pad(screen, line, begin + field.width - cells);
	if (!bar && *style)
		add_sequence(screen, line, style);
	add_text(screen, line, text, field.width);
	if (bar)
		pad(screen, line, begin + field.width);
	if (*style)
		add_sequence(screen, line, "\033[0m");
	return cells;
}

/* --- output ----------------------------------------------------------------- */

static bool
is_shown(const struct screen *screen, int row)
{
	const struct line *now = &screen->lines[row];
	const struct line *old = &screen->shown[row];

	return !screen->all && now->size == old->size
	       && memcmp(now->bytes, old->bytes, now->size) == 0;
}

int
screen_show(struct screen *screen, int fd)
{
	char *to = screen->out;

	if (screen->all)
		to += snprintf(to, 64, "\033[0m\033[2J");
	for (int row = 0; row < screen->rows; row++) {
		struct line old = screen->shown[row];

		if (is_shown(screen, row))
			continue;
		to += snprintf(to, 64, "\033[%d;1H\033[2K", row + 1);
		memcpy(to, screen->lines[row].bytes, screen->lines[row].size);
		to += screen->lines[row].size;
		screen->shown[row] = screen->lines[row];
		screen->lines[row] = old;
	}
	screen->all = false;
	return terminal_write_all(fd, screen->out, (size_t)(to - screen->out));
}

int
screen_print(const struct screen *screen, int rows, int fd)
{
	int rc = 0;

	for (int row = 0; row < rows && rc == 0; row++) {
		const struct line *line = &screen->lines[row];
		size_t size = line->size;

		while (size > 0 && line->bytes[size - 1] == ' ')
			size--;
		rc = terminal_write_all(fd, line->bytes, size);
		if (rc == 0)
			rc = terminal_write_all(fd, "\n", 1);
	}
	return rc;
}
