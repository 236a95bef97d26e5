/* value.h - values that only the library makes. */
#ifndef WEFT_BASE_VALUE_H
#define WEFT_BASE_VALUE_H

#include <weft/value.h>

/* A list of `count` items, each of them "no value" until it is written; without memory
 * an error, WEFT_ENOMEM. */
weft_value weft__value_list(size_t count);

/* Copy a value word by word.  As one, which is how structs are copied, it would have to
 * wait in the CPU: whoever made it has just written the words one after the other. */
static inline void
weft__value_copy(weft_value *to, const weft_value *from)
{
	to->type = from->type;
	to->as.integer = from->as.integer;
}

#endif
