/* draw.c - draws a frame: three lines about the program, its tables, and a line of keys.
 *
 * Below the loops, if there is room, are the values and the first threadlets in sort order.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "top.h"

#define HEAD_ROWS    3
#define SECTION_ROWS 3 /* minimum height of a section, including its header line */
#define MESSAGE_NS   (8 * WEFT_S)
#define NARROW       60 /* below this many columns the tab line omits the row counts */

static const char *const help_lines[] = {
	"weft top monitors a running weft program through its admin endpoint.",
	"",
	"  Tab, 1 2 3       loops, threadlets, values of the program",
	"  arrows, PgUp..   scroll; Home and End, too",
	"  s, < >           sort by the next column, or the previous one",
	"  r                reverse the order",
	"  /                show rows with a text; Enter keeps it, Esc clears it",
	"  p                pause, and continue",
	"  + -              update less often, more often",
	"  d                write all threadlets to a file, with their stack traces",
	"  t                record a trace of 5 s to a file (for ui.perfetto.dev)",
	"  h, ?             this text",
	"  q                quit",
	"",
	"BUSY is the share of time not spent waiting.  LAG99 is the 99th percentile of",
	"how late timers and posts run, TURN99 of how long one loop iteration takes.",
	"INBOX counts posts that wait.  Threadlets are sorted: running, ready, then",
	"waiting, the longest first.  PER S is shown for counters (_total).",
	NULL,
};

static const char *const key_texts[] = {
	"q quit",    "h help",  "Tab view", "s sort",  "/ filter",
	"r reverse", "p pause", "d dump",   "t trace", "+- period",
};

#define KEY_TEXTS (sizeof(key_texts) / sizeof(key_texts[0]))

const char *
draw_help_line(size_t index)
{
	return help_lines[index];
}

static void
draw_put(struct screen *screen, int row, enum style style, const char *text)
{
	const struct field field = { .row = row, .width = screen->columns, .style = style };

	(void)screen_put(screen, field, text);
}

/* --- the top lines ---------------------------------------------------------- */

static void
draw_title(struct top *top)
{
	const struct model *model = &top->model;
	char line[512], up[FORMAT_ROOM], pid[FORMAT_ROOM];

	format_number(up, model->uptime_ns, UNIT_TIME);
	format_number(pid, model->pid, UNIT_NUMBER);
	if (model->readings == 0)
		(void)snprintf(line, sizeof(line), " weft top  %.400s", top->opts->name);
	else
		(void)snprintf(line, sizeof(line),
		               " weft top  %.200s  pid %s  up %s  weft %.32s  each %.4gs",
		               model->title, pid, up, model->version, (double)top->period_ms / 1e3);
	if (top->view.paused) {
		const struct field paused = { .width = 9, .style = STYLE_BAR };
		const struct field rest = { .column = 9,
			                    .width = top->screen.columns,
			                    .style = STYLE_BAR };

		(void)screen_put(&top->screen, paused, " PAUSED");
		(void)screen_put(&top->screen, rest, line);
		return;
	}
	draw_put(&top->screen, 0, STYLE_BAR, line);
}

static void
draw_process(struct top *top)
{
	const struct model *model = &top->model;
	char cpu[FORMAT_ROOM], rss[FORMAT_ROOM], fds[FORMAT_ROOM];
	char threads[FORMAT_ROOM], line[512];
	struct field blocked = { .row = 1, .width = top->screen.columns, .style = STYLE_BAD };

	if (*top->trouble) {
		draw_put(&top->screen, 1, STYLE_BAD, top->trouble);
		return;
	}
	if (model->readings == 0) {
		draw_put(&top->screen, 1, STYLE_PLAIN, "connecting");
		return;
	}
	format_number(cpu, model->cpu, UNIT_PERCENT);
	format_number(rss, model->rss, UNIT_BYTES);
	format_number(fds, model->fds, UNIT_NUMBER);
	format_number(threads, model->threads, UNIT_NUMBER);
	(void)snprintf(line, sizeof(line), "cpu %s  rss %s  fds %s  threads %s", cpu, rss, fds,
	               threads);
	draw_put(&top->screen, 1, STYLE_PLAIN, line);
	if (model->silent_count == 0)
		return;
	/* A blocked loop does not report its threadlets. */
	blocked.column = top->screen.lines[1].cells + 2;
	(void)snprintf(line, sizeof(line), "%u loops are blocked", model->silent_count);
	(void)screen_put(&top->screen, blocked, line);
}

static double
total_of(const struct model *model, enum tab tab)
{
	if (tab == TAB_LOOPS)
		return (double)model->loop_count;
	if (tab == TAB_VALUES)
		return (double)model->value_count;
	return model->has_threadlets ? model->threadlet_total : NAN;
}

/* Shows the numbered tabs with the current one in brackets, its filter and its sort column. */
static void
draw_tabs(struct top *top)
{
	struct field field = { .row = 2, .width = top->screen.columns };
	const struct tab_view *tab = &top->view.tabs[top->view.tab];
	struct table shown = tables_get(&top->model, top->view.tab);
	bool narrow = top->screen.columns < NARROW;
	char text[160], count[FORMAT_ROOM];

	for (int i = 0; i < TABS; i++) {
		bool here = i == (int)top->view.tab;

		format_number(count, total_of(&top->model, i), UNIT_COUNT);
		(void)snprintf(text, sizeof(text), "%s%d %s%s%s%s", here ? "[" : " ", i + 1,
		               tables_get(&top->model, i).name, narrow ? "" : " ",
		               narrow ? "" : count, here ? "]" : " ");
		field.style = here ? STYLE_BOLD : STYLE_PLAIN;
		field.column += screen_put(&top->screen, field, text);
	}
	field.column++;
	field.style = STYLE_PLAIN;
	if (*tab->filter) {
		(void)snprintf(text, sizeof(text), "/%s: %zu of %zu  ", tab->filter,
		               tab->order.count, shown.row_count);
		field.column += screen_put(&top->screen, field, text);
	}
	(void)snprintf(text, sizeof(text), "by %s%s", shown.columns[tab->order.column].title,
	               tab->order.reverse ? ", reversed" : "");
	(void)screen_put(&top->screen, field, text);
}

