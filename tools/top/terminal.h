/* terminal.h - the terminal while weft top has it, and as it was before.
 *
 *   1. What was changed is put back on every way out: by terminal_close(), at exit(), and
 *      by a handler of the signals that end a process by its own mistake.
 *   2. There is one, on standard input and output.
 */
#ifndef WEFT_TOP_TERMINAL_H
#define WEFT_TOP_TERMINAL_H

#include <stdbool.h>

/* Whether there is one that can be drawn on: both are terminals, and TERM is not dumb. */
bool terminal_is_there(void);

/* Whether it is to show colours: NO_COLOR is not set. */
bool terminal_has_colours(void);

/* Take it: keys come at once and unseen, another screen, no cursor.  Again after
 * terminal_close(), or when somebody else may have changed it.  Returns 0, or -errno. */
int  terminal_open(void);
void terminal_close(void);

/* Its size now. */
void terminal_size(int *rows, int *columns);

#endif
