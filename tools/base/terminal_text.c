/* terminal_text.c - cleaning untrusted text for a terminal. */
#include <stdlib.h>
#include <string.h>
#include "terminal_text.h"

struct range {
	uint32_t first, last;
};

/* Not printed: control characters, direction marks, joiners, invisible characters, and private
 * use.  Sorted. */
static const struct range refused[] = {
	{ 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad },    { 0x034f, 0x034f },
	{ 0x061c, 0x061c }, { 0x115f, 0x1160 }, { 0x180b, 0x180f },    { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 },    { 0xd800, 0xf8ff },
	{ 0xfdd0, 0xfdef }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },    { 0xffa0, 0xffa0 },
	{ 0xfff0, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0x10ffff },
};

/* Combining marks, which modify the preceding letter: the blocks that contain nothing else. */
static const struct range marks[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x064b, 0x065f },
	{ 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff }, { 0xfe20, 0xfe2f },
};

/* Characters that are two cells wide, by block. */
static const struct range wide[] = {
	{ 0x1100, 0x115e },   { 0x231a, 0x231b },   { 0x2329, 0x232a },   { 0x23e9, 0x23ec },
	{ 0x25fd, 0x25fe },   { 0x2614, 0x2615 },   { 0x2648, 0x2653 },   { 0x26a1, 0x26a1 },
	{ 0x2705, 0x2705 },   { 0x2728, 0x2728 },   { 0x274c, 0x274e },   { 0x2753, 0x2757 },
	{ 0x2e80, 0x303e },   { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },
	{ 0xa000, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
	{ 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
};

#define COUNT(ranges) (sizeof(ranges) / sizeof((ranges)[0]))

static bool
is_in(uint32_t point, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count && point >= ranges[i].first; i++)
		if (point <= ranges[i].last)
			return true;
	return false;
}

bool
text_locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *locale = getenv(names[i]);

		if (locale && *locale)
			return text_has(locale, "utf-8") || text_has(locale, "utf8");
	}
	return false;
}

/* Returns the length of the UTF-8 character at `at` and stores its code point; 0 if it is not
 * valid. */
static size_t
decode(const unsigned char *at, uint32_t *point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t size = at[0] < 0x80             ? 1
	              : (at[0] & 0xe0) == 0xc0 ? 2
	              : (at[0] & 0xf0) == 0xe0 ? 3
	              : (at[0] & 0xf8) == 0xf0 ? 4
	                                       : 0;

	if (size < 2) {
		*point = at[0];
		return size;
	}
	*point = at[0] & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		if ((at[i] & 0xc0) != 0x80) /* also stops at the final NUL */
			return 0;
		*point = *point << 6 | (at[i] & 0x3f);
	}
	return *point >= least[size] && *point <= 0x10ffff ? size : 0;
}

int
text_next(const char **text, bool utf8, char out[4], size_t *size)
{
	const unsigned char *at = (const unsigned char *)*text;
	uint32_t point;
	size_t bytes = decode(at, &point);

	*text += bytes ? bytes : 1;
	if (bytes == 0 || (bytes > 1 && !utf8) || is_in(point, refused, COUNT(refused))) {
		out[0] = '?';
		*size = 1;
		return 1;
	}
	memcpy(out, at, bytes);
	*size = bytes;
	if (bytes == 1)
		return 1;
	if (is_in(point, marks, COUNT(marks)))
		return 0;
	return is_in(point, wide, COUNT(wide)) ? 2 : 1;
}

static char
small(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte + 'a' - 'A') : byte;
}

bool
text_has(const char *text, const char *part)
{
	for (;; text++) {
		size_t i = 0;

		while (part[i] && small(text[i]) == part[i])
			i++;
		if (!part[i])
			return true;
		if (!*text)
			return false;
	}
}
