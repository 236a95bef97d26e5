/* dgram.c - the owner loop of a datagram socket, and closing. */
#include <errno.h>
#include "net/dgram/dgram.h"
#include "threadlet/threadlet.h"

int
weft__dgram_check(const weft_dgram *dgram, const char *call)
{
	weft_loop *loop;

	if (!dgram)
		return weft__misuse_in(WEFT_EINVAL, call, "dgram is NULL");
	if (dgram->closing)
		return weft__fail_in(WEFT_ESHUTDOWN, call, "the socket was already closed");
	loop = weft__dgram_loop(dgram);
	return loop && !weft__loop_is_usable(loop) ? weft__loop_check(loop, call) : 0;
}

int
weft__dgram_check_batch(const weft_dgram *dgram, const weft_message *messages, size_t count,
                        const char *call)
{
	if (!messages || count == 0 || count > INT32_MAX)
		return weft__misuse_in(WEFT_EINVAL, call,
		                       "messages is NULL, or count is 0 or too large");
	return weft__dgram_check(dgram, call);
}

int
weft__dgram_use(weft_dgram *dgram, weft_loop *loop, const char *call)
{
	weft_loop *own = weft__dgram_loop(dgram);
	int rc;

	if (own == loop)
		return 0;
	if (own)
		return weft__misuse_in(WEFT_EWRONGLOOP, call, "the socket belongs to another loop");
	rc = weft__loop_open_backend(loop);
	if (rc < 0)
		return rc;
	(void)weft_loop_ref(loop);
	weft__store(&dgram->loop, (uintptr_t)loop, WEFT__RELAXED);
	weft__assert(weft_op_init(&dgram->writer, loop, weft__dgram_on_writer, dgram) == 0);
	weft_op_set_background(&dgram->writer, true);
	if (!dgram->borrowed)
		(void)weft__fd_own(loop, dgram->fd, WEFT__FD_IS_SOCKET);
	return 0;
}

/* The kernel reports such an error once.  A second try does not get it again. */
void
weft__dgram_keep_error(weft_dgram *dgram, int error)
{
	switch (error) {
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -EHOSTDOWN:
	case -ENOPROTOOPT:
	case -EPROTO:
		dgram->error = error;
		break;
	}
}

int
weft__dgram_return(int rc, const char *call)
{
	(void)weft__maybe_yield(weft__self());
	return rc < 0 ? weft__fail_in(rc, call, weft_strerror(rc)) : rc;
}

int
weft_dgram_local(weft_dgram *dgram, weft_addr *out)
{
	weft_addr addr = { .kind = SOCK_DGRAM };
	socklen_t size = sizeof(addr.bytes);
	int rc = weft__dgram_check(dgram, "weft_dgram_local");

	if (rc == 0 && !out)
		rc = weft__misuse(WEFT_EINVAL, "weft_dgram_local: out is NULL");
	if (rc < 0)
		return rc;
	rc = weft__dgram_kernel(dgram)->sockname(dgram->fd, (struct sockaddr *)(void *)addr.bytes,
	                                         &size);
	if (rc < 0)
		return weft__fail_in(rc, "weft_dgram_local", weft_strerror(rc));
	weft__addr_settle(&addr, size);
	*out = addr;
	return 0;
}

int
weft_dgram_fd(weft_dgram *dgram)
{
	int rc = weft__dgram_check(dgram, "weft_dgram_fd");

	return rc < 0 ? rc : dgram->fd;
}

/* --- closing ------------------------------------------------------------ */

static void
dgram_release(weft_dgram *dgram)
{
	weft_loop *loop = weft__dgram_loop(dgram);

	if (dgram->path.size > 0) /* the path may have been removed already */
		(void)weft__dgram_kernel(dgram)->path_remove(
			weft__addr_sockaddr(&dgram->path)->sa_data);
	if (!dgram->borrowed) {
		weft__fd_forget(loop, dgram->fd);
		(void)weft__dgram_kernel(dgram)->close(dgram->fd);
	}
	if (dgram->closer)
		(void)weft_op_finish(dgram->closer, 0);
	weft__sys->release(dgram->room);
	weft__sys->release(dgram);
	(void)weft_loop_unref(loop);
}

void
weft__dgram_unref(weft_dgram *dgram)
{
	if (--dgram->refs == 0 && dgram->closing)
		dgram_release(dgram);
}

static void
on_close_cancel(weft_op *op, int why, void *arg)
{
	(void)op; /* not cancelable; the close ends even if the loop stops */
	(void)why;
	(void)arg;
}

/* End all waits.  Holds a reference, so that the socket is not freed meanwhile. */
static void
end_all(weft_dgram *dgram)
{
	dgram->closing = true;
	dgram->refs++;
	weft__dgram_end_face(dgram);
	weft__dgram_end_sends(dgram, WEFT_ESHUTDOWN);
	if (dgram->reader)
		weft__op_request_cancel(weft__op_of(dgram->reader), WEFT_ESHUTDOWN);
	if (dgram->writer.pending)
		weft__op_request_cancel(weft__op_of(&dgram->writer), WEFT_ESHUTDOWN);
}

void
weft_dgram_close(weft_dgram *dgram)
{
	struct weft__threadlet *self = weft__self();
	weft_loop *loop;
	weft_op op;
	int rc;

	if (!dgram)
		return;
	loop = weft__dgram_loop(dgram);
	rc = loop ? weft__loop_check(loop, "weft_dgram_close") : 0;
	if (rc == WEFT_EWRONGLOOP || rc == WEFT_EINVAL)
		return;
	if (!loop) {
		dgram_release(dgram);
		return;
	}
	end_all(dgram);
	if (dgram->refs > 1 && self && self->sched->loop == loop) {
		weft__op_init_waited(&op);
		if (weft_op_begin(&op, on_close_cancel, NULL, WEFT_NEVER) == 0)
			dgram->closer = &op;
	}
	weft__loop_changed(loop);
	self = dgram->closer ? self : NULL;
	weft__dgram_unref(dgram);
	if (self)
		(void)weft__op_wait_shielded(&op, "dgram");
}
