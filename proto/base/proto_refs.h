/* proto_refs.h - reference counts.  Private to proto/ and bindings/.
 *
 * An object begins with one reference, WEFT__REFS_ONE.  Each release of a reference has release
 * order, and the last one also acquire order: all uses happen before the object is freed.
 */
#ifndef WEFT_PROTO_REFS_H
#define WEFT_PROTO_REFS_H

#include <stdbool.h>
#include <stdint.h>

struct weft__refs {
	uint32_t count; /* atomic */
};

#define WEFT__REFS(number) ((struct weft__refs){ (number) })
#define WEFT__REFS_ONE     WEFT__REFS(1)

/* Add a reference.  The caller has one already, or excludes the last release by a lock. */
static inline void
weft__refs_add(struct weft__refs *refs)
{
	(void)__atomic_add_fetch(&refs->count, 1, __ATOMIC_RELAXED);
}

/* Release a reference.  True: it was the last one, and the caller frees the object. */
static inline bool
weft__refs_drop(struct weft__refs *refs)
{
	return __atomic_sub_fetch(&refs->count, 1, __ATOMIC_ACQ_REL) == 0;
}

/* As weft__refs_drop(), without an atomic write if the caller has the only reference: then no other
 * thread can add one. */
static inline bool
weft__refs_drop_sole(struct weft__refs *refs)
{
	return __atomic_load_n(&refs->count, __ATOMIC_ACQUIRE) == 1 || weft__refs_drop(refs);
}

#endif
