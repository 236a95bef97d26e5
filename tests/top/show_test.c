/* show_test.c - parsing and formatting in weft top: events, keys, texts, numbers, targets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/base.h>
#include "test.h"
#include "top/top_events.h"
#include "top/format.h"
#include "top/json.h"
#include "top/keyboard.h"
#include "base/terminal_text.h"
#include "top/top.h"

/* --- events ------------------------------------------------------------------- */

static char told[512];

static int
tell(const char *name, const char *data, size_t size, void *arg)
{
	size_t end = strlen(told);

	(void)arg;
	CHECK_EQ(strlen(data), size);
	(void)snprintf(told + end, sizeof(told) - end, "<%s:%s>", name, data);
	return strcmp(data, "stop") == 0 ? WEFT_ESHUTDOWN : 0;
}

static const char stream[] = ": a comment\nevent: loops\ndata: {\"a\":1}\n\n"
			     "data:one\r\ndata: two\r\n\r\n"
			     "event: none\n\n"
			     "retry: 5\rdata\rdata:  x\r\r"
			     "event:a\nid: 7\ndata:: \n\n"
			     "data: not whole";

static const char events_expected[] = "<loops:{\"a\":1}><message:one\ntwo>"
				      "<message:\n x><a:: >";

TEST(events_are_parsed_the_same_wherever_they_are_split)
{
	for (size_t cut = 0; cut < sizeof(stream); cut++) {
		struct events events = { .fn = tell };

		told[0] = '\0';
		CHECK_EQ(events_read(&events, stream, cut), 0);
		CHECK_EQ(events_read(&events, stream + cut,
		                     sizeof(stream) - 1 - cut + (cut == sizeof(stream))),
		         0);
		CHECK_STR(told, events_expected);
		events_free(&events);
	}
}

TEST(events_are_parsed_byte_by_byte)
{
	struct events events = { .fn = tell };

	told[0] = '\0';
	for (size_t i = 0; i < sizeof(stream) - 1; i++)
		CHECK_EQ(events_read(&events, stream + i, 1), 0);
	CHECK_STR(told, events_expected);
	events_free(&events);
}

TEST(event_callback_can_end_the_parsing)
{
	struct events events = { .fn = tell };
	static const char text[] = "data: stop\n\ndata: more\n\n";

	told[0] = '\0';
	CHECK_EQ(events_read(&events, text, sizeof(text) - 1), WEFT_ESHUTDOWN);
	CHECK_STR(told, "<message:stop>");
	events_free(&events);
}

TEST(event_size_is_limited)
{
	struct events events = { .fn = tell };
	static char piece[1 << 16];
	int rc = events_read(&events, "data:", 5);

	memset(piece, 'x', sizeof(piece));
	for (size_t i = 0; i <= JSON_BYTES_MAX / sizeof(piece) && rc == 0; i++)
		rc = events_read(&events, piece, sizeof(piece));
	CHECK_EQ(rc, WEFT_EMSGSIZE);
	events_free(&events);
}

/* --- keys --------------------------------------------------------------------- */

static int pressed[16];
static size_t press_count;

static void
press(int key, void *arg)
{
	(void)arg;
	CHECK(press_count < 16);
	pressed[press_count++] = key;
}

TEST(key_sequences_are_recognized_even_if_split)
{
	static const char bytes[] = "q\033[A\033OB\033[5~\033[6~\033[Z\t\033[H"
				    "\033[99;5z";
	static const int want[] = { 'q',          KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN,
		                    KEY_BACK_TAB, '\t',   KEY_HOME, KEY_OTHER };

	for (size_t cut = 0; cut < sizeof(bytes); cut++) {
		struct keyboard keyboard = { .size = 0 };

		press_count = 0;
		keyboard_read(&keyboard, bytes, cut, press, NULL);
		keyboard_read(&keyboard, bytes + cut, sizeof(bytes) - 1 - cut, press, NULL);
		CHECK_EQ(press_count, sizeof(want) / sizeof(want[0]));
		CHECK_EQ(memcmp(pressed, want, sizeof(want)), 0);
		CHECK(!keyboard_pending(&keyboard));
		if (cut == sizeof(bytes) - 1)
			break;
	}
}

