/* text.h - foreign texts as a terminal may be given them.
 *
 * A name of a threadlet is whatever a program has put there.  Shown as it is, it could move the
 * cursor, change what a terminal does, or turn the direction of a line.  So of every text only
 * those characters stay that print something and leave the cursor behind it; each other one,
 * and each byte that is no UTF-8, becomes one question mark.
 */
#ifndef WEFT_TOP_TEXT_H
#define WEFT_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the terminal takes UTF-8, by the locale's name; else all but ASCII becomes '?'. */
bool text_locale_is_utf8(void);

/* One character at `*text`, cleaned, which is not at its end.  Moves on, and returns its bytes
 * in `out` (their number in `*size`) and its width in cells: 0, 1 or 2. */
int text_next(const char **text, bool utf8, char out[4], size_t *size);

/* Whether `part`, which is in small letters, is in `text`; the case of ASCII letters in
 * `text` does not count.  The empty part is in every text. */
bool text_has(const char *text, const char *part);

#endif
