/* op.c - ops: starting them, canceling them, and the one place where they finish.
 *
 *   1. A pending op is waiting (in the backend, or in the wheel), or in the list of finished
 *      ops.  Sleeping ops, custom ops and ops on files are always in the wheel, if need be
 *      with the last possible deadline; so every pending op can be found.  The op of
 *      weft__op_follow() has its result already, and is not in the wheel.
 *   2. weft__op_deliver() hands every result to its owner.  Before on_done is called the op
 *      belongs to the caller again, unless more results follow.
 *   3. A second cancel request has no effect: only a waiting op accepts one.  The owner of a
 *      custom op is notified in the timer phase, not inside the request.
 *   4. Any thread may finish a custom op: the first to set node.state has finished it (F); the
 *      result then travels through the inbox.
 */
#include <errno.h>
#include <string.h>
#include "loop/core/loop.h"

/* --- texts -------------------------------------------------------------- */

/* An error on its way to the loop, with its detail text.  `posted_result` points to this struct, so
 * the cost does not depend on how many errors are on their way. */
struct text {
	int64_t result;
	char bytes[];
};

/* If weft_fail() has set a text for `error` on this thread, which finishes the op, send the text
 * along.  Returns what to store in `posted_result`. */
WEFT__COLD static int64_t
with_text(struct weft__op *op, int64_t error)
{
	const char *detail = weft__take_text((int)error);
	size_t size = detail ? strlen(detail) + 1 : 0;
	struct text *text = detail ? weft__sys->alloc(sizeof(*text) + size) : NULL;

	op->has_text = text != NULL; /* without memory, the error has no text */
	if (!text)
		return error;
	text->result = error;
	memcpy(text->bytes, detail, size);
	return (int64_t)(intptr_t)text;
}

static struct text *
loop_op_text_of(const struct weft__op *op)
{
	return (struct text *)(intptr_t)weft__get(op->posted_result);
}

/* Makes the text available to on_done by weft_detail(). */
WEFT__COLD static void
restore_text(const struct weft__op *op)
{
	struct text *text = loop_op_text_of(op);

	(void)weft_fail((int)op->result, "%s", text->bytes);
	weft__sys->release(text);
}

/* --- the end ------------------------------------------------------------ */

void
weft__op_deliver(weft_loop *loop, struct weft__op *op)
{
	if (!op->more) {
		weft__assert(op->pending && loop->ops > 0); /* invariant 2 */
		if (op->entry.block)
			weft__wheel_drop(&loop->wheel, &op->entry);
		op->pending = false;
		op->state = WEFT__OP_IDLE;
		weft__count(&loop->alive, -(uint64_t)!op->background);
		weft__count(&loop->counts.ops_finished, 1);
		loop->ops--;
		if (op->kind == WEFT__OP_OWN && op->has_text)
			restore_text(op);
	}
	if (op->on_done)
		op->on_done((weft_op *)(void *)op, op->result, op->arg);
}

static void
loop_op_finish(struct weft__op *op, int64_t result)
{
	weft__backend_finish(&op->loop->backend, op, result);
}

void
weft__ops_run_done(weft_loop *loop)
{
	struct weft__node_list done = loop->backend.done;
	uint32_t calls = 0;

	/* Ops that callbacks finish go into a fresh list, and are delivered in the next
	 * iteration. */
	loop->backend.done = (struct weft__node_list){ 0 };
	for (; done.first && calls < WEFT__CALLS_MAX; calls++) {
		struct weft__op *op = weft__node_op(done.first);

		done.first = done.first->next;
		weft__op_deliver(loop, op);
		weft__checkpoint(loop);
	}
	weft__loop_called(loop, WEFT_PHASE_DONE, calls);
	if (done.first) { /* the rest comes first in the next iteration */
		*done.end = loop->backend.done.first;
		if (loop->backend.done.first)
			done.end = loop->backend.done.end;
		loop->backend.done = done;
	}
}

/* --- canceling ---------------------------------------------------------- */

/* A custom op has its result, which is on its way. */
static bool
has_posted_result(const struct weft__op *op)
{
	return weft__load(&op->node.state, WEFT__RELAXED) != 0;
}

