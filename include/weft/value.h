/* weft/value.h - spans of bytes, and values that carry their type and destructor.
 *
 * A value carries its type, and the type knows how to free it.  So a function that receives a
 * value need not know which code made it.  A value has exactly one owner.  A function that
 * takes a value drops it.
 *
 *   1. Copying the struct does not make another owner.  weft_value_share() makes one, if the
 *      type can be shared.  Each owner drops its own value, on any thread.
 *   2. Integers, numbers and errors own nothing and can always be shared.
 *   3. Text and bytes are one reference-counted copy.  Sharing copies and allocates nothing.
 *      Once shared, the content is read-only.
 *   4. A list owns its items.  It can be shared only if every item can be.  Its items are freed
 *      with its last owner; once the list is shared they are read-only, too.
 *   5. The functions of a user-defined type decide which threads may use its values.
 */
#ifndef WEFT_VALUE_H
#define WEFT_VALUE_H

#include <weft/base.h>

WEFT_BEGIN

/* A view of bytes; it does not own them.  Same layout as struct iovec. */
typedef struct weft_span {
	const void *data;
	size_t      size;
} weft_span;

/* A type is identified by its address.  Define your own types as static const objects. */
typedef struct weft_type {
	const char *name;              /* for messages */
	/* Frees one owner's value; must not suspend.  NULL: nothing to free. */
	void      (*drop)(void *ptr);
	void      (*share)(void *ptr); /* adds one owner; NULL: cannot be shared */
	/* For thenables.  If a promise is resolved with a value of this type, a microtask calls
	 * this function.  It settles `into`, borrowed, at once or later, or returns an error,
	 * which rejects `into`.  NULL: the promise is fulfilled with the value itself. */
	int       (*then)(void *ptr, weft_promise *into);
	void       *spare[1];          /* must be zero: room for later versions */
} weft_type;

typedef struct weft_value {
	const weft_type *type; /* NULL: no value */
	union {
		int64_t integer;
		double  number;
		void   *ptr;
	} as;
} weft_value;
WEFT_STATIC_ASSERT(sizeof(struct weft_value) == 16, "weft_value is part of the ABI");

/* The library owns the memory of the last three types: only the functions below make values of
 * them. */
WEFT_API extern const weft_type weft_type_integer; /* as.integer */
WEFT_API extern const weft_type weft_type_number;  /* as.number */
WEFT_API extern const weft_type weft_type_error;   /* as.integer, a WEFT_E* */
WEFT_API extern const weft_type weft_type_text;    /* as.ptr, char *, NUL-terminated */
WEFT_API extern const weft_type weft_type_bytes;   /* as.ptr, weft_span *, owned */
WEFT_API extern const weft_type weft_type_list;    /* as.ptr, weft_list * */

/* The struct that a value of weft_type_list points to; owns its items. */
typedef struct weft_list {
	size_t      count;
	weft_value *items;
} weft_list;

/* View the bytes of a C string, without its NUL.  For NULL the span is empty.  Borrows `text` as
 * long as the span is used.
 * Returns the span.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_span weft_text(const char *text);

/* Make a value of an integer, of an error, or of a pointer with a user-defined type (takes
 * `ptr`).
 * Return the value.  For invalid arguments (an error that is not negative, no type, a type of
 * the library) they return an error value with WEFT_EINVAL, and `ptr` still belongs to the
 * caller.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_integer(int64_t integer);
WEFT_API weft_value weft_value_error(int error);
WEFT_API weft_value weft_value_ptr(const weft_type *type, void *ptr);

/* Make a value of a copy of a C string or of bytes, in the library's memory.
 * Return the value; an error value with WEFT_ENOMEM if memory is exhausted, or with WEFT_EINVAL
 * if the argument is NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_text(const char *text);
WEFT_API weft_value weft_value_bytes(weft_span bytes);

/* Make a list of `count` values.  Takes the values; borrows the array.
 * Returns the list; if memory is exhausted, an error value with WEFT_ENOMEM, and the values are
 * dropped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_list(weft_value *items, size_t count);

/* Make a second owner of `value`: fill `out`, which must be a different variable, with a value
 * that shares it.  Accepts "no value".
 * Returns 0; WEFT_EPERM if its type or the type of an item cannot be shared, or lists are
 * nested more than 64 deep; WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_value_share(const weft_value *value, weft_value *out);

/* Free `value` and set it to "no value".  Accepts "no value", and NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_value_drop(weft_value *value);

WEFT_END
#endif