/* --- the last line ------------------------------------------------------------ */

static void
draw_keys(struct top *top, int row)
{
	struct field field = { .row = row };

	for (size_t i = 0; i < KEY_TEXTS; i++) {
		int size = (int)strlen(key_texts[i]);

		if (field.column + size > top->screen.columns)
			return;
		field.width = size;
		(void)screen_put(&top->screen, field, key_texts[i]);
		field.column += size + 2;
	}
}

static void
draw_foot(struct top *top)
{
	int row = top->screen.rows - 1;
	char text[FILTER_MAX + 64];

	if (top->view.editing) {
		(void)snprintf(text, sizeof(text), "/%s_   Enter keeps it, Esc clears it",
		               top->view.tabs[top->view.tab].filter);
		draw_put(&top->screen, row, STYLE_BOLD, text);
	} else if (*top->view.message && weft_now() < top->view.message_until_ns) {
		draw_put(&top->screen, row, STYLE_BOLD, top->view.message);
	} else {
		draw_keys(top, row);
	}
}

/* --- tables ----------------------------------------------------------------- */

static void
sort_all(struct top *top)
{
	for (int i = 0; i < TABS; i++) {
		struct table table = tables_get(&top->model, i);

		/* Out of memory: the table has no rows this time. */
		(void)table_sort(&table, &top->view.tabs[i].order, top->view.tabs[i].filter);
	}
}

/* Draws the first rows of a table that does not scroll.  Returns the line after it. */
static int
draw_section(struct top *top, enum tab tab, int row, int height)
{
	struct table table = tables_get(&top->model, tab);
	struct table_order order = top->view.tabs[tab].order;
	int needed = (int)(order.count < 1000 ? order.count : 1000) + 1;

	order.top = 0;
	if (needed > height)
		needed = height;
	if (needed < 2)
		return row;
	table_draw(&table, &order, &top->screen, row, needed);
	return row + needed + 1;
}

/* Values get half of the lines (at least SECTION_ROWS), threadlets the rest. */
static void
draw_sections(struct top *top, int row, int end)
{
	int half = (end - row) / 2;

	if (end - row < SECTION_ROWS)
		return;
	row = draw_section(top, TAB_VALUES, row, half > SECTION_ROWS ? half : SECTION_ROWS);
	if (end - row >= SECTION_ROWS)
		(void)draw_section(top, TAB_THREADLETS, row, end - row);
}

static void
draw_body(struct top *top, int row, int end)
{
	struct table table = tables_get(&top->model, top->view.tab);
	struct table_order *order = &top->view.tabs[top->view.tab].order;
	int needed = (int)(order->count < 1000 ? order->count : 1000) + 1;

	if (needed > end - row)
		needed = end - row;
	top->view.page = end - row - 1;
	table_draw(&table, order, &top->screen, row, needed);
	if (top->view.tab == TAB_LOOPS)
		draw_sections(top, row + needed + 1, end);
}

static void
draw_help(struct top *top, int row, int end)
{
	size_t line = top->view.help_top;

	for (; row < end && help_lines[line]; row++, line++)
		draw_put(&top->screen, row, STYLE_PLAIN, help_lines[line]);
}

/* --- frames ------------------------------------------------------------------ */

static void
draw_frame(struct top *top)
{
	int end = top->screen.rows - 1;

	sort_all(top);
	screen_begin(&top->screen);
	draw_title(top);
	draw_process(top);
	draw_tabs(top);
	if (top->view.help)
		draw_help(top, HEAD_ROWS, end);
	else
		draw_body(top, HEAD_ROWS, end);
	draw_foot(top);
}

int
draw_text(struct top *top, int columns)
{
	static const enum tab tabs[TABS] = { TAB_LOOPS, TAB_VALUES, TAB_THREADLETS };
	int row = HEAD_ROWS - 1, rows = HEAD_ROWS + 2 * TABS, rc;

	sort_all(top);
	for (int i = 0; i < TABS && rows < SCREEN_ROWS_MAX; i++)
		rows += (int)top->view.tabs[i].order.count;
	rc = screen_resize(&top->screen, rows, columns);
	if (rc < 0)
		return rc;
	screen_begin(&top->screen);
	draw_title(top);
	draw_process(top);
	for (int i = 0; i < TABS; i++)
		row = draw_section(top, tabs[i], row + 1, top->screen.rows - row - 1) - 1;
	return row < top->screen.rows ? row : top->screen.rows;
}

void
draw_show(struct top *top)
{
	if (!top->live)
		return;
	draw_frame(top);
	(void)screen_show(&top->screen, STDOUT_FILENO); /* the terminal may be gone */
}

void
draw_message(struct top *top, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)vsnprintf(top->view.message, sizeof(top->view.message), format, list);
	va_end(list);
	top->view.message_until_ns = weft_after(MESSAGE_NS);
	draw_show(top);
}