TEST(escape_is_a_key_if_nothing_follows)
{
	struct keyboard keyboard = { .size = 0 };

	press_count = 0;
	keyboard_read(&keyboard, "\033", 1, press, NULL);
	CHECK(keyboard_pending(&keyboard) && press_count == 0);
	keyboard_end(&keyboard, press, NULL);
	CHECK(!keyboard_pending(&keyboard));
	CHECK_EQ(press_count, 1);
	CHECK_EQ(pressed[0], KEY_ESCAPE);
	keyboard_read(&keyboard, "\033q", 2, press, NULL);
	CHECK_EQ(press_count, 3);
	CHECK_EQ(pressed[1], KEY_ESCAPE);
	CHECK_EQ(pressed[2], 'q');
}

TEST(unterminated_sequence_is_one_key)
{
	struct keyboard keyboard = { .size = 0 };

	press_count = 0;
	keyboard_read(&keyboard, "\033[1;1;1;1;1;1;1;1", 17, press, NULL);
	CHECK_EQ(pressed[0], KEY_OTHER);
	CHECK(!keyboard_pending(&keyboard));
}

/* --- texts -------------------------------------------------------------------- */

static const char *
clean(const char *text, bool utf8, int *cells)
{
	static char out[256];
	size_t end = 0;

	*cells = 0;
	while (*text) {
		size_t size;

		*cells += text_next(&text, utf8, out + end, &size);
		end += size;
	}
	out[end] = '\0';
	return out;
}

#define CLEAN(text, utf8, want, want_cells)                  \
	do {                                                 \
		int cells_;                                  \
		CHECK_STR(clean(text, utf8, &cells_), want); \
		CHECK_EQ(cells_, want_cells);                \
	} while (0)

TEST(control_characters_become_question_marks)
{
	CLEAN("plain ~text", true, "plain ~text", 11);
	CLEAN("a\033[2J\007\r\n\tb\x7f", true, "a?[2J????b?", 11);
	CLEAN("\xc2\x9b"
	      "31m",
	      true, "?31m", 4); /* an 8-bit control character */
	CLEAN("\xe2\x80\xae"
	      "x",
	      true, "?x", 2); /* changes the text direction */
	CLEAN("\xe2\x80\x8b\xef\xbb\xbf", true, "??", 2);
}

TEST(invalid_utf8_becomes_question_marks)
{
	CLEAN("\xff\x80", true, "??", 2);
	CLEAN("\xc3", true, "?", 1); /* truncated */
	CLEAN("\xe5\x90", true, "??", 2);
	CLEAN("\xc0\x9b", true, "??", 2);           /* overlong encoding */
	CLEAN("\xed\xa0\x80", true, "???" + 2, 1);  /* half of a surrogate pair */
	CLEAN("\xf4\x90\x80\x80", true, "????", 4); /* beyond the last code point */
}

TEST(characters_have_their_width_in_cells)
{
	CLEAN("na\xc3\xafve", true, "na\xc3\xafve", 5);
	CLEAN("\xe5\x90\x8d", true, "\xe5\x90\x8d", 2);
	CLEAN("\xf0\x9f\x98\x80", true, "\xf0\x9f\x98\x80", 2);
	CLEAN("e\xcc\x81", true, "e\xcc\x81", 1);
	CLEAN("na\xc3\xafve", false, "na?ve", 5);
}

TEST(filter_ignores_case)
{
	CHECK(text_has("Gamma-Ray", "gamma"));
	CHECK(text_has("aab", "ab"));
	CHECK(text_has("x", ""));
	CHECK(!text_has("", "a"));
	CHECK(!text_has("ab", "abc"));
}

/* --- numbers ------------------------------------------------------------------ */

static const char *
number(double value, enum unit unit)
{
	static char out[FORMAT_ROOM];

	format_number(out, value, unit);
	CHECK(unit == UNIT_NUMBER || strlen(out) <= 7);
	return out;
}

