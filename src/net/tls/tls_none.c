/* tls_none.c - replaces TLS in a build without OpenSSL.
 *
 * There is no context, so there is no session either: functions that take one are never called,
 * or only with NULL.
 */
#include "base/thread.h"
#include "net/tls/tls.h"

static const char text[] =
	"weft_tls_*: weft was built without TLS, which needs OpenSSL 3 (option WEFT_TLS)";

int
weft_tls_open(const weft_tls_opts *opts, weft_tls **out)
{
	(void)opts, (void)out;
	return weft__fail(WEFT_ENOSYS, text);
}

int
weft_tls_reload(weft_tls *tls)
{
	(void)tls;
	return weft__fail(WEFT_ENOSYS, text);
}

void
weft_tls_close(weft_tls *tls)
{
	weft__assert(!tls);
}

weft_tls *
weft__tls_ref(weft_tls *tls)
{
	return tls;
}

int
weft__session_open(weft_tls *tls, int role, const char *name, struct weft__session **out)
{
	(void)tls, (void)role, (void)name, (void)out;
	return weft__fail(WEFT_ENOSYS, text);
}

void
weft__session_close(struct weft__session *s)
{
	weft__assert(!s);
}

int
weft__session_handshake(struct weft__session *s)
{
	(void)s;
	return weft__fail(WEFT_ENOSYS, text);
}

size_t
weft__session_room(struct weft__session *s, void **out)
{
	(void)s;
	*out = NULL;
	return 0;
}

void
weft__session_came(struct weft__session *s, size_t size)
{
	(void)s, (void)size;
}

int64_t
weft__session_feed(struct weft__session *s, const void *bytes, size_t size)
{
	(void)s, (void)bytes, (void)size;
	return weft__fail(WEFT_ENOSYS, text);
}

void
weft__session_ended(struct weft__session *s)
{
	(void)s;
}

int64_t
weft__session_read(struct weft__session *s, void *buf, size_t size)
{
	(void)s, (void)buf, (void)size;
	return weft__fail(WEFT_ENOSYS, text);
}

int64_t
weft__session_write(struct weft__session *s, const void *buf, size_t size)
{
	(void)s, (void)buf, (void)size;
	return weft__fail(WEFT_ENOSYS, text);
}

size_t
weft__session_output(struct weft__session *s, const void **out)
{
	(void)s;
	*out = NULL;
	return 0;
}

void
weft__session_sent(struct weft__session *s, size_t size)
{
	(void)s, (void)size;
}

int
weft__session_close_notify(struct weft__session *s)
{
	(void)s;
	return weft__fail(WEFT_ENOSYS, text);
}

size_t
weft__session_pending(const struct weft__session *s)
{
	(void)s;
	return 0;
}

int
weft__session_info(struct weft__session *s, weft_tls_info *out)
{
	(void)s, (void)out;
	return weft__fail(WEFT_ENOSYS, text);
}
