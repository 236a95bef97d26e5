/* table.c - filters, sorts and draws a table. */
#include <base/terminal_text.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>
#include "table.h"

#define COLUMNS_MAX 32

static const void *
row_at(const struct table *table, size_t index)
{
	return (const char *)table->rows + index * table->row_size;
}

static const char *
top_table_text_of(const void *row, const struct column *column)
{
	const char *text;

	memcpy(&text, (const char *)row + column->offset, sizeof(text));
	return text ? text : "";
}

static double
number_at(const void *row, uint16_t offset)
{
	double number;

	memcpy(&number, (const char *)row + offset, sizeof(number));
	return number;
}

/* --- sorting ---------------------------------------------------------------- */

/* The sort key of one row, so that compare() needs nothing else. */
struct sortable {
	const char *text; /* or NULL */
	double number;
	uint32_t index;
	bool falls;
};

/* NAN sorts last in either direction. */
static int
compare_numbers(double a, double b, bool falls)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	if (a == b)
		return 0;
	return (a < b) != falls ? -1 : 1;
}

static int
compare(const void *left, const void *right)
{
	const struct sortable *a = left, *b = right;
	int rc;

	if (a->text) {
		rc = strcmp(a->text, b->text);
		rc = a->falls ? -rc : rc;
	} else {
		rc = compare_numbers(a->number, b->number, a->falls);
	}
	return rc ? rc : a->index < b->index ? -1 : 1;
}

static bool
is_selected(const struct table *table, const void *row, const char *filter)
{
	if (!*filter)
		return true;
	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].is_text
		    && text_has(top_table_text_of(row, &table->columns[i]), filter))
			return true;
	return false;
}

static int
top_table_make_room(struct table_order *order, size_t count)
{
	uint32_t *index;

	if (count <= order->room)
		return 0;
	index = realloc(order->index, count * sizeof(*index));
	if (!index)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	order->index = index;
	order->room = count;
	return 0;
}

static size_t
gather(const struct table *table, const struct table_order *order, const char *filter,
       struct sortable *out)
{
	const struct column *column = &table->columns[order->column];
	uint16_t offset = column->order ? column->order : column->offset;
	bool text = column->is_text && !column->order;
	size_t count = 0;

	for (size_t i = 0; i < table->row_count; i++) {
		const void *row = row_at(table, i);

		if (!is_selected(table, row, filter))
			continue;
		out[count++] = (struct sortable){
			.text = text ? top_table_text_of(row, column) : NULL,
			.number = text ? 0 : number_at(row, offset),
			.index = (uint32_t)i,
			.falls = (column->rises == 0) != order->reverse,
		};
	}
	return count;
}

int
table_sort(const struct table *table, struct table_order *order, const char *filter)
{
	struct sortable *rows;

	order->count = 0;
	if (table->row_count == 0)
		return 0;
	rows = malloc(table->row_count * sizeof(*rows));
	if (!rows || top_table_make_room(order, table->row_count) < 0) {
		free(rows);
		return WEFT_ENOMEM;
	}
	order->count = gather(table, order, filter, rows);
	if (order->count > 0)
		qsort(rows, order->count, sizeof(*rows), compare);
	for (size_t i = 0; i < order->count; i++)
		order->index[i] = rows[i].index;
	free(rows);
	return 0;
}

void
table_order_free(struct table_order *order)
{
	free(order->index);
	order->index = NULL;
	order->count = order->room = 0;
}

/* --- columns ---------------------------------------------------------------- */

/* The width of each column; 0: not shown. */
struct layout {
	int widths[COLUMNS_MAX];
};

static int
total_of(const struct table *table, const struct layout *layout)
{
	int total = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (layout->widths[i])
			total += layout->widths[i] + (total > 0);
	return total;
}

/* Drops the least important column.  Returns false if all remaining ones must stay. */
static bool
drop_one(const struct table *table, struct layout *layout)
{
	size_t found = table->column_count;
	uint8_t rank = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (layout->widths[i] && table->columns[i].rank > rank) {
			rank = table->columns[i].rank;
			found = i;
		}
	if (found == table->column_count)
		return false;
	layout->widths[found] = 0;
	return true;
}

/* Distributes the remaining width among the visible columns by their shares. */
static void
spread(const struct table *table, struct layout *layout, int left)
{
	int shares = 0;

	for (size_t i = 0; i < table->column_count; i++)
		shares += layout->widths[i] ? table->columns[i].share : 0;
	for (size_t i = 0; i < table->column_count && left > 0; i++) {
		int share = layout->widths[i] ? table->columns[i].share : 0;
		int more = share ? left * share / shares : 0;

		layout->widths[i] += more;
		left -= more;
		shares -= share;
	}
}

static void
lay_out(const struct table *table, struct layout *layout, int columns)
{
	for (size_t i = 0; i < table->column_count; i++)
		layout->widths[i] = table->columns[i].width;
	while (total_of(table, layout) > columns)
		if (!drop_one(table, layout))
			return; /* the line is cut at the edge */
	spread(table, layout, columns - total_of(table, layout));
}

/* --- drawing ---------------------------------------------------------------- */

static void
draw_head(const struct table *table, const struct table_order *order, struct screen *screen,
          const struct layout *layout, int row)
{
	struct field field = { .row = row, .style = STYLE_BAR };

	for (size_t i = 0; i < table->column_count; i++) {
		const struct column *column = &table->columns[i];

		if (layout->widths[i] == 0)
			continue;
		field.width = layout->widths[i];
		field.right = !column->is_text;
		field.style = STYLE_BAR;
		(void)screen_put(screen, field, column->title);
		field.column += field.width;
		field.width = 1;
		(void)screen_put(screen, field, i == order->column ? "*" : " ");
		field.column++;
	}
	field.width = screen->columns;
	(void)screen_put(screen, field, "");
}

static void
draw_row(const struct table *table, struct screen *screen, const struct layout *layout,
         const void *data, int row)
{
	struct field field = { .row = row };

	for (size_t i = 0; i < table->column_count; i++) {
		const struct column *column = &table->columns[i];
		char number[FORMAT_ROOM];
		const char *text = number;

		if (layout->widths[i] == 0)
			continue;
		field.width = layout->widths[i];
		field.right = !column->is_text;
		field.style = table->style ? table->style(data, column) : STYLE_PLAIN;
		if (column->is_text)
			text = top_table_text_of(data, column);
		else
			format_number(number, number_at(data, column->offset), column->unit);
		(void)screen_put(screen, field, text);
		field.column += field.width + 1;
	}
}

void
table_draw(const struct table *table, struct table_order *order, struct screen *screen, int row,
           int height)
{
	struct layout layout;
	size_t lines = height > 1 ? (size_t)height - 1 : 0;
	size_t last = order->count > lines ? order->count - lines : 0;

	if (height < 1)
		return;
	if (order->top > last)
		order->top = last;
	lay_out(table, &layout, screen->columns - 1); /* minus one cell for the sort mark */
	draw_head(table, order, screen, &layout, row);
	for (size_t i = 0; i < lines && order->top + i < order->count; i++)
		draw_row(table, screen, &layout, row_at(table, order->index[order->top + i]),
		         row + 1 + (int)i);
}
