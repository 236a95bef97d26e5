/* local.c - loop-local values, by keys of the whole program.
 *
 *   1. Keys are 1 to COUNT, and are never released.  A thread that has seen the count (K,
 *      acquire) sees the drop functions of all keys up to it.
 *   2. A value is removed before its drop function is called.  So the drop function finds the
 *      key unset, or the value that replaced it.
 *   3. The end of the values begins once: from then on no value can be set.  So it completes,
 *      whatever drop functions do.
 */
#include "base/lock.h"
#include "loop/core/loop.h"

#define COUNT WEFT__LOCALS

static struct {
	struct weft__lock lock; /* for making a key */
	weft__a32 count;
	weft_fn drop[COUNT];
} keys;

int
weft_key_new(weft_fn drop)
{
	uint32_t count;

	/* If this fails, only forked children are at risk. */
	(void)weft__watch_forks();
	weft__lock_take(&keys.lock);
	count = weft__load(&keys.count, WEFT__RELAXED);
	if (count < COUNT) {
		keys.drop[count] = drop;
		weft__store(&keys.count, ++count, WEFT__RELEASE); /* K */
	} else {
		count = 0;
	}
	weft__lock_give(&keys.lock);
	return count ? (int)count : weft__fail(WEFT_EAGAIN, "weft_key_new: all 64 keys are in use");
}

void
weft__locals_forked(void)
{
	keys.lock = (struct weft__lock){ 0 };
}

bool
weft__local_is_key(int key)
{
	return key > 0 && (uint32_t)key <= weft__load(&keys.count, WEFT__ACQUIRE); /* K */
}

void *
weft_loop_local_get(const weft_loop *loop, int key)
{
	if (!loop)
		loop = weft__thread_self()->loop;
	if (!weft__local_is_key(key)) {
		(void)weft__misuse(WEFT_EINVAL, "weft_loop_local_get: no such key");
		return NULL;
	}
	if (weft__loop_check(loop, "weft_loop_local_get") < 0 || !loop->locals)
		return NULL;
	return loop->locals->values[key - 1];
}

void
weft__local_drop(int key, void *value)
{
	if (value && keys.drop[key - 1])
		keys.drop[key - 1](value);
}

int
weft_loop_local_set(weft_loop *loop, int key, void *value)
{
	void *old;
	int rc;

	loop = weft__loop_or_current(loop);
	if (!weft__local_is_key(key))
		return weft__misuse(WEFT_EINVAL, "weft_loop_local_set: no such key");
	rc = weft__loop_check(loop, "weft_loop_local_set");
	if (rc < 0)
		return rc;
	if (loop->locals_ended)
		return weft__fail(
			WEFT_ESHUTDOWN,
			"weft_loop_local_set: the loop is ending, and no value can be set");
	if (!loop->locals)
		loop->locals = weft__alloc_zero(sizeof(*loop->locals));
	if (!loop->locals)
		return weft__fail(WEFT_ENOMEM, "weft_loop_local_set: out of memory");
	old = loop->locals->values[key - 1];
	if (old == value)
		return 0;
	loop->locals->values[key - 1] = value;
	weft__local_drop(key, old);
	return 0;
}

bool
weft__locals_end(weft_loop *loop)
{
	bool any = false;

	loop->locals_ended = true;
	if (!loop->locals)
		return false;
	for (int key = COUNT; key > 0; key--) {
		void *value = loop->locals->values[key - 1];

		if (!value)
			continue;
		any = true;
		loop->locals->values[key - 1] = NULL;
		weft__local_drop(key, value);
		weft__checkpoint(loop);
	}
	weft__sys->release(loop->locals);
	loop->locals = NULL;
	return any;
}
