/* table.h - a table with a header line: filters and sorts its rows, and draws those that fit.
 *
 * A table knows its rows only through its columns; each column is a string or a number at an
 * offset.
 */
#ifndef WEFT_TOP_TABLE_H
#define WEFT_TOP_TABLE_H

#include <stdint.h>
#include "format.h"
#include "screen.h"

struct column {
	const char *title;
	uint16_t offset;  /* in a row */
	uint16_t order;   /* offset of a number to sort by instead; 0: none */
	uint8_t is_text;
	uint8_t unit;     /* enum unit, for a number */
	uint8_t width;    /* minimum, in cells; text columns share the remaining space by `share` */
	uint8_t share;
	uint8_t rank;     /* without room the highest rank is dropped first; rank 0 never */
	uint8_t rises;    /* sort in ascending order, unless reversed */
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
	size_t top;      /* the first row shown */
	uint32_t *index; /* row numbers in sorted order */
	size_t count, room;
};

/* Select the rows that contain `filter` (lower case) in one of their texts, and sort them.
 * Returns 0, or WEFT_ENOMEM; then no rows are selected. */
int table_sort(const struct table *table, struct table_order *order, const char *filter);

/* Draw the header in line `row` and rows below it, `height` lines in all.  Lowers `top` if lines
 * would be empty otherwise. */
void table_draw(const struct table *table, struct table_order *order, struct screen *screen,
                int row, int height);

void table_order_free(struct table_order *order);

#endif
