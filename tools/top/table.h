/* table.h - rows under a head: filtered, sorted, and as much of them as there is room for.
 *
 * A table knows its rows only by their columns, each of which is a text or a number at an offset.
 */
#ifndef WEFT_TOP_TABLE_H
#define WEFT_TOP_TABLE_H

#include <stdint.h>
#include "format.h"
#include "screen.h"

struct column {
	const char *title;
	uint16_t offset;  /* in a row */
	uint16_t order;   /* of a number to sort by, if it is another; else 0 */
	uint8_t is_text;
	uint8_t unit;     /* of a number */
	uint8_t width;    /* cells, at least; a text takes what is left over, by its share */
	uint8_t share;
	uint8_t rank;     /* the highest goes first when there is no room; 0 never */
	uint8_t rises;    /* sorted: the least first, unless it is reversed */
};

struct table {
	const char *name;
	const struct column *columns;
	size_t column_count;
	const void *rows;
	size_t row_size, row_count;
	enum style (*style)(const void *row, const struct column *column); /* or NULL */
};

struct table_order {
	size_t column;   /* to sort by */
	bool reverse;
	size_t top;      /* the first row that is shown, of those that are there */
	uint32_t *index; /* rows in their order, once sorted */
	size_t count, room;
};

/* Choose and sort the rows that have `filter`, in small letters, in one of their texts.
 * Returns 0, WEFT_ENOMEM: then there are none. */
int table_sort(const struct table *table, struct table_order *order, const char *filter);

/* Draw the head in line `row`, and rows below it, `height` lines in all.  Moves `top` so that
 * no line stays empty that need not. */
void table_draw(const struct table *table, struct table_order *order, struct screen *screen,
                int row, int height);

void table_order_free(struct table_order *order);

#endif
