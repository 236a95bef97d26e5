/* make.c - promises of ops, functions and threadlets.
 *
 * A promise and its op are one block.  An idle op holds no reference: if the op cannot be
 * started, the promise is simply dropped.  A pending op holds a reference from when the
 * promise lands, or when the last other reference is dropped on the loop's thread, until the
 * op has finished.  So other code may settle the promise while the op is pending.  But after
 * that the op must not be started, if the promise is then dropped on another thread.
 */
#include "promise/promise.h"

struct op_promise {
	weft_promise promise;
	weft_op op;
	bool keeps; /* the op holds a reference */
};

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct op_promise *with = arg;

	if (op->more)
		return;
	if (!with->keeps) /* for the time of settling */
		weft__promise_ref_pending(&with->promise);
	with->keeps = true;
	if (result < 0)
		(void)weft__promise_fail(&with->promise, (int)result);
	else
		(void)weft_promise_resolve(&with->promise, weft_value_integer(result));
	with->keeps = false;
	(void)weft_promise_unref(&with->promise);
}

WEFT__NOINLINE bool
weft__promise_op_keeps(weft_promise *promise)
{
	struct op_promise *with = (struct op_promise *)(void *)promise;

	if (!with->op.pending || with->keeps)
		return false;
	with->keeps = true;
	(void)weft_promise_ref(promise);
	return true;
}

weft_promise *
weft_promise_new_op(weft_loop *loop, weft_op **out)
{
	struct weft__making how = {
		.loop = loop, .size = sizeof(struct op_promise), .refs = 1, .kind = WEFT__PROMISE_OP
	};
	struct op_promise *with = NULL;
	weft_promise *promise = NULL;

	if (!out)
		(void)weft__misuse(WEFT_EINVAL, "weft_promise_new_op: out is NULL");
	else
		promise = weft__promise_make(&how);
	if (!promise)
		return NULL;
	with = (struct op_promise *)(void *)promise;
	with->keeps = false;
	(void)weft_op_init(&with->op, weft__promise_loop(promise), on_done, with);
	*out = &with->op;
	return promise;
}

/* --- of a function ------------------------------------------------------ */

/* Settle a promise with the result of `fn`. */
static void
settle_by(weft_promise *promise, weft_then_fn fn, void *arg)
{
	weft_value out = { 0 };
	int rc;

	weft__failure_of(weft__thread_self())->text = NULL;
	rc = fn(NULL, &out, arg);

	if (rc >= 0)
		(void)weft_promise_resolve(promise, out);
	else if (out.type)
		(void)weft_promise_reject(promise, out);
	else
		(void)weft__promise_fail(promise, rc);
}

struct task {
	weft_promise *promise;
	weft_then_fn fn;
	void *arg;
};

static int
run_task(void *arg)
{
	struct task task = *(struct task *)arg;

	weft__sys->release(arg);
	settle_by(task.promise, task.fn, task.arg);
	(void)weft_promise_unref(task.promise);
	return 0;
}

weft_promise *
weft_promise_go(weft_loop *loop, weft_then_fn fn, void *arg)
{
	weft_promise *promise = fn ? weft_promise_new(loop) : NULL;
	struct task *task = promise ? weft__sys->alloc(sizeof(*task)) : NULL;
	weft_go_opts opts = { .loop = weft__loop_or_current(loop) };

	if (!fn)
		(void)weft__misuse(WEFT_EINVAL, "weft_promise_go: fn is NULL");
	if (!task) {
		if (promise)
			(void)weft__fail(WEFT_ENOMEM, "weft_promise_go: out of memory");
		return weft_promise_unref(promise);
	}
	*task = (struct task){ weft_promise_ref(promise), fn, arg };
	if (weft_go_with(&opts, run_task, task) > 0)
		return promise;
	weft__sys->release(task);
	(void)weft_promise_unref(promise);
	return weft_promise_unref(promise);
}
