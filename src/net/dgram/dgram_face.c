/* dgram_face.c - datagrams by callback.
 *
 * A watch on the socket reports messages, and a buffer has room for a batch of the largest ones.
 * The kernel backs only the pages of the buffer that were ever used.  The op `life` represents the
 * callback: it ends when the socket is closed or the loop stops, and makes the last call.
 */
#include <errno.h>
#include "net/dgram/dgram.h"
#include "threadlet/threadlet.h"

#define MESSAGE_MAX 65536u
/* The extra bytes keep the first bytes of the messages in different cache sets. */
#define STRIDE (MESSAGE_MAX + 192u)

/* The last call. */
static void
on_life_ended(weft_op *op, int64_t result, void *arg)
{
	weft_dgram *dgram = arg;
	weft_dgram_fn fn = dgram->fn;

	(void)op;
	(void)result;
	(void)weft_watch_stop(&dgram->watch);
	dgram->fn = NULL;
	fn(dgram, NULL, WEFT_ESHUTDOWN, dgram->arg);
	weft__dgram_unref(dgram);
}

void
weft__dgram_end_face(weft_dgram *dgram)
{
	if (!dgram->fn)
		return;
	(void)weft_watch_stop(&dgram->watch);
	/* WEFT_EALREADY: `life` is already about to end. */
	(void)weft_op_finish(&dgram->life, 0);
}

static void
on_stop(weft_op *op, int why, void *arg)
{
	(void)why;
	(void)arg;
	(void)weft_op_finish(op, 0);
}

static void
on_ready(weft_watch *watch, int what, void *arg)
{
	weft_message messages[WEFT__DGRAM_BATCH];
	weft_dgram *dgram = arg;
	int rc;

	(void)watch;
	if (what < 0) {
		weft__dgram_end_face(dgram);
		return;
	}
	for (uint32_t i = 0; i < WEFT__DGRAM_BATCH; i++) {
		messages[i].data = dgram->room + (size_t)i * STRIDE;
		messages[i].size = MESSAGE_MAX;
	}
	rc = weft__dgram_try_recv(dgram, messages, WEFT__DGRAM_BATCH);
	if (rc != -EAGAIN)
		dgram->fn(dgram, rc > 0 ? messages : NULL, rc, dgram->arg);
}

static int
dgram_face_make_room(weft_dgram *dgram)
{
	if (!dgram->room)
		dgram->room = weft__sys->alloc((size_t)STRIDE * WEFT__DGRAM_BATCH);
	return dgram->room ? 0 : weft__fail(WEFT_ENOMEM, "weft_dgram_start: out of memory");
}

/* Invariant 3 of dgram.h. */
static int
begin_life(weft_dgram *dgram, weft_loop *loop)
{
	int rc;

	weft__assert(weft_op_init(&dgram->life, loop, on_life_ended, dgram) == 0);
	weft_op_set_background(&dgram->life, true);
	rc = weft_op_begin(&dgram->life, on_stop, NULL, WEFT_NEVER);
	if (rc == 0)
		dgram->refs++;
	return rc;
}

static int
dgram_face_check(const weft_dgram *dgram, const weft_loop *loop, weft_dgram_fn fn)
{
	int rc = weft__dgram_check(dgram, "weft_dgram_start");

	if (rc < 0)
		return rc;
	if (!fn)
		return weft__misuse(WEFT_EINVAL, "weft_dgram_start: fn is NULL");
	rc = weft__loop_check(loop, "weft_dgram_start: not called on the thread of the loop");
	if (rc < 0)
		return rc;
	if (weft__loop_is_stopping(loop))
		return weft__fail(WEFT_ESHUTDOWN, "weft_dgram_start: the loop is stopping");
	return dgram->reader ? weft__fail(
		       WEFT_EBUSY, "weft_dgram_start: a threadlet already receives on this socket")
	                     : 0;
}

int
weft_dgram_start(weft_dgram *dgram, weft_loop *loop, weft_dgram_fn fn, void *arg)
{
	int rc;

	if (!loop && dgram)
		loop = weft__dgram_loop(dgram);
	loop = weft__loop_or_current(loop);
	rc = dgram_face_check(dgram, loop, fn);
	if (rc == 0)
		rc = weft__dgram_use(dgram, loop, "weft_dgram_start");
	if (rc == 0)
		rc = dgram_face_make_room(dgram);
	if (rc == 0)
		rc = weft_watch_start(loop, &dgram->watch, dgram->fd, WEFT_READABLE, on_ready,
		                      dgram);
	if (rc == 0 && !dgram->fn) {
		rc = begin_life(dgram, loop);
		if (rc < 0)
			(void)weft_watch_stop(&dgram->watch);
	}
	if (rc < 0)
		return rc;
	dgram->fn = fn;
	dgram->arg = arg;
	return 0;
}

int
weft_dgram_stop(weft_dgram *dgram)
{
	int rc = weft__dgram_check(dgram, "weft_dgram_stop");

	if (rc == 0)
		(void)weft_watch_stop(&dgram->watch);
	return rc;
}
