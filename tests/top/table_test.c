/* table_test.c - the tables and the screen of weft top: order, filter, layout, output. */
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test.h"
#include "top/model.h"
#include "top/table.h"

struct row {
	const char *name, *kind;
	double number;
};

static const struct row rows[] = {
	{ "beta", "one", 2 },
	{ "alpha", "two", NAN },
	{ "Gamma", "one", 7 },
	{ "delta", "three", 2 },
};

static const struct column columns[] = {
	{ .title = "NAME",
	  .offset = offsetof(struct row, name),
	  .is_text = 1,
	  .width = 6,
	  .share = 1,
	  .rises = 1 },
	{ .title = "KIND",
	  .offset = offsetof(struct row, kind),
	  .is_text = 1,
	  .width = 5,
	  .rank = 2,
	  .rises = 1 },
	{ .title = "COUNT",
	  .offset = offsetof(struct row, number),
	  .unit = UNIT_COUNT,
	  .width = 6,
	  .rank = 1 },
};

static const struct table table = { "rows", columns, 3, rows, sizeof(rows[0]), 4, NULL };

/* The first letters of the names, in order. */
static const char *
order_of(size_t column, bool reverse, const char *filter)
{
	static char out[8];
	struct table_order order = { .column = column, .reverse = reverse };

	CHECK_EQ(table_sort(&table, &order, filter), 0);
	for (size_t i = 0; i < order.count; i++)
		out[i] = *rows[order.index[i]].name;
	out[order.count] = '\0';
	table_order_free(&order);
	return out;
}

TEST(rows_are_sorted_by_a_column_in_both_directions)
{
	CHECK_STR(order_of(0, false, ""), "Gabd"); /* in byte order */
	CHECK_STR(order_of(0, true, ""), "dbaG");
	CHECK_STR(order_of(2, false, ""), "Gbda"); /* largest first */
	CHECK_STR(order_of(2, true, ""), "bdGa");  /* unknown values are last */
	CHECK_STR(order_of(1, false, ""), "bGda"); /* equal: in the original order */
}

TEST(filter_keeps_rows_that_contain_it_in_a_text_column)
{
	CHECK_STR(order_of(0, false, "one"), "Gb");
	CHECK_STR(order_of(0, false, "gam"), "G");
	CHECK_STR(order_of(0, false, "x"), "");
}

/* The screen as text, one line per row. */
static const char *
print(struct screen *screen, int lines)
{
	static char out[1024];
	char path[] = "/tmp/weft-top-XXXXXX";
	int fd = mkstemp(path);
	ssize_t n;

	CHECK(fd >= 0);
	(void)unlink(path);
	CHECK_EQ(screen_print(screen, lines, fd), 0);
	n = pread(fd, out, sizeof(out) - 1, 0);
	CHECK(n >= 0);
	out[n] = '\0';
	(void)close(fd);
	return out;
}

static const char *
draw(int width, int height, size_t *top)
{
	static char out[1024];
	struct screen screen = { .plain = true };
	struct table_order order = { .column = 2, .top = *top };

	CHECK_EQ(screen_resize(&screen, height, width), 0);
	CHECK_EQ(table_sort(&table, &order, ""), 0);
	screen_begin(&screen);
	table_draw(&table, &order, &screen, 0, height);
	(void)snprintf(out, sizeof(out), "%s", print(&screen, height));
	*top = order.top;
	table_order_free(&order);
	screen_free(&screen);
	return out;
}

TEST(columns_share_free_width_and_are_omitted_without_room)
{
	size_t top = 0;

	CHECK_STR(draw(24, 3, &top), "NAME       KIND   COUNT*\n"
	                             "Gamma      one        7\n"
	                             "beta       one        2\n");
	CHECK_STR(draw(15, 2, &top), "NAME     COUNT*\n"
	                             "Gamma        7\n");
	CHECK_STR(draw(8, 2, &top), "NAME\nGamma\n");
	CHECK_STR(draw(3, 2, &top), "NAM\nGam\n");
}

TEST(scrolling_stops_when_the_last_row_is_in_the_last_line)
{
	size_t top = 1000;

	CHECK_STR(draw(8, 3, &top), "NAME\ndelta\nalpha\n");
	CHECK_EQ(top, 2);
	CHECK_STR(draw(8, 6, &top), "NAME\nGamma\nbeta\ndelta\nalpha\n\n");
	CHECK_EQ(top, 0);
}