void
weft__op_request_cancel(struct weft__op *op, int why)
{
	struct weft__backend *backend = &op->loop->backend;

	if (op->state < WEFT__OP_WAITING || op->state > WEFT__OP_THROTTLED
	    || op->state == WEFT__OP_CANCELING || op->kind == WEFT__OP_CLOSE
	    || op->kind == WEFT__OP_FILE_CLOSE)
		return; /* invariant 3; a close cannot be canceled */
	if (op->kind >= WEFT__OP_FILE_OPEN) {
		backend->ops->cancel(backend, op, why);
	} else if (op->kind == WEFT__OP_OWN) {
		if (has_posted_result(op))
			return;
		op->why = why;
		op->state = WEFT__OP_CANCEL_REQUESTED;
		op->entry.kind &= (uint16_t)~WEFT__ENTRY_DEADLINE;
		(void)weft__wheel_move(&op->loop->wheel, &op->entry, 0);
	} else {
		loop_op_finish(op, why);
	}
}

/* Notify the owner of a custom op that it should finish; the wheel entry has just been popped. */
static void
notify_owner(weft_loop *loop, struct weft__op *op, int why)
{
	op->state = WEFT__OP_OWNER_NOTIFIED;
	weft__assert(weft__wheel_add(&loop->wheel, &op->entry, WEFT_NEVER - 1) == 0);
	if (!has_posted_result(op))
		op->on_cancel((weft_op *)(void *)op, why, op->cancel_arg);
}

/* A deadline has passed, and results that had arrived were delivered; or an owner is to be
 * notified. */
void
weft__op_expire(weft_loop *loop, struct weft__wheel_entry *entry)
{
	struct weft__op *op = weft__entry_op(entry);

	switch (op->state) {
	case WEFT__OP_CANCEL_REQUESTED:
		notify_owner(loop, op, (int)op->why);
		break;
	case WEFT__OP_WAITING:
		if (op->kind == WEFT__OP_SLEEP)
			loop_op_finish(op, 0);
		else if (op->kind == WEFT__OP_OWN)
			notify_owner(loop, op, WEFT_ETIMEDOUT);
		else
			weft__op_request_cancel(op, WEFT_ETIMEDOUT);
		break;
	default:
		weft__op_request_cancel(op, WEFT_ETIMEDOUT);
		break;
	}
}

/* Notify the owner of a custom op that the loop stops. */
static void
notify_owner_of_stop(weft_loop *loop, struct weft__op *op)
{
	bool again = op->state == WEFT__OP_OWNER_NOTIFIED || has_posted_result(op);

	op->state = WEFT__OP_OWNER_NOTIFIED;
	if (again)
		return;
	op->on_cancel((weft_op *)(void *)op, WEFT_ESHUTDOWN, op->cancel_arg);
	weft__checkpoint(loop);
}

/* The loop stops: every pending op must finish. */
void
weft__ops_end(weft_loop *loop)
{
	struct weft__backend *backend = &loop->backend;
	struct weft__wheel_entry *entry;

	for (uint32_t i = 0; i < backend->fds.count * WEFT__FDS_PAGE; i++)
		if (weft__fds_get(&backend->fds, (int)i))
			weft__fd_evict(loop, (int)i);
	while ((entry = weft__wheel_any(&loop->wheel))) {
		struct weft__op *op = weft__entry_op(entry);

		weft__wheel_drop(&loop->wheel, entry);
		if ((entry->kind & WEFT__ENTRY_KIND) != WEFT__ENTRY_OP)
			continue; /* a timer: disarmed without a call */
		if (op->kind == WEFT__OP_SLEEP && op->state == WEFT__OP_WAITING)
			loop_op_finish(op, WEFT_ESHUTDOWN);
		else if (op->kind == WEFT__OP_OWN)
			notify_owner_of_stop(loop, op);
		else if (weft__op_is_file(op))
			weft__op_request_cancel(op, WEFT_ESHUTDOWN);
	}
	weft__parts_stop(loop);
	weft__wheel_fini(&loop->wheel);
}

void
weft_op_cancel(weft_op *handle)
{
	struct weft__op *op = weft__op_of(handle);

	if (!op || !op->pending || weft__loop_check(op->loop, "weft_op_cancel") < 0)
		return;
	weft__op_request_cancel(op, WEFT_ECANCELED);
	weft__loop_changed(op->loop);
}

/* --- starting ----------------------------------------------------------- */

int
weft_op_init(weft_op *handle, weft_loop *loop, weft_op_fn on_done, void *arg)
{
	struct weft__op *op = weft__op_of(handle);

	loop = weft__loop_or_current(loop);
	if (!op || !loop)
		return weft__misuse(WEFT_EINVAL, "weft_op_init: op is NULL, or there is no loop");
	*op = (struct weft__op){ .on_done = on_done, .arg = arg, .loop = loop };
	return 0;
}

