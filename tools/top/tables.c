/* tables.c - the columns of each table, and which values are highlighted. */
#include <string.h>
#include "top.h"

#define NUMBER(type, member, title_, unit_, width_, rank_, ...)                          \
	{                                                                                \
		.title = title_, .offset = offsetof(struct type, member), .unit = unit_, \
		.width = width_, .rank = rank_, __VA_ARGS__                              \
	}
#define TEXT(type, member, title_, width_, share_, rank_, ...)                           \
	{                                                                                \
		.title = title_, .offset = offsetof(struct type, member), .is_text = 1,  \
		.width = width_, .share = share_, .rank = rank_, .rises = 1, __VA_ARGS__ \
	}

static const struct column loop_columns[] = {
	NUMBER(loop_row, id, "#", UNIT_NUMBER, 3, 9, .rises = 1),
	TEXT(loop_row, name, "LOOP", 9, 1, 0),
	TEXT(loop_row, state, "STATE", 8, 0, 6),
	NUMBER(loop_row, busy, "BUSY", UNIT_PERCENT, 5, 0),
	NUMBER(loop_row, turns, "TURNS/S", UNIT_COUNT, 7, 2),
	NUMBER(loop_row, callbacks, "CALLS/S", UNIT_COUNT, 7, 3),
	NUMBER(loop_row, turn_p50, "TURN50", UNIT_TIME, 6, 7),
	NUMBER(loop_row, turn_p99, "TURN99", UNIT_TIME, 6, 4),
	NUMBER(loop_row, lag_p50, "LAG50", UNIT_TIME, 6, 8),
	NUMBER(loop_row, lag_p99, "LAG99", UNIT_TIME, 6, 0),
	NUMBER(loop_row, inbox, "INBOX", UNIT_COUNT, 5, 5),
	NUMBER(loop_row, inbox_max, "MAX", UNIT_COUNT, 5, 10),
	NUMBER(loop_row, threadlets, "THREADLETS", UNIT_COUNT, 10, 1),
	NUMBER(loop_row, syscalls, "SYSCALL/S", UNIT_COUNT, 9, 11),
	TEXT(loop_row, backend, "BACKEND", 7, 0, 12),
	TEXT(loop_row, reason, "WHY", 9, 2, 13),
};

static const struct column threadlet_columns[] = {
	TEXT(threadlet_row, state, "STATE", 7, 0, 0,
	     .order = offsetof(struct threadlet_row, order)),
	NUMBER(threadlet_row, waited, "WAITED", UNIT_TIME, 6, 0),
	TEXT(threadlet_row, waits_for, "FOR", 9, 0, 2),
	NUMBER(threadlet_row, waits_on, "ON", UNIT_NUMBER, 14, 9),
	NUMBER(threadlet_row, left, "LEFT", UNIT_TIME, 6, 7),
	TEXT(threadlet_row, name, "NAME", 13, 1, 0),
	NUMBER(threadlet_row, used, "STACK", UNIT_BYTES, 5, 4),
	NUMBER(threadlet_row, high, "HIGH", UNIT_BYTES, 5, 5),
	NUMBER(threadlet_row, stack, "OF", UNIT_BYTES, 5, 8),
	NUMBER(threadlet_row, loop, "LOOP", UNIT_NUMBER, 4, 3),
	NUMBER(threadlet_row, id, "ID", UNIT_NUMBER, 9, 10),
	TEXT(threadlet_row, spawned_at, "SPAWNED AT", 24, 3, 1),
	TEXT(threadlet_row, function, "FUNCTION", 24, 2, 6),
};

static const struct column value_columns[] = {
	TEXT(value_row, name, "VALUE", 16, 2, 0),
	NUMBER(value_row, value, "NOW", UNIT_COUNT, 8, 0),
	NUMBER(value_row, rate, "PER S", UNIT_COUNT, 8, 1),
	TEXT(value_row, help, "HELP", 12, 3, 2),
};

static enum style
above(double number, double warn, double bad)
{
	return number >= bad ? STYLE_BAD : number >= warn ? STYLE_WARN : STYLE_PLAIN; /* NAN, too */
}

static enum style
loop_style(const void *data, const struct column *column)
{
	const struct loop_row *row = data;

	switch (column->offset) {
	case offsetof(struct loop_row, busy):
		return above(row->busy, 70, 95);
	case offsetof(struct loop_row, lag_p99):
		return above(row->lag_p99, 10e6, 100e6);
	case offsetof(struct loop_row, turn_p99):
		return above(row->turn_p99, 10e6, 100e6);
	default:
		return STYLE_PLAIN;
	}
}

static enum style
threadlet_style(const void *data, const struct column *column)
{
	const struct threadlet_row *row = data;

	switch (column->offset) {
	case offsetof(struct threadlet_row, state):
		return strcmp(row->state, "running") == 0 ? STYLE_GOOD
		       : strcmp(row->state, "ready") == 0 ? STYLE_WARN
		                                          : STYLE_PLAIN;
	case offsetof(struct threadlet_row, high):
		return above(row->high / row->stack, 0.75, 0.9);
	default:
		return STYLE_PLAIN;
	}
}

#define COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))

struct table
tables_get(const struct model *model, enum tab tab)
{
	if (tab == TAB_LOOPS)
		return (struct table){ "loops",      loop_columns,          COUNT(loop_columns),
			               model->loops, sizeof(*model->loops), model->loop_count,
			               loop_style };
	if (tab == TAB_THREADLETS)
		return (struct table){
			"threadlets",      threadlet_columns,          COUNT(threadlet_columns),
			model->threadlets, sizeof(*model->threadlets), model->threadlet_count,
			threadlet_style
		};
	return (struct table){ "values",      value_columns,          COUNT(value_columns),
		               model->values, sizeof(*model->values), model->value_count,
		               NULL };
}
