/* keyboard.c - decodes the bytes a terminal sends into keys.
 *
 * A function key is a sequence: escape, [ or O, digits, and a letter that ends it.  The escape
 * key is the same first byte alone.  Only a timeout distinguishes the two: see keyboard_end().
 */
#include <string.h>
#include "keyboard.h"

struct sequence {
	const char *bytes; /* after the escape */
	int key;
};

static const struct sequence sequences[] = {
	{ "[A", KEY_UP },         { "[B", KEY_DOWN },  { "[C", KEY_RIGHT },
	{ "[D", KEY_LEFT },       { "OA", KEY_UP },    { "OB", KEY_DOWN },
	{ "OC", KEY_RIGHT },      { "OD", KEY_LEFT },  { "[5~", KEY_PAGE_UP },
	{ "[6~", KEY_PAGE_DOWN }, { "[H", KEY_HOME },  { "[F", KEY_END },
	{ "OH", KEY_HOME },       { "OF", KEY_END },   { "[1~", KEY_HOME },
	{ "[4~", KEY_END },       { "[7~", KEY_HOME }, { "[8~", KEY_END },
	{ "[Z", KEY_BACK_TAB },
};

static int
key_of(const struct keyboard *keyboard)
{
	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++)
		if (strlen(sequences[i].bytes) == keyboard->size - 1
		    && memcmp(sequences[i].bytes, keyboard->pending + 1, keyboard->size - 1) == 0)
			return sequences[i].key;
	return KEY_OTHER;
}

/* Whether the pending sequence, of at least three bytes, is complete. */
static bool
is_whole(const struct keyboard *keyboard)
{
	char last = keyboard->pending[keyboard->size - 1];

	return (last >= '@' && last <= '~') || keyboard->size == sizeof(keyboard->pending);
}

static void
read_byte(struct keyboard *keyboard, char byte, key_fn fn, void *arg)
{
	if (keyboard->size == 0 && byte != KEY_ESCAPE) {
		fn((unsigned char)byte, arg);
		return;
	}
	if (keyboard->size == 1 && byte != '[' && byte != 'O') {
		keyboard->size = 0; /* the escape key, then another key */
		fn(KEY_ESCAPE, arg);
		read_byte(keyboard, byte, fn, arg);
		return;
	}
	keyboard->pending[keyboard->size++] = byte;
	if (keyboard->size > 2 && is_whole(keyboard)) {
		int key = key_of(keyboard);

		keyboard->size = 0;
		fn(key, arg);
	}
}

void
keyboard_read(struct keyboard *keyboard, const char *bytes, size_t size, key_fn fn, void *arg)
{
	for (size_t i = 0; i < size; i++)
		read_byte(keyboard, bytes[i], fn, arg);
}

bool
keyboard_pending(const struct keyboard *keyboard)
{
	return keyboard->size > 0;
}

void
keyboard_end(struct keyboard *keyboard, key_fn fn, void *arg)
{
	size_t size = keyboard->size;

	keyboard->size = 0;
	if (size > 0)
		fn(size == 1 ? KEY_ESCAPE : KEY_OTHER, arg);
}
