/* keyboard.h - decodes the bytes a terminal sends into keys. */
#ifndef WEFT_TOP_KEYBOARD_H
#define WEFT_TOP_KEYBOARD_H

#include <stdbool.h>
#include <stddef.h>

enum key {
	KEY_ESCAPE = 27, /* pressed alone; other bytes below 256 are themselves */
	KEY_UP = 256, KEY_DOWN, KEY_LEFT, KEY_RIGHT, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME,
	KEY_END, KEY_BACK_TAB, KEY_OTHER,
};

typedef void (*key_fn)(int key, void *arg);

/* Initialize with zeros. */
struct keyboard {
	char pending[16]; /* an incomplete escape sequence */
	size_t size;
};

/* Decode bytes; calls `fn` with each complete key. */
void keyboard_read(struct keyboard *keyboard, const char *bytes, size_t size, key_fn fn, void *arg);

/* keyboard_pending(): whether an incomplete sequence is waiting for more bytes. keyboard_end():
 * none followed in time, so report what there is; an escape alone was the escape key. */
bool keyboard_pending(const struct keyboard *keyboard);
void keyboard_end(struct keyboard *keyboard, key_fn fn, void *arg);

#endif
