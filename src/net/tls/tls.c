/* tls.c - TLS contexts: opening, reloading, closing.
 *
 *   1. The settings of a context are in its current set (tls_set.h).  A new session references
 *      that set under the lock.  A reload replaces the set under the lock, and the old set is
 *      freed after its last session.
 *   2. Sessions do not need the context, only their set.  Listeners and the opener reference
 *      the context.
 *   3. Reloads run one after the other, including the reading of files: what was read last
 *      stays.
 */
#include "net/tls/tls_set.h"

struct weft_tls {
	weft__a32 refs;
	struct weft__lock lock;
	struct weft__lock reload_lock;
	struct weft__tls_set *set; /* under `lock` */
	weft_tls_opts *opts;       /* set once */
};

weft_tls *
weft__tls_ref(weft_tls *tls)
{
	(void)weft__add(&tls->refs, 1, WEFT__RELAXED);
	return tls;
}

void
weft_tls_close(weft_tls *tls)
{
	/* The thread that drops the last reference sees all changes by the others. */
	if (!tls || weft__add(&tls->refs, UINT32_MAX, WEFT__ACQ_REL) != 1)
		return;
	weft__tls_set_unref(tls->set);
	weft__sys->release(tls->opts);
	weft__sys->release(tls);
}

struct weft__tls_set *
weft__tls_set_of(weft_tls *tls)
{
	struct weft__tls_set *set;

	weft__lock_take(&tls->lock);
	set = tls->set;
	(void)weft__add(&set->refs, 1, WEFT__RELAXED);
	weft__lock_give(&tls->lock);
	return set;
}

int
weft_tls_open(const weft_tls_opts *opts, weft_tls **out)
{
	static const weft_tls_opts defaults;
	weft_tls *tls;
	int rc;

	if (!out)
		return weft__misuse(WEFT_EINVAL, "weft_tls_open: out is NULL");
	opts = opts ? opts : &defaults;
	rc = weft__tls_setup_check(opts);
	if (rc < 0)
		return rc;
	tls = weft__alloc_zero(sizeof(*tls));
	if (!tls)
		return weft__fail(WEFT_ENOMEM, "weft_tls_open: out of memory");
	weft__store(&tls->refs, 1, WEFT__RELAXED);
	tls->opts = weft__tls_setup_copy(opts);
	rc = tls->opts ? weft__tls_set_new(tls->opts, &tls->set) : WEFT_ENOMEM;
	if (rc < 0)
		weft_tls_close(tls);
	else
		*out = tls;
	return rc;
}

int
weft_tls_reload(weft_tls *tls)
{
	struct weft__tls_set *set, *before;
	int rc;

	if (!tls)
		return weft__misuse(WEFT_EINVAL, "weft_tls_reload: tls is NULL");
	weft__lock_take(&tls->reload_lock);
	rc = weft__tls_set_new(tls->opts, &set);
	if (rc == 0) {
		weft__lock_take(&tls->lock);
		before = tls->set;
		tls->set = set;
		weft__lock_give(&tls->lock);
		weft__tls_set_unref(before);
	}
	weft__lock_give(&tls->reload_lock);
	return rc;
}
