/* show.c - the output of a run: a progress bar on a terminal, else lines.
 *
 * The bar is the last line of the terminal.  Any other output erases it first, and it is redrawn
 * soon.  It is written in one piece, at most every REDRAW_NS.
 */
#include <base/terminal.h>
#include <base/terminal_text.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include "run.h"

#define REDRAW_NS (50 * WEFT_MS)
#define TICK_NS   (200 * WEFT_MS)
#define BAR_CELLS 20u

/* --- the bar ---------------------------------------------------------------- */

static void
clear_bar(struct show *show)
{
	if (!show->drawn)
		return;
	fputs("\r\033[K", stderr);
	show->drawn = false;
}

struct bar {
	char line[1024];
	size_t size;
	int cells, cells_max;
	bool utf8;
};

/* Adds the part of a text that fits. */
static void
bar_add(struct bar *bar, const char *text)
{
	char bytes[4];
	size_t size;

	while (*text) {
		int cells = text_next(&text, bar->utf8, bytes, &size);

		if (bar->cells + cells > bar->cells_max || bar->size + size > sizeof(bar->line)) {
			bar->cells = bar->cells_max;
			return;
		}
		memcpy(bar->line + bar->size, bytes, size);
		bar->size += size;
		bar->cells += cells;
	}
}

/* The line is cut at the width of the terminal. */
static void
draw(struct show *show)
{
	struct bar bar = { .utf8 = text_locale_is_utf8() };
	char head[96], marks[BAR_CELLS + 1];
	uint64_t now_ns = weft_now();
	uint32_t full = show->total ? (uint32_t)((uint64_t)show->done * BAR_CELLS / show->total)
	                            : 0;
	int rows;

	terminal_size(STDERR_FILENO, &rows, &bar.cells_max);
	bar.cells_max--;
	memset(marks, ' ', BAR_CELLS);
	memset(marks, '=', full < BAR_CELLS ? full : BAR_CELLS);
	marks[BAR_CELLS] = '\0';
	(void)snprintf(head, sizeof(head), "[%s] %u/%u %.1f s", marks, show->done, show->total,
	               (double)(now_ns - show->begin_ns) / 1e9);
	bar_add(&bar, head);
	for (struct label *l = show->running; l && bar.cells < bar.cells_max; l = l->next) {
		bar_add(&bar, l == show->running ? " " : ", ");
		bar_add(&bar, l->text);
	}
	fprintf(stderr, "\r%.*s\033[K", (int)bar.size, bar.line);
	fflush(stderr);
	show->drawn = true;
	show->drawn_ns = now_ns;
}

static void
redraw(struct show *show)
{
	if (show->mode == SHOW_BAR && weft_now() - show->drawn_ns >= REDRAW_NS)
		draw(show);
}

static void
on_tick(weft_timer *timer, void *arg)
{
	(void)timer;
	redraw(arg);
}

/* --- lines ------------------------------------------------------------------ */

static void
write_line(struct show *show, const char *format, va_list list)
{
	clear_bar(show);
	fputs("weft: ", stderr);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	fflush(stderr);
}

void
show_line(struct show *show, const char *format, ...)
{
	va_list list;

	if (show->mode != SHOW_LINES)
		return;
	va_start(list, format);
	write_line(show, format, list);
	va_end(list);
}

void
show_note(struct show *show, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	write_line(show, format, list);
	va_end(list);
	redraw(show);
}

void
show_output(struct show *show, FILE *to, const char *label, weft_span line)
{
	clear_bar(show);
	fprintf(to, "%s: ", label);
	fwrite(line.data, 1, line.size, to);
	fputc('\n', to);
	fflush(to);
	redraw(show);
}

/* --- running attempts ------------------------------------------------------- */

void
show_start(struct show *show, struct label *label)
{
	label->begin_ns = weft_now();
	label->next = NULL;
	label->link = show->running_end;
	*label->link = label;
	show->running_end = &label->next;
	redraw(show);
}

void
show_stop(struct show *show, struct label *label)
{
	*label->link = label->next;
	if (label->next)
		label->next->link = label->link;
	else
		show->running_end = label->link;
	redraw(show);
}

void
show_progress(struct show *show, uint32_t done, uint32_t total)
{
	show->done = done;
	show->total = total;
	redraw(show);
}

void
show_begin(struct show *show, weft_loop *loop, enum show_mode mode)
{
	show->mode = mode;
	show->begin_ns = weft_now();
	show->running_end = &show->running;
	if (mode != SHOW_BAR)
		return;
	weft_timer_set_background(&show->timer, true);
	(void)weft_timer_start(loop, &show->timer, weft_after(TICK_NS), TICK_NS, on_tick,
	                       show); /* on failure the bar is redrawn less often */
}

void
show_end(struct show *show)
{
	(void)weft_timer_stop(&show->timer);
	clear_bar(show);
	fflush(stderr);
	fflush(stdout);
}
