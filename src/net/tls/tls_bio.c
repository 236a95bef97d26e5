/* tls_bio.c - the BIO between OpenSSL and a session's buffers.
 *
 * It replaces OpenSSL's memory BIO, which grows without bound and keeps the memory it has grown
 * to.  Input is copied from where it was received directly into OpenSSL's record, and output
 * from the record to where it is sent from.
 *
 *   1. A buffer has memory only while there are bytes in it, or while room is lent.
 *   2. While room is lent, its bytes do not move and its memory stays.
 *   3. Output is collected in one buffer and sent from another.  When the buffer that is sent is
 *      empty, the other one replaces it.  So bytes that are being sent stay in place, too.
 *   4. Output is bounded.  If there is no room, OpenSSL gets the result to try again, and keeps
 *      the rest of its record until then.
 */
#include <string.h>
#include "net/tls/tls_set.h"

#define BUFFER_MIN 4096u

static size_t
used(const struct weft__tls_buffer *b)
{
	return b->tail - b->head;
}

void
weft__tls_buffer_release(struct weft__tls_buffer *b)
{
	weft__sys->release(b->mem);
	*b = (struct weft__tls_buffer){ 0 };
}

/* Move the content to new memory of at least `need` bytes. */
static bool
move(struct weft__tls_buffer *b, size_t need, size_t max)
{
	size_t size = BUFFER_MIN, count = used(b);
	uint8_t *mem;

	while (size < need)
		size *= 2;
	size = size < max ? size : max;
	mem = weft__sys->alloc(size);
	if (!mem)
		return false;
	if (count > 0)
		memcpy(mem, b->mem + b->head, count);
	weft__sys->release(b->mem);
	*b = (struct weft__tls_buffer){ mem, (uint32_t)size, 0, (uint32_t)count };
	return true;
}

bool
weft__tls_buffer_reserve(struct weft__tls_buffer *b, size_t size, size_t max)
{
	size_t count = used(b);

	if (b->mem && b->size - b->tail >= size)
		return true;
	if (count + size > max)
		return false;
	if (count + size > b->size)
		return move(b, count + size, max);
	memmove(b->mem, b->mem + b->head, count);
	b->head = 0;
	b->tail = (uint32_t)count;
	return true;
}

size_t
weft__tls_out_room(const struct weft__session *s)
{
	return WEFT__SESSION_OUT_MAX - used(&s->out) - used(&s->sending);
}

/* --- called by OpenSSL -------------------------------------------------- */

static int
bio_read(BIO *bio, char *to, size_t size, size_t *got)
{
	struct weft__session *s = BIO_get_data(bio);
	struct weft__tls_buffer *in = &s->in;
	size_t n = used(in) < size ? used(in) : size;

	BIO_clear_retry_flags(bio);
	*got = n;
	if (n == 0 && !s->ended)
		BIO_set_retry_read(bio);
	if (n == 0)
		return s->ended ? 0 : -1;
	memcpy(to, in->mem + in->head, n);
	in->head += (uint32_t)n;
	if (in->head == in->tail && !s->lent)
		in->head = in->tail = 0;
	return 1;
}

static int
bio_write(BIO *bio, const char *from, size_t size, size_t *put)
{
	struct weft__session *s = BIO_get_data(bio);
	struct weft__tls_buffer *out = &s->out;
	size_t room = weft__tls_out_room(s);
	size_t n = size < room ? size : room;

	BIO_clear_retry_flags(bio);
	*put = 0;
	if (n == 0) {
		BIO_set_retry_write(bio);
		return -1;
	}
	if (!weft__tls_buffer_reserve(out, n, WEFT__SESSION_OUT_MAX)) {
		s->no_memory = true;
		return -1;
	}
	memcpy(out->mem + out->tail, from, n);
	out->tail += (uint32_t)n;
	*put = n;
	return 1;
}

static long
bio_ctrl(BIO *bio, int what, long number, void *ptr)
{
	struct weft__session *s = BIO_get_data(bio);

	(void)number, (void)ptr;
	switch (what) {
	case BIO_CTRL_EOF:
		return s->ended && used(&s->in) == 0;
	case BIO_CTRL_PENDING:
		return (long)used(&s->in);
	case BIO_CTRL_WPENDING:
		return (long)(used(&s->out) + used(&s->sending));
	case BIO_CTRL_FLUSH:
		return 1;
	default:
		return 0;
	}
}

BIO_METHOD *
weft__tls_bio_new(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weft");

	if (method && BIO_meth_set_read_ex(method, bio_read)
	    && BIO_meth_set_write_ex(method, bio_write) && BIO_meth_set_ctrl(method, bio_ctrl))
		return method;
	BIO_meth_free(method);
	return NULL;
}

/* --- called by the owner of the session --------------------------------- */

size_t
weft__session_room(struct weft__session *s, void **out)
{
	struct weft__tls_buffer *in = &s->in;
	size_t want = s->in_want;

	weft__assert(!s->lent);
	if (want > WEFT__SESSION_IN_MAX - used(in))
		want = WEFT__SESSION_IN_MAX - used(in);
	*out = NULL;
	if (want == 0 || !weft__tls_buffer_reserve(in, want, WEFT__SESSION_IN_MAX))
		return 0;
	s->lent = true;
	*out = in->mem + in->tail;
	return in->size - in->tail;
}

/* A peer that fills all of the room gets larger pieces.  A peer that sends little gets smaller
 * ones. */
static void
adapt(struct weft__session *s, size_t room, size_t came)
{
	if (came == room && s->in_want < WEFT__SESSION_IN_MAX)
		s->in_want *= 2;
	else if (came < room / 4 && s->in_want > BUFFER_MIN)
		s->in_want /= 2;
}

void
weft__tls_in_release(struct weft__session *s)
{
	if (s->in.mem && used(&s->in) == 0 && !s->lent)
		weft__tls_buffer_release(&s->in);
}

void
weft__session_came(struct weft__session *s, size_t size)
{
	weft__assert(s->lent && size <= s->in.size - s->in.tail);
	adapt(s, s->in.size - s->in.tail, size);
	s->in.tail += (uint32_t)size;
	s->lent = false;
	weft__tls_in_release(s);
}

int64_t
weft__session_feed(struct weft__session *s, const void *bytes, size_t size)
{
	struct weft__tls_buffer *in = &s->in;
	size_t room = WEFT__SESSION_IN_MAX - used(in);
	size_t n = size < room ? size : room;

	weft__assert(!s->lent && !s->ended);
	if (n == 0)
		return 0;
	if (!weft__tls_buffer_reserve(in, n, WEFT__SESSION_IN_MAX))
		return weft__fail(WEFT_ENOMEM, "weft_stream_read: no memory for input");
	memcpy(in->mem + in->tail, bytes, n);
	in->tail += (uint32_t)n;
	return (int64_t)n;
}

void
weft__session_ended(struct weft__session *s)
{
	s->ended = true;
}

/* Invariant 3. */
size_t
weft__session_output(struct weft__session *s, const void **out)
{
	if (!s->sending.mem) {
		s->sending = s->out;
		s->out = (struct weft__tls_buffer){ 0 };
	}
	*out = s->sending.mem ? s->sending.mem + s->sending.head : NULL;
	return used(&s->sending);
}

void
weft__session_sent(struct weft__session *s, size_t size)
{
	weft__assert(size <= used(&s->sending));
	s->sending.head += (uint32_t)size;
	if (s->sending.mem && used(&s->sending) == 0)
		weft__tls_buffer_release(&s->sending);
}
