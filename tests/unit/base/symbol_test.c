/* symbol_test.c - code addresses are shown as function, file and line. */
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/debug.h>
#include <weft/threadlet.h>
#include "base/image.h"
#include "base/os.h"
#include "test.h"

#define DAMAGES 3000

/* One function for each version of DWARF, from symbol_dwarf.c. */
const void *dwarf2_place(void);
const void *dwarf3_place(void);
const void *dwarf4_place(void);
const void *dwarf5_place(void);

static __attribute__((noinline)) const void *
return_place(void)
{
	const void *place = __builtin_return_address(0);

	__asm__ volatile("" : "+r"(place));
	return place;
}

static __attribute__((noinline)) const void *
static_caller(int *line)
{
	const void *place = NULL;

	/* clang-format off */
	*line = __LINE__; place = return_place();
	/* clang-format on */
	__asm__ volatile("" : "+r"(place));
	return place;
}

static const char *
symbol(const void *address)
{
	static char buf[200];

	size_t size = weft_symbol(address, buf, sizeof(buf));

	CHECK_EQ(size, strlen(buf));
	return buf;
}

static void
check_begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)) != 0)
		CHECK_STR(text, with);
}

TEST(return_address_in_a_static_function_has_its_name_and_the_line_of_the_call)
{
	int line;
	const void *place = static_caller(&line);
	char end[64];
	const char *text = symbol(place);

	check_begins(text, "static_caller+0x");
	(void)snprintf(end, sizeof(end), " (symbol_test.c:%d)", line);
	CHECK_STR(strchr(text, ' '), end);
}

TEST(start_of_a_function_has_its_name_without_an_offset)
{
	const char *text = symbol((const void *)(uintptr_t)static_caller);

	check_begins(text, "static_caller (symbol_test.c:");
}

TEST(function_of_the_library_has_its_own_name_and_line)
{
	check_begins(symbol((const void *)(uintptr_t)weft_symbol), "weft_symbol (dump.c:");
}

TEST(lines_are_read_from_every_version_of_dwarf)
{
	const void *places[] = { dwarf2_place(), dwarf3_place(), dwarf4_place(), dwarf5_place() };

	for (int i = 0; i < 4; i++) {
		char want[40];
		const char *text = symbol(places[i]);

		(void)snprintf(want, sizeof(want), "dwarf%d_place+0x", i + 2);
		check_begins(text, want);
		CHECK_STR(strchr(text, ' '), " (symbol_dwarf.c:20)");
	}
}

TEST(function_of_a_library_without_lines_has_the_name_of_the_library)
{
	const char *text = symbol((const char *)(uintptr_t)lfind + 4);

	check_begins(text, "lfind+0x4 (libc.so");
}

TEST(address_that_is_not_code_stays_a_number)
{
	CHECK_STR(symbol((const void *)(uintptr_t)16), "0x10");
	CHECK_STR(symbol(NULL), "0x0");
}

TEST(the_lookup_for_signal_handlers_finds_the_same_symbol)
{
	int line;
	const void *place = static_caller(&line);
	char buf[200];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));

	weft__os_symbols_prepare();
	weft__os_add_symbol_in_handler(&text, place);
	CHECK_STR(buf, symbol(place));
}

/* --- files that are damaged --------------------------------------------- */

static struct weft__bytes
read_program(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct weft__bytes file = { 0 };
	struct stat st;
	uint8_t *at;

	CHECK(fd >= 0);
	CHECK_EQ(fstat(fd, &st), 0);
	at = malloc((size_t)st.st_size);
	CHECK(at != NULL);
	while (file.size < (size_t)st.st_size) {
		ssize_t n = read(fd, at + file.size, (size_t)st.st_size - file.size);

		CHECK(n > 0);
		file.size += (size_t)n;
	}
	file.at = at;
	CHECK_EQ(close(fd), 0);
	return file;
}

/* Everything that is found must be within the file; the sanitizers check the reads. */
static void
look_up_line(struct weft__bytes file, uint64_t address)
{
	struct weft__image image;
	struct weft__function function;
	struct weft__lines_span span;
	struct weft__line line;

	if (!weft__image_open(&image, file))
		return;
	if (weft__image_function(&image, address, &function))
		CHECK(strlen(function.name) < file.size);
	if (weft__lines_spans(&image, &span, 1) > 0
	    && weft__lines_find_in(&image, span.at, address, &line))
		CHECK(strlen(line.file) < file.size);
}

static uint64_t
draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Damage the first line program and the section table, where damage has most effect. */
static void
damage(const struct weft__image *image, struct weft__bytes file, uint64_t *state)
{
	uint8_t *at = (uint8_t *)(uintptr_t)file.at;
	size_t lines = (size_t)(image->lines.at - file.at);
	size_t head = image->lines.size < 2000 ? image->lines.size : 2000;

	for (int i = 0; i < 3; i++)
		at[lines + draw(state) % head] = (uint8_t)draw(state);
	if (draw(state) % 4 == 0)
		at[file.size - 1 - draw(state) % 2000] = (uint8_t)draw(state);
}

TEST(damaged_files_are_read_within_their_bounds)
{
	struct weft__bytes whole = read_program(), part = whole;
	uint8_t *copy = malloc(whole.size);
	struct weft__image image;
	struct weft__lines_span span;
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	CHECK(copy != NULL);
	CHECK(weft__image_open(&image, whole));
	CHECK(weft__lines_spans(&image, &span, 1) > 0);
	for (int i = 0; i < DAMAGES; i++) {
		memcpy(copy, whole.at, whole.size);
		part.at = copy;
		damage(&image, (struct weft__bytes){ copy, whole.size }, &state);
		look_up_line(part, span.low + draw(&state) % 4096);
	}
	free(copy);
	free((void *)(uintptr_t)whole.at);
}

TEST(truncated_files_are_read_within_their_bounds)
{
	struct weft__bytes whole = read_program();
	uint64_t state = UINT64_C(0x2545f4914f6cdd1d);

	for (int i = 0; i < 200; i++) {
		size_t size = draw(&state) % whole.size;
		uint8_t *copy = malloc(size ? size : 1);

		CHECK(copy != NULL);
		memcpy(copy, whole.at, size);
		look_up_line((struct weft__bytes){ copy, size }, 0x2000);
		free(copy);
	}
	free((void *)(uintptr_t)whole.at);
}
