/* keyboard.h - what a terminal sends, as keys. */
#ifndef WEFT_TOP_KEYBOARD_H
#define WEFT_TOP_KEYBOARD_H

#include <stdbool.h>
#include <stddef.h>

enum key {
	KEY_ESCAPE = 27, /* alone; other bytes below 256 are themselves */
	KEY_UP = 256, KEY_DOWN, KEY_LEFT, KEY_RIGHT, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME,
	KEY_END, KEY_BACK_TAB, KEY_OTHER,
};

typedef void (*key_fn)(int key, void *arg);

/* Zeroed at first. */
struct keyboard {
	char pending[16]; /* a sequence that has begun */
	size_t size;
};

/* Read bytes; keys are told as they are whole. */
void keyboard_read(struct keyboard *keyboard, const char *bytes, size_t size, key_fn fn, void *arg);

/* Whether an escape waits for what follows; and nothing has followed: it was the key. */
bool keyboard_pending(const struct keyboard *keyboard);
void keyboard_end(struct keyboard *keyboard, key_fn fn, void *arg);

#endif
