/* terminal_text.h - cleaning untrusted text for a terminal.
 *
 * A threadlet's name, or the item of a list, is whatever a program has put there.  Printed
 * unchanged, it could move the cursor, reconfigure the terminal, or reverse the direction of a
 * line.  So only characters that print something and leave the cursor after it are kept.  Every
 * other character, and every byte that is not valid UTF-8, becomes one question mark.
 */
#ifndef WEFT_TOOLS_TERMINAL_TEXT_H
#define WEFT_TOOLS_TERMINAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the terminal accepts UTF-8, judged by the locale's name.  If not, every non-ASCII
 * character becomes '?'. */
bool text_locale_is_utf8(void);

/* Clean the character at `*text`, which must not be at the end of the text, and advance `*text`.
 * Stores the bytes to print in `out` and their count in `*size`.  Returns the width in cells: 0,
 * 1 or 2. */
int text_next(const char **text, bool utf8, char out[4], size_t *size);

/* Whether `text` contains `part`, which must be in lower case.  ASCII letters in `text` match in
 * either case.  Every text contains the empty part. */
bool text_has(const char *text, const char *part);

#endif