/* --- the screen ----------------------------------------------------------------- */

/* Draw a picture.  `out` gets what is written to the terminal. */
static size_t
show(struct screen *screen, const char *text, char *out, size_t room)
{
	struct field field = { .row = 1, .column = 2, .width = 6 };
	char path[] = "/tmp/weft-top-XXXXXX";
	int fd = mkstemp(path);
	ssize_t n;

	CHECK(fd >= 0);
	(void)unlink(path);
	screen_begin(screen);
	(void)screen_put(screen, field, text);
	field.column = 9;
	field.width = 3;
	(void)screen_put(screen, field, "end");
	CHECK_EQ(screen_show(screen, fd), 0);
	n = pread(fd, out, room - 1, 0);
	CHECK(n >= 0);
	out[n] = '\0';
	(void)close(fd);
	return (size_t)n;
}

TEST(only_changed_lines_are_written)
{
	struct screen screen = { .utf8 = true };
	char out[512];

	CHECK_EQ(screen_resize(&screen, 3, 12), 0);
	(void)show(&screen, "abc", out, sizeof(out));
	CHECK_STR(out, "\033[0m\033[2J\033[1;1H\033[2K\033[2;1H\033[2K  abc    "
	               "end\033[3;1H\033[2K");
	CHECK_EQ(show(&screen, "abc", out, sizeof(out)), 0);
	(void)show(&screen, "abcdefghi", out, sizeof(out));
	CHECK_STR(out, "\033[2;1H\033[2K  abcdef end");
	screen_free(&screen);
}

TEST(cursor_is_positioned_after_text_of_uncertain_width)
{
	struct screen screen = { .utf8 = true };
	char out[512];

	CHECK_EQ(screen_resize(&screen, 2, 12), 0);
	(void)show(&screen, "", out, sizeof(out));
	(void)show(&screen, "\xe5\x90\x8d", out, sizeof(out));
	CHECK_STR(out, "\033[2;1H\033[2K  \xe5\x90\x8d     \033[10Gend");
	(void)show(&screen, "12345\xe5\x90\x8d", out, sizeof(out)); /* no half character */
	CHECK_STR(out, "\033[2;1H\033[2K  12345  end");
	screen_free(&screen);
}

/* Combining marks have no width, so that any number of them fits in one cell. */
TEST(many_combining_marks_stay_in_their_line)
{
	struct screen screen = { .utf8 = true };
	static char flood[20001], out[65536];

	for (size_t i = 0; i + 1 < sizeof(flood); i += 2)
		memcpy(flood + i, "\xcc\x81", 2);
	CHECK_EQ(screen_resize(&screen, 2, 12), 0);
	CHECK(show(&screen, flood, out, sizeof(out)) < 4096);
	screen_free(&screen);
}

TEST(text_outside_of_the_screen_is_not_drawn)
{
	struct screen screen = { .plain = true };
	struct field field = { .row = 2, .column = 0, .width = 5 };

	CHECK_EQ(screen_resize(&screen, 2, 4), 0);
	screen_begin(&screen);
	CHECK_EQ(screen_put(&screen, field, "x"), 0);
	field.row = -1;
	CHECK_EQ(screen_put(&screen, field, "x"), 0);
	field.row = 0;
	field.column = 4;
	CHECK_EQ(screen_put(&screen, field, "x"), 0);
	field.column = 1;
	CHECK_EQ(screen_put(&screen, field, "abcdef"), 3);
	CHECK_STR(print(&screen, 2), " abc\n\n");
	screen_free(&screen);
}

/* --- the model ------------------------------------------------------------------ */

static int
read_loops(struct model *model, int pid, int now_s, int busy_ms)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
	               "{\"title\":\"t\",\"pid\":%d,\"now_ns\":%d000000000,"
	               "\"loops\":[{\"id\":1,\"name\":\"a\",\"syscalls\":%d,"
	               "\"phase_ns\":{\"timers\":%d000000,\"wait\":99}}],"
	               "\"values\":[{\"name\":\"x_total\",\"type\":\"counter\",\"value\":%d},"
	               "{\"name\":\"x\",\"value\":5},"
	               "{\"name\":\"h\",\"type\":\"histogram\",\"value\":%d}],"
	               "\"process\":{\"cpu_ns\":%d000000}}",
	               pid, now_s, busy_ms, busy_ms, busy_ms, 2 * busy_ms, busy_ms);
	return model_read_loops(model, text, strlen(text));
}

