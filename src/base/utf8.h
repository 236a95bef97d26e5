/* utf8.h - the characters of UTF-8, and their form in JSON strings.
 *
 * Inline functions only: protocols include this header, too, although they are not linked with
 * private functions of src/.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stddef.h>

/* Length in bytes of the UTF-8 character at the start of `text`, which ends with a NUL; 0 if the
 * bytes are not valid UTF-8. */
static inline size_t
weft__utf8_size(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t size = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;

	if (*at > 0xf4)
		return 0;
	for (size_t i = 1; i < size; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f)
	    || (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return size;
}

/* Write the character at *text to `out` as a JSON string needs it, and advance *text past it.
 * Bytes that are not UTF-8 become U+FFFD.  Returns the size. */
static inline size_t
weft__json_character(const char **text, char out[6])
{
	static const char hex[] = "0123456789abcdef";
	const char *at = *text;
	unsigned char first = (unsigned char)*at;
	size_t size = weft__utf8_size(at);

	*text += size > 0 ? size : 1;
	if (first < ' ' || first == 0x7f) {
		__builtin_memcpy(out, "\\u00", 4);
		out[4] = hex[first >> 4];
		out[5] = hex[first & 15];
		return 6;
	}
	if (first == '"' || first == '\\') {
		out[0] = '\\';
		out[1] = (char)first;
		return 2;
	}
	__builtin_memcpy(out, size > 0 ? at : "\xef\xbf\xbd", size > 0 ? size : 3);
	return size > 0 ? size : 3;
}

#endif
