/* utf8.c - conversion of strings to and from UTF-8, as in the WHATWG Encoding standard.
 *
 * JavaScript strings may contain lone surrogates; in UTF-8 they become U+FFFD.  Invalid bytes
 * also become U+FFFD, one for each maximal incomplete prefix of a character.
 */
#include "engine.h"

/* --- to bytes -------------------------------------------------------------------------- */

void
weft__js_repair(char *text, size_t size)
{
	unsigned char *at = (unsigned char *)text, *end = at + size;

	while (end - at >= 3 && (at = memchr(at, 0xed, (size_t)(end - at) - 2))) {
		if (at[1] >= 0xa0)
			memcpy(at, "\xef\xbf\xbd", 3);
		at += 3;
	}
}

JSValue
weft__js_utf8_encode(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED,
                     JSValueConst *args)
{
	size_t size;
	const char *text = JS_ToCStringLen(ctx, &size, args[0]);
	JSValue array;

	if (!text)
		return JS_EXCEPTION;
	weft__js_repair((char *)(uintptr_t)text, size);
	array = JS_NewUint8ArrayCopy(ctx, (const uint8_t *)text, size);
	JS_FreeCString(ctx, text);
	return array;
}

bool
weft__js_bytes(JSContext *ctx, JSValueConst value, weft_span *out)
{
	out->data = JS_GetUint8Array(ctx, &out->size, value);
	return out->data != NULL;
}

static size_t
size_at(const unsigned char *at)
{
	return *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
}

/* Encodes only whole characters.  Returns [UTF-16 units read, bytes written]. */
JSValue
weft__js_utf8_encode_into(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED,
                          JSValueConst *args)
{
	size_t size, read = 0, written = 0;
	const char *text = JS_ToCStringLen(ctx, &size, args[0]);
	weft_span room;
	JSValue sizes[2];

	if (!text)
		return JS_EXCEPTION;
	if (!weft__js_bytes(ctx, args[1], &room)) {
		JS_FreeCString(ctx, text);
		return JS_EXCEPTION;
	}
	weft__js_repair((char *)(uintptr_t)text, size);
	while (written < size) {
		size_t next = size_at((const unsigned char *)text + written);

		if (written + next > room.size)
			break;
		written += next;
		read += next == 4 ? 2 : 1;
	}
	if (written > 0)
		memcpy((void *)(uintptr_t)room.data, text, written);
	JS_FreeCString(ctx, text);
	sizes[0] = JS_NewInt64(ctx, (int64_t)read);
	sizes[1] = JS_NewInt64(ctx, (int64_t)written);
	return JS_NewArrayFrom(ctx, 2, sizes);
}

/* --- from bytes ------------------------------------------------------------------------- */

/* The number of continuation bytes after `lead`, and the range of the first; 0 if `lead` is
 * invalid. */
static int
follow(unsigned char lead, unsigned char *low, unsigned char *high)
{
	*low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 1;
	if (lead >= 0xe0 && lead <= 0xef)
		return 2;
	return lead >= 0xf0 && lead <= 0xf4 ? 3 : 0;
}

/* The size of the character at `at`.  If `good` is false, the size of the invalid bytes that one
 * U+FFFD replaces. */
static size_t
next_character(const unsigned char *at, const unsigned char *end, bool *good)
{
	unsigned char low, high;
	int more;
	size_t size = 1;

	*good = *at < 0x80;
	if (*good)
		return 1;
	more = follow(*at, &low, &high);
	for (int i = 0; i < more; i++, size++) {
		if (at + size == end || at[size] < low || at[size] > high)
			return size;
		low = 0x80;
		high = 0xbf;
	}
	*good = more > 0;
	return size;
}

static bool
is_valid(const unsigned char *at, const unsigned char *end)
{
	bool good = true;

	while (at < end && good)
		at += next_character(at, end, &good);
	return good;
}

/* The number of bytes at the end that may be the start of a character. */
JSValue
weft__js_utf8_open(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED,
                   JSValueConst *args)
{
	unsigned char low, high;
	const unsigned char *end;
	weft_span bytes;
	size_t size = 1;
	bool good;

	if (!weft__js_bytes(ctx, args[0], &bytes))
		return JS_EXCEPTION;
	end = (const unsigned char *)bytes.data + bytes.size;
	while (size < 3 && size < bytes.size && (end[-(ptrdiff_t)size] & 0xc0) == 0x80)
		size++;
	if (size > bytes.size || (size_t)follow(end[-(ptrdiff_t)size], &low, &high) < size
	    || next_character(end - size, end, &good) < size)
		size = 0;
	return JS_NewInt64(ctx, (int64_t)size);
}

static JSValue
decode_broken(JSContext *ctx, const unsigned char *at, const unsigned char *end)
{
	char *text = js_malloc(ctx, 3 * (size_t)(end - at) + 1), *to = text;
	JSValue made;

	if (!text)
		return JS_EXCEPTION;
	while (at < end) {
		bool good;
		size_t size = next_character(at, end, &good);

		memcpy(to, good ? (const char *)at : "\xef\xbf\xbd", good ? size : 3);
		to += good ? size : 3;
		at += size;
	}
	made = JS_NewStringLen(ctx, text, (size_t)(to - text));
	js_free(ctx, text);
	return made;
}

JSValue
weft__js_utf8_decode(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED,
                     JSValueConst *args)
{
	const unsigned char *begin, *end;
	weft_span bytes;

	if (!weft__js_bytes(ctx, args[0], &bytes))
		return JS_EXCEPTION;
	begin = bytes.data;
	end = begin + bytes.size;
	if (is_valid(begin, end))
		return JS_NewStringLen(ctx, bytes.data, bytes.size);
	if (JS_ToBool(ctx, args[1]) > 0)
		return JS_ThrowTypeError(ctx, "the bytes are not UTF-8");
	return decode_broken(ctx, begin, end);
}
