/* value.h - values that only the library makes. */
#ifndef WEFT_BASE_VALUE_H
#define WEFT_BASE_VALUE_H

#include <weft/value.h>

/* A list of `count` items, each "no value" until it is written.  Without memory, an error
 * value: WEFT_ENOMEM. */
weft_value weft__value_list(size_t count);

/* Copy a value member by member.  A struct copy reads both words with one load, which stalls in
 * the CPU if the words were written separately just before (no store forwarding). */
static inline void
weft__value_copy(weft_value *to, const weft_value *from)
{
	to->type = from->type;
	to->as.integer = from->as.integer;
}

#endif
