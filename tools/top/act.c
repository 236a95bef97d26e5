/* act.c - the actions of the keys. */
#include <string.h>
#include "top.h"

static struct tab_view *
tab_of(struct top *top)
{
	return &top->view.tabs[top->view.tab];
}

static void
quit(struct top *top)
{
	(void)weft_event_set(&top->quit);
}

/* --- the filter ------------------------------------------------------------- */

/* Removes the last character with all its bytes. */
static void
cut_filter(char *filter)
{
	size_t size = strlen(filter);

	while (size > 0 && (filter[--size] & 0xc0) == 0x80)
		;
	filter[size] = '\0';
}

static void
add_to_filter(char *filter, int key)
{
	size_t size = strlen(filter);

	if (key < ' ' || key == 0x7f || key > 0xff || size == FILTER_MAX)
		return;
	filter[size] = (char)(key >= 'A' && key <= 'Z' ? key + 'a' - 'A' : key);
	filter[size + 1] = '\0';
}

static void
edit(struct top *top, int key)
{
	char *filter = tab_of(top)->filter;

	if (key == '\r' || key == '\n') {
		top->view.editing = false;
	} else if (key == KEY_ESCAPE) {
		filter[0] = '\0';
		top->view.editing = false;
	} else if (key == 0x7f || key == '\b') {
		cut_filter(filter);
	} else if (key == 'u' - 'a' + 1) {
		filter[0] = '\0';
	} else {
		add_to_filter(filter, key);
	}
	tab_of(top)->order.top = 0;
}

/* --- scrolling -------------------------------------------------------------- */

static size_t
moved(size_t from, long by, size_t last)
{
	if (by < 0)
		return from > (size_t)-by ? from - (size_t)-by : 0;
	return from + (size_t)by < last ? from + (size_t)by : last;
}

/* Returns whether the key scrolls.  Drawing limits the position. */
static bool
scroll(struct top *top, int key)
{
	struct table_order *order = &tab_of(top)->order;
	size_t *at = top->view.help ? &top->view.help_top : &order->top;
	size_t last = top->view.help ? 0 : order->count;
	long page = top->view.page > 1 ? top->view.page : 1;
	long by;

	while (top->view.help && draw_help_line(last + 1))
		last++;
	if (key == KEY_UP || key == KEY_DOWN)
		by = key == KEY_UP ? -1 : 1;
	else if (key == KEY_PAGE_UP || key == KEY_PAGE_DOWN)
		by = key == KEY_PAGE_UP ? -page : page;
	else if (key == KEY_HOME || key == KEY_END)
		by = key == KEY_HOME ? -(long)*at : (long)last;
	else
		return false;
	*at = moved(*at, by, last);
	return true;
}

static void
show_tab(struct top *top, int tab)
{
	top->view.tab = (enum tab)((tab + TABS) % TABS);
	top->view.help = false;
	if (top->view.tab == TAB_THREADLETS)
		(void)weft_event_set(&top->refresh); /* fetch more of them */
}

static void
sort_by(struct top *top, int step)
{
	struct table table = tables_get(&top->model, top->view.tab);
	struct table_order *order = &tab_of(top)->order;
	size_t count = table.column_count;

	order->column = (order->column + count + (size_t)(step + 1) - 1) % count;
	order->top = 0;
}

/* --- keys ------------------------------------------------------------------- */

static void
change_period(struct top *top, bool longer)
{
	static const uint32_t periods[] = { 250, 500, 1000, 2000, 5000, 10000 };
	size_t count = sizeof(periods) / sizeof(periods[0]), i = 0;
	uint32_t now = top->period_ms;

	if (longer) {
		while (i + 1 < count && periods[i] <= now)
			i++;
	} else {
		i = count - 1;
		while (i > 0 && periods[i] >= now)
			i--;
	}
	top_set_period(top, periods[i]);
}

static void
pause_or_go_on(struct top *top)
{
	top->view.paused = !top->view.paused;
	if (!top->view.paused)
		(void)weft_event_set(&top->refresh);
}

static void
escape(struct top *top)
{
	if (top->view.help)
		top->view.help = false;
	else
		tab_of(top)->filter[0] = '\0';
}

/* Keys that change the view; false for any other key. */
static bool
act_on_view(struct top *top, int key)
{
	if (key >= '1' && key < '1' + TABS)
		show_tab(top, key - '1');
	else if (key == '\t')
		show_tab(top, (int)top->view.tab + 1);
	else if (key == KEY_BACK_TAB)
		show_tab(top, (int)top->view.tab - 1);
	else if (key == 's' || key == '>' || key == KEY_RIGHT)
		sort_by(top, 1);
	else if (key == '<' || key == KEY_LEFT)
		sort_by(top, -1);
	else if (key == 'r')
		tab_of(top)->order.reverse = !tab_of(top)->order.reverse;
	else
		return false;
	return true;
}

static void
act(struct top *top, int key)
{
	switch (key) {
	case 'q':
		quit(top);
		break;
	case '/':
		top->view.editing = true;
		top->view.help = false;
		break;
	case KEY_ESCAPE:
		escape(top);
		break;
	case 'h':
	case '?':
		top->view.help = !top->view.help;
		top->view.help_top = 0;
		break;
	case 'p':
		pause_or_go_on(top);
		break;
	case '+':
	case '-':
		change_period(top, key == '+');
		break;
	case 'd':
		save_begin(top, SAVE_THREADLETS);
		break;
	case 't':
		save_begin(top, SAVE_TRACE);
		break;
	default:
		break;
	}
}

void
act_on_key(int key, void *arg)
{
	struct top *top = arg;

	top->view.message[0] = '\0'; /* any key dismisses it */
	if (top->view.editing)
		edit(top, key);
	else if (!scroll(top, key) && !act_on_view(top, key))
		act(top, key);
	draw_show(top);
}