TEST(numbers_are_formatted_in_few_cells)
{
	CHECK_STR(number(NAN, UNIT_COUNT), "-");
	CHECK_STR(number(0, UNIT_COUNT), "0");
	CHECK_STR(number(42.5, UNIT_COUNT), "42.5");
	CHECK_STR(number(999, UNIT_COUNT), "999");
	CHECK_STR(number(1000, UNIT_COUNT), "1.00k");
	CHECK_STR(number(12345, UNIT_COUNT), "12.3k");
	CHECK_STR(number(999999, UNIT_COUNT), "1.00M");
	CHECK_STR(number(-12345, UNIT_COUNT), "-12.3k");
	CHECK_STR(number(1023, UNIT_BYTES), "1023");
	CHECK_STR(number(1536, UNIT_BYTES), "1.50K");
	CHECK_STR(number(64 << 20, UNIT_BYTES), "64.0M");
	CHECK_STR(number(12.4, UNIT_PERCENT), "12%");
	CHECK_STR(number(42, UNIT_NUMBER), "42");
	CHECK_STR(number(0x7f0000001000p0, UNIT_NUMBER), "0x7f0000001000");
	(void)number(1e300, UNIT_TIME);
}

TEST(times_are_formatted_with_units)
{
	CHECK_STR(number(0, UNIT_TIME), "0ns");
	CHECK_STR(number(999.4, UNIT_TIME), "999ns");
	CHECK_STR(number(1000, UNIT_TIME), "1.00us");
	CHECK_STR(number(12.34e6, UNIT_TIME), "12.3ms");
	CHECK_STR(number(999.9e6, UNIT_TIME), "1.00s");
	CHECK_STR(number(99.9e9, UNIT_TIME), "99.9s");
	CHECK_STR(number(723e9, UNIT_TIME), "12m03s");
	CHECK_STR(number(11100e9, UNIT_TIME), "3h05m");
	CHECK_STR(number(86400e9 * 2.5, UNIT_TIME), "2d12h");
	CHECK_STR(number(86400e9 * 400, UNIT_TIME), "400d");
}

/* --- targets ------------------------------------------------------------------ */

static const char *
url(const char *word)
{
	static char out[TARGET_MAX];

	return target_url(word, out) == 0 ? out : "refused";
}

TEST(target_url_accepts_all_address_forms)
{
	CHECK_STR(url("http://127.0.0.1:7070"), "http://127.0.0.1:7070");
	CHECK_STR(url("https://x.example/admin/"), "https://x.example/admin");
	CHECK_STR(url("tcp://127.0.0.1:7070"), "http://127.0.0.1:7070");
	CHECK_STR(url("localhost:80"), "http://localhost:80");
	CHECK_STR(url("7070"), "http://127.0.0.1:7070");
	CHECK_STR(url("unix:/run/a b.sock"), "http+unix://%2Frun%2Fa%20b.sock");
	CHECK_STR(url("/run/x?#%"), "http+unix://%2Frun%2Fx%3F%23%25");
	CHECK_STR(url("http+unix://%2Fx"), "http+unix://%2Fx");
	CHECK_STR(url("http://x/?token=1"), "refused");
	CHECK_STR(url("nothing"), "refused");
	CHECK_STR(url(""), "refused");
}

TEST(relative_path_is_resolved_in_the_current_folder)
{
	char folder[TARGET_MAX], want[64];
	const char *got = url("./x.sock");

	CHECK(getcwd(folder, sizeof(folder)));
	(void)snprintf(want, sizeof(want), "http+unix://%%2F%.5s", folder + 1);
	CHECK_EQ(strncmp(got, want, 15), 0);
	CHECK_STR(got + strlen(got) - 12, "%2F.%2Fx.sock" + 1);
}

TEST(path_that_is_too_long_is_refused)
{
	char path[TARGET_MAX + 8];

	memset(path, '/', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	CHECK_STR(url(path), "refused");
	path[TARGET_MAX / 2] = '\0'; /* too long only after escaping */
	CHECK_STR(url(path), "refused");
}
