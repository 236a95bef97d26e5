/* terminal.h - the terminal: its size, writing to it; and setting it up for a full screen.
 *
 *   1. The settings are restored on every way out: by terminal_close(), at exit(), and by a
 *      handler of the signals that report a crash.
 *   2. There is one terminal that is set up, on standard input and output.
 */
#ifndef WEFT_TOOLS_TERMINAL_H
#define WEFT_TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is a terminal to draw on: standard input and output are terminals, and TERM is
 * not "dumb". */
bool terminal_is_there(void);

/* Whether to use colors: NO_COLOR is not set. */
bool terminal_has_colours(void);

/* Set up the terminal: no line buffering, no echo, alternate screen, no cursor.  Call it again
 * after terminal_close(), or if another program may have changed the settings.  Returns 0 or
 * -errno. */
int  terminal_open(void);
void terminal_close(void);

/* The current size of the terminal at `fd`; 24 and 80 if it has none. */
void terminal_size(int fd, int *rows, int *columns);

/* Write all bytes to a terminal or file, waiting as long as needed.  Returns 0 or -errno. */
int terminal_write_all(int fd, const char *bytes, size_t size);

#endif
