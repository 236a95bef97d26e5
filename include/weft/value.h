/* weft/value.h - spans of bytes, and values that know how to end themselves.
 *
 * A value says what it is and how it ends, so that whoever is handed one need not
 * know who made it.  It has exactly one owner; whoever takes it drops it.
 *
 *   1. A copy of the struct is not another owner: weft_value_share() makes one, if
 *      the type can be shared.  Each owner drops its own, on any thread.
 *   2. Integers, numbers and errors need no end and are always shared.
 *   3. Text and bytes are one copy with a count of owners.  Sharing copies nothing and
 *      allocates nothing; who has shared it only reads it from then on.
 *   4. A list owns its items, and is shared only if each of them can be.  Its items
 *      end with its last owner; they too are only read once it was shared.
 *   5. What a type of one's own does about threads is up to its functions.
 */
#ifndef WEFT_VALUE_H
#define WEFT_VALUE_H

#include <weft/base.h>

WEFT_BEGIN

/* Bytes that somebody else owns.  Laid out as struct iovec. */
typedef struct weft_span {
	const void *data;
	size_t      size;
} weft_span;

/* A type is known by its address.  Make your own as static const objects. */
typedef struct weft_type {
	const char *name;              /* for messages */
	/* Ends one owner's value, and does not suspend; NULL: nothing to end. */
	void      (*drop)(void *ptr);
	void      (*share)(void *ptr); /* makes one more owner; NULL: cannot be shared */
	/* A thenable: what a promise that is resolved with it settles as.  Called in a
	 * microtask, it settles `into`, borrowed, then or later; or returns an error, which
	 * rejects it.  NULL: the value is the value. */
	int       (*then)(void *ptr, weft_promise *into);
	void       *spare[1];
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

/* Only the functions below make values of the last three, which are in the library's
 * memory. */
WEFT_API extern const weft_type weft_type_integer; /* as.integer */
WEFT_API extern const weft_type weft_type_number;  /* as.number */
WEFT_API extern const weft_type weft_type_error;   /* as.integer, a WEFT_E* */
WEFT_API extern const weft_type weft_type_text;    /* as.ptr, char *, NUL-terminated */
WEFT_API extern const weft_type weft_type_bytes;   /* as.ptr, weft_span *, owned */
WEFT_API extern const weft_type weft_type_list;    /* as.ptr, weft_list * */

/* What weft_type_list points to; owns its items. */
typedef struct weft_list {
	size_t      count;
	weft_value *items;
} weft_list;

/* The bytes of a C string, without its NUL; of NULL, none.  Borrows `text` as long as
 * the span is used.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_span weft_text(const char *text);

/* Make a value: of an integer, of an error, of a pointer with a type of one's own
 * (takes `ptr`).
 * Return it; what makes no sense (an error that is not negative, no type, a type of
 * the library) becomes an error, WEFT_EINVAL, and `ptr` stays the caller's.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_integer(int64_t integer);
WEFT_API weft_value weft_value_error(int error);
WEFT_API weft_value weft_value_ptr(const weft_type *type, void *ptr);

/* Make a value of a copy, in the library's memory: of a C string, of bytes.
 * Return it; without memory an error, WEFT_ENOMEM; of NULL an error, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_text(const char *text);
WEFT_API weft_value weft_value_bytes(weft_span bytes);

/* Make a list of `count` values, which are taken; the array is borrowed.
 * Returns it; without memory an error, WEFT_ENOMEM, and the values were dropped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_list(weft_value *items, size_t count);

/* Make one more owner of `value` in `out`, which is another place and is overwritten.
 * Accepts "no value".
 * Returns 0; WEFT_EPERM if its type cannot be shared, an item of the list cannot, or
 * lists stand more than 64 deep in each other; WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_value_share(const weft_value *value, weft_value *out);

/* End `value` and make it "no value".  Accepts "no value", and NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_value_drop(weft_value *value);

WEFT_END
#endif