void
weft_op_set_background(weft_op *handle, bool on)
{
	struct weft__op *op = weft__op_of(handle);

	if (!op || !op->loop || weft__loop_check(op->loop, "weft_op_set_background") < 0)
		return;
	if (op->pending)
		weft__count(&op->loop->alive, (uint64_t)op->background - on);
	op->background = on;
}

/* For error texts: the call that starts an op of this kind. */
WEFT__COLD static const char *
loop_op_call(int kind)
{
	static const char *const calls[] = {
		[WEFT__OP_SLEEP] = "weft_op_sleep",
		[WEFT__OP_OWN] = "weft_op_begin",
		[WEFT__OP_CLOSE] = "weft_op_close",
		[WEFT__OP_POLL] = "weft_op_poll",
		[WEFT__OP_RECV] = "weft_op_recv",
		[WEFT__OP_RECV_MULTI] = "weft_op_recv_multi",
		[WEFT__OP_ACCEPT] = "weft_op_accept",
		[WEFT__OP_SEND] = "weft_op_send",
		[WEFT__OP_SENDMSG] = "weft_stream_write",
		[WEFT__OP_SENDFILE] = "weft_stream_write_file",
		[WEFT__OP_CONNECT] = "weft_op_connect",
	};
	const char *call = (size_t)kind < sizeof(calls) / sizeof(calls[0]) ? calls[kind] : NULL;

	return call ? call : "weft_op_*";
}

/* Refuse to start an op, as misuse. */
WEFT__COLD static int
loop_op_refuse(int kind, int error, const char *reason)
{
	return weft__misuse_in(error, loop_op_call(kind), reason);
}

/* The slow path: the loop may belong to another thread, or be stopping. */
WEFT__COLD static int
check_loop(const struct weft__op *op, int kind)
{
	int rc = weft__loop_check(op->loop, loop_op_call(kind));

	if (rc < 0)
		return rc;
	if (op->pending || !weft__loop_is_stopping(op->loop) || kind == WEFT__OP_CLOSE)
		return 0;
	return op->loop->ending || !weft__thread_self()->threadlet
	               ? weft__fail_in(WEFT_ESHUTDOWN, loop_op_call(kind), "the loop is stopping")
	               : 0;
}

/* Check whether `op` may be started as `kind`, and begin to fill it.  For files the kernel
 * checks the descriptor. */
static int
loop_op_prepare(struct weft__op *op, int kind, int fd)
{
	bool has_fd = kind == WEFT__OP_CLOSE || kind >= WEFT__OP_POLL;
	int rc;

	if (!op || !op->loop || (has_fd && fd < 0))
		return loop_op_refuse(
			kind, WEFT_EINVAL,
			"op is NULL or not initialized, or the descriptor is negative");
	rc = weft__loop_is_usable(op->loop) ? 0 : check_loop(op, kind);
	if (rc < 0)
		return rc;
	if (op->pending)
		return loop_op_refuse(kind, WEFT_EBUSY, "the op is already pending");
	op->kind = (uint8_t)kind;
	op->fd = fd;
	op->flags = 0;
	op->events = 0;
	op->connecting = op->more = false;
	weft__store(&op->node.state, 0, WEFT__RELAXED);
	return 0;
}

static void
submit(struct weft__op *op)
{
	struct weft__backend *backend = &op->loop->backend;
	int rc = weft__loop_open_backend(op->loop);

	if (rc < 0)
		loop_op_finish(op, rc);
	else
		backend->ops->submit(backend, op);
}

static void
begin_pending(struct weft__op *op)
{
	weft_loop *loop = op->loop;

	op->pending = true;
	op->state = WEFT__OP_WAITING;
	weft__count(&loop->alive, !op->background);
	weft__count(&loop->counts.ops_started, 1);
	loop->ops++;
}

