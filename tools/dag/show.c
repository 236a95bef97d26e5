/* show.c - the output of a run: a progress bar on a terminal, else lines.
 *
 * The bar is the last line of the terminal.  Any other output erases it first, and it is redrawn
 * soon.  It is written in one piece, at most every REDRAW_NS.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "run.h"

#define REDRAW_NS (50 * WEFT_MS)
#define TICK_NS   (200 * WEFT_MS)
#define BAR_CELLS 20u

/* --- the bar ---------------------------------------------------------------- */

static size_t
columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 80;
	return size.ws_col < 500 ? size.ws_col : 500;
}

static void
clear_bar(struct show *show)
{
	if (!show->drawn)
		return;
	fputs("\r\033[K", stderr);
	show->drawn = false;
}

static size_t
dagfile_show_add(char *line, size_t size, size_t room, const char *text)
{
	size_t more = strlen(text);

	if (size + more > room)
		more = room - size;
	memcpy(line + size, text, more);
	return size + more;
}

/* The line is cut at the width of the terminal, but not inside a multibyte character. */
static void
draw(struct show *show)
{
	char line[512], head[96], cells[BAR_CELLS + 1];
	size_t room = columns() - 1, size = 0;
	uint64_t now_ns = weft_now();
	uint32_t full = show->total ? (uint32_t)((uint64_t)show->done * BAR_CELLS / show->total)
	                            : 0;

	memset(cells, ' ', BAR_CELLS);
	memset(cells, '=', full < BAR_CELLS ? full : BAR_CELLS);
	cells[BAR_CELLS] = '\0';
	(void)snprintf(head, sizeof(head), "[%s] %u/%u %.1f s", cells, show->done, show->total,
	               (double)(now_ns - show->begin_ns) / 1e9);
	size = dagfile_show_add(line, size, room, head);
	for (struct label *l = show->running; l && size < room; l = l->next) {
		size = dagfile_show_add(line, size, room, l == show->running ? " " : ", ");
		size = dagfile_show_add(line, size, room, l->text);
	}
	if (size == room)
		while (size > 0 && (line[size - 1] & 0x80))
			size--;
	fprintf(stderr, "\r%.*s\033[K", (int)size, line);
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
show_said(struct show *show, FILE *to, const char *label, weft_span line)
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