TEST(rates_are_computed_between_two_readings)
{
	struct model model = { .readings = 0 };

	CHECK_EQ(read_loops(&model, 1, 10, 1000), 0);
	CHECK(isnan(model.loops[0].busy) && isnan(model.cpu));
	CHECK_EQ(read_loops(&model, 1, 12, 1500), 0);
	CHECK_EQ(model.loops[0].busy, 25);
	CHECK_EQ(model.loops[0].syscalls, 250);
	CHECK_EQ(model.values[0].rate, 250);
	CHECK(isnan(model.values[1].rate));
	CHECK_EQ(model.values[2].rate, 500);
	CHECK_EQ(model.cpu, 25);
	CHECK_EQ(read_loops(&model, 1, 12, 1500), 0); /* no time has passed */
	CHECK_EQ(model.loops[0].busy, 25);
	CHECK_EQ(read_loops(&model, 1, 14, 1000), 0); /* a counter never decreases */
	CHECK(isnan(model.loops[0].busy) && isnan(model.values[0].rate));
	model_free(&model);
}

TEST(rates_start_over_for_another_process)
{
	struct model model = { .readings = 0 };

	CHECK_EQ(read_loops(&model, 1, 10, 1000), 0);
	CHECK_EQ(read_loops(&model, 2, 12, 1500), 0);
	CHECK(isnan(model.loops[0].busy) && isnan(model.values[0].rate));
	CHECK_EQ(model.readings, 1);
	model_free(&model);
}

TEST(invalid_reply_is_refused_and_changes_nothing)
{
	struct model model = { .readings = 0 };

	CHECK_EQ(read_loops(&model, 1, 10, 1000), 0);
	CHECK_EQ(model_read_loops(&model, "[]", 2), WEFT_EPROTO);
	CHECK_EQ(model_read_loops(&model, "{", 1), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "loops: a member name is missing at byte 1");
	CHECK_EQ(model_read_threadlets(&model, "{}", 2), WEFT_EPROTO);
	CHECK_EQ(model.readings, 1);
	CHECK_STR(model.loops[0].name, "a");
	model_free(&model);
}

/* Wraps calloc() of the linked code: the call with this number, from now on, fails. */
static int failing_calloc;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *
__wrap_calloc(size_t count, size_t size)
{
	return failing_calloc > 0 && --failing_calloc == 0 ? NULL : __real_calloc(count, size);
}

TEST(lack_of_memory_is_reported_as_such_and_changes_nothing)
{
	struct model model = { .readings = 0 };

	CHECK_EQ(read_loops(&model, 1, 10, 1000), 0);
	for (int i = 1; i <= 2; i++) {
		failing_calloc = i;
		CHECK_EQ(read_loops(&model, 1, 11, 1100), WEFT_ENOMEM);
		CHECK_STR(weft_detail(), "out of memory");
	}
	failing_calloc = 1;
	CHECK_EQ(model_read_threadlets(&model, "{\"threadlets\":[]}", 17), WEFT_ENOMEM);
	CHECK_STR(weft_detail(), "out of memory");
	CHECK_EQ(model.readings, 1);
	CHECK(!model.has_threadlets);
	model_free(&model);
}

TEST(missing_numbers_are_unknown)
{
	struct model model = { .readings = 0 };
	static const char text[] = "{\"loops\":[{},7],\"values\":[null]}";
	static const char lets[] =
		"{\"threadlets\":[{\"state\":\"waiting\",\"waited_ns\":5},"
		"{\"state\":\"running\"},{\"state\":\"waiting\",\"waited_ns\":9},"
		"{\"state\":\"ready\"}]}";

	CHECK_EQ(model_read_loops(&model, text, sizeof(text) - 1), 0);
	CHECK_EQ(model.loop_count, 2);
	CHECK(isnan(model.loops[0].lag_p99) && isnan(model.loops[1].inbox));
	CHECK_STR(model.values[0].name, "");
	CHECK_EQ(model_read_threadlets(&model, lets, sizeof(lets) - 1), 0);
	CHECK_EQ(model.threadlet_total, 4);
	CHECK(model.threadlets[1].order < model.threadlets[3].order
	      && model.threadlets[3].order < model.threadlets[2].order
	      && model.threadlets[2].order < model.threadlets[0].order);
	model_free(&model);
}