static int
start_quietly(struct weft__op *op, uint64_t deadline_ns)
{
	weft_loop *loop = op->loop;

	if (op->kind >= WEFT__OP_POLL && weft__ready_is_free(&loop->backend, op) < 0)
		return weft__fail_in(WEFT_EBUSY, loop_op_call(op->kind),
		                     "another op or a watch already waits on this descriptor");
	if (op->kind < WEFT__OP_POLL && op->kind != WEFT__OP_CLOSE && deadline_ns == WEFT_NEVER)
		deadline_ns = WEFT_NEVER - 1; /* invariant 1 */
	if (deadline_ns != WEFT_NEVER) {
		weft__assert(!op->entry.block); /* invariant 2 */
		op->entry.kind = WEFT__ENTRY_OP | WEFT__ENTRY_BACKGROUND
		                 | (op->kind == WEFT__OP_SLEEP ? 0 : WEFT__ENTRY_DEADLINE);
		if (weft__wheel_add(&loop->wheel, &op->entry, deadline_ns) < 0)
			return weft__fail_in(WEFT_ENOMEM, loop_op_call(op->kind), "out of memory");
	}
	begin_pending(op);
	if (op->kind >= WEFT__OP_FILE_OPEN)
		submit(op);
	return 0;
}

static int
loop_op_start(struct weft__op *op, uint64_t deadline_ns)
{
	weft_loop *loop = op->loop;
	int rc = start_quietly(op, deadline_ns);

	weft__loop_changed(loop);
	return rc;
}

/* --- the calls ---------------------------------------------------------- */

int
weft_op_sleep(weft_op *handle, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_SLEEP, -1);

	return rc < 0 ? rc : loop_op_start(op, deadline_ns);
}

int
weft_op_poll(weft_op *handle, int fd, uint32_t events, uint64_t deadline_ns)
{
	const uint32_t known = WEFT_READABLE | WEFT_WRITABLE | WEFT_EV_ERROR | WEFT_EV_HUP
	                       | WEFT_EDGE | WEFT_MULTI;
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_POLL, fd);

	if (rc < 0)
		return rc;
	if ((events & ~known) || !(events & (WEFT_READABLE | WEFT_WRITABLE)))
		return weft__misuse(
			WEFT_EINVAL,
			"weft_op_poll: events need WEFT_READABLE or WEFT_WRITABLE, and no "
			"unknown bits");
	op->events = (uint16_t)events;
	return loop_op_start(op, deadline_ns);
}

int
weft_op_recv(weft_op *handle, int fd, void *buf, size_t size, int flags, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_RECV, fd);

	if (rc < 0)
		return rc;
	if (!buf && size > 0)
		return weft__misuse(WEFT_EINVAL, "weft_op_recv: buf is NULL, but size is not 0");
	op->buf = buf;
	op->size = size;
	op->flags = flags;
	return loop_op_start(op, deadline_ns);
}

int
weft_op_send(weft_op *handle, int fd, const void *buf, size_t size, int flags, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_SEND, fd);

	if (rc < 0)
		return rc;
	if (!buf && size > 0)
		return weft__misuse(WEFT_EINVAL, "weft_op_send: buf is NULL, but size is not 0");
	op->data = buf;
	op->size = size;
	op->flags = flags;
	return loop_op_start(op, deadline_ns);
}

int
weft_op_recv_multi(weft_op *handle, int fd, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_RECV_MULTI, fd);

	if (rc < 0)
		return rc;
	op->buf = NULL;
	return loop_op_start(op, deadline_ns);
}

const void *
weft_op_data(const weft_op *op)
{
	return op && op->loop && op->kind == WEFT__OP_RECV_MULTI ? op->loop->backend.data : NULL;
}

int
weft__op_sendmsg(weft_op *handle, int fd, const struct msghdr *msg, int flags, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_SENDMSG, fd);

	if (rc < 0)
		return rc;
	op->msg = msg;
	op->flags = flags;
	return loop_op_start(op, deadline_ns);
}

int
weft__op_sendfile(weft_op *handle, int fd, const struct weft__file_part *part, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_SENDFILE, fd);

	if (rc < 0)
		return rc;
	op->part = part;
	return loop_op_start(op, deadline_ns);
}

int
weft_op_accept(weft_op *handle, int fd, uint32_t events, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_ACCEPT, fd);

	if (rc < 0)
		return rc;
	if (events & ~(uint32_t)WEFT_MULTI)
		return weft__misuse(WEFT_EINVAL, "weft_op_accept: events must be 0 or WEFT_MULTI");
	op->events = (uint16_t)events;
	return loop_op_start(op, deadline_ns);
}

