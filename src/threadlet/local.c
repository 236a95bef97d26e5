/* local.c - threadlet-local values, by the keys of loops (loop/local.c).
 *
 *   1. A value is removed before its drop function is called.
 *   2. The values are dropped once, as the threadlet ends.  From then on none can be set.
 */
#include "threadlet/threadlet.h"

void *
weft_local_get(int key)
{
	const struct weft__threadlet *self = weft__self();

	if (!weft__local_is_key(key)) {
		(void)weft__misuse(WEFT_EINVAL, "weft_local_get: invalid key");
		return NULL;
	}
	return self && self->locals ? self->locals->values[key - 1] : NULL;
}

int
weft_local_set(int key, void *value)
{
	struct weft__threadlet *self = weft__self();
	void *old;

	if (!weft__local_is_key(key))
		return weft__misuse(WEFT_EINVAL, "weft_local_set: invalid key");
	if (!self)
		return weft__fail(WEFT_ENOSUSPEND, "weft_local_set: the caller is not a threadlet");
	if (self->locals_ended)
		return weft__fail(
			WEFT_ESHUTDOWN,
			"weft_local_set: the threadlet is ending and its values are being dropped");
	if (!self->locals)
		self->locals = weft__alloc_zero(sizeof(*self->locals));
	if (!self->locals)
		return weft__fail(WEFT_ENOMEM, "weft_local_set: out of memory");
	old = self->locals->values[key - 1];
	self->locals->values[key - 1] = value;
	if (old != value)
		weft__local_drop(key, old);
	return 0;
}

void
weft__threadlet_end_locals(struct weft__threadlet *self)
{
	self->locals_ended = true;
	if (!self->locals)
		return;
	for (int key = WEFT__LOCALS; key > 0; key--) {
		void *value = self->locals->values[key - 1];

		self->locals->values[key - 1] = NULL;
		weft__local_drop(key, value);
	}
	weft__sys->release(self->locals);
	self->locals = NULL;
}
