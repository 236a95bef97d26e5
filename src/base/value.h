/* value.h - values that only the library makes. */
#ifndef WEFT_BASE_VALUE_H
#define WEFT_BASE_VALUE_H

#include <weft/value.h>

/* A list of `count` items, each of them "no value" until it is written; without memory
 * an error, WEFT_ENOMEM. */
weft_value weft__value_list(size_t count);

#endif