int
weft_op_connect(weft_op *handle, int fd, const struct sockaddr *addr, socklen_t size,
                uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_CONNECT, fd);

	if (rc < 0)
		return rc;
	if (!addr)
		return weft__misuse(WEFT_EINVAL, "weft_op_connect: addr is NULL");
	op->addr = addr;
	op->size = size;
	return loop_op_start(op, deadline_ns);
}

bool
weft__loop_has_files(weft_loop *loop)
{
	return weft__loop_open_backend(loop) == 0 && loop->backend.ops->files;
}

int
weft__op_start_file(weft_op *handle, const struct weft__file_call *call, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, call->kind, call->fd);

	if (rc < 0)
		return rc;
	op->length = call->length;
	op->buf = call->buf;
	op->offset = call->offset;
	return loop_op_start(op, deadline_ns);
}

/* --- closing ------------------------------------------------------------ */

void
weft__fd_evict(weft_loop *loop, int fd)
{
	for (int direction = 0; direction < 2; direction++) {
		struct weft__op *op = weft__ready_op_at(&loop->backend, fd, direction);
		weft_watch *watch = weft__ready_watch_at(&loop->backend, fd, direction);

		if (op)
			weft__op_request_cancel(op, WEFT_ESHUTDOWN);
		if (watch)
			weft__watch_end(loop, watch);
	}
}

int
weft_op_close(weft_op *handle, int fd)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_CLOSE, fd);

	if (rc == WEFT_ESHUTDOWN) /* the loop has stopped; the call takes `fd` nevertheless */
		(void)weft__kernel(&op->loop->backend)->close(fd);
	if (rc < 0)
		return rc;
	rc = start_quietly(op, WEFT_NEVER);
	if (rc < 0)
		return rc;
	weft__fd_evict(op->loop, fd); /* the evicted ops come before `op` in the list */
	weft__ready_close(&op->loop->backend, op);
	weft__loop_changed(op->loop);
	return 0;
}

/* --- custom ops --------------------------------------------------------- */

int
weft_op_begin(weft_op *handle, weft_op_cancel_fn on_cancel, void *arg, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc = loop_op_prepare(op, WEFT__OP_OWN, -1);

	if (rc < 0)
		return rc;
	if (!on_cancel)
		return weft__misuse(WEFT_EINVAL, "weft_op_begin: on_cancel is NULL");
	op->on_cancel = on_cancel;
	op->cancel_arg = arg;
	return loop_op_start(op, deadline_ns);
}

/* On the loop's thread: a result has arrived. */
void
weft__op_take_result(void *arg)
{
	struct weft__op *op = arg;

	weft__assert(op->pending && weft__count_get(&op->node.state)); /* invariant 4 */
	loop_op_finish(op,
	               op->has_text ? loop_op_text_of(op)->result : weft__get(op->posted_result));
}

/* Send the result to the loop.  After that only the loop may touch the op, which may be freed. */
static void
send_result(struct weft__op *op, int64_t result, weft_fn fn)
{
	weft__put(op->posted_result, result);
	weft__loop_send(op->loop, &op->node, fn, op);
}

int
weft_op_finish(weft_op *handle, int64_t result)
{
	struct weft__op *op = weft__op_of(handle);

	if (!op || !op->loop)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_op_finish: the op is NULL or not initialized");
	if (weft__exchange(&op->node.state, WEFT__NODE_QUEUED, WEFT__ACQ_REL)) /* F */
		return weft__fail(WEFT_EALREADY, "weft_op_finish: the op has already finished");
	if (result < 0)
		result = with_text(op, result);
	if (weft__load(&op->loop->runner, WEFT__RELAXED) == (uintptr_t)weft__thread_self()) {
		weft__put(op->posted_result, result);
		weft__op_take_result(op);
	} else {
		send_result(op, result, weft__op_take_result);
	}
	return 0;
}

void
weft__op_post_result(struct weft__op *op, int64_t result, weft_fn fn)
{
	weft__assert(weft__exchange(&op->node.state, WEFT__NODE_QUEUED, WEFT__ACQ_REL)
	             == 0); /* F */
	if (result < 0)
		result = with_text(op, result);
	send_result(op, result, fn);
}

/* The op has its result from the start, so it needs no wheel entry. */
void
weft__op_follow(weft_op *handle)
{
	struct weft__op *op = weft__op_of(handle);
	weft_loop *loop = op->loop;

	op->kind = WEFT__OP_OWN;
	begin_pending(op);
	(void)weft_op_finish(handle, 0);
	weft__loop_changed(loop);
}
