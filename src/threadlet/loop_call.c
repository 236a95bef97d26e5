/* loop_call.c - a function runs on another loop, and its caller waits for the result.
 *
 * The function runs in a threadlet of that loop.  The caller and that threadlet share the call.
 *
 *   1. `state` decides whether the function runs: the threadlet changes NEW to BEGUN, or a caller
 *      that stops waiting changes NEW to WITHDRAWN.  After WITHDRAWN nothing uses `arg`, which
 *      may be gone.
 *   2. Once the function has begun, the caller waits until it has returned, because `arg` is in
 *      use.  If the caller is canceled or interrupted, or times out, the same is requested of the
 *      threadlet, so that its waits end with the same error.
 *   3. The threadlet writes `result` and `text` before it sets `over`, and the caller reads them
 *      after it has waited for `over`.
 */
#include <weft/sync.h>
#include "threadlet/waitable.h"

enum { NEW, BEGUN, WITHDRAWN };

struct call {
	weft_threadlet_fn fn;
	void *arg;
	weft_event over;
	int result;
	char *text; /* message of the result, or NULL */
	weft__a32 state;
	weft__a32 refs;
};

static void
call_drop(struct call *call)
{
	if (weft__add(&call->refs, UINT32_MAX, WEFT__ACQ_REL) != 1)
		return;
	weft__sys->release(call->text);
	weft__sys->release(call);
}

/* Invariant 1. */
static bool
call_decide(struct call *call, uint32_t state)
{
	uint32_t before = NEW;

	return weft__cas(&call->state, &before, state, WEFT__ACQ_REL);
}

/* A loop that stops cancels its threadlets.  For the caller, which was not canceled, that is
 * WEFT_ESHUTDOWN. */
static int
call_run(const struct call *call)
{
	int rc = weft_check_canceled();

	if (rc == 0)
		rc = call->fn(call->arg);
	if (rc == WEFT_ECANCELED && weft__loop_is_stopping(weft__thread_self()->loop))
		rc = weft__fail(WEFT_ESHUTDOWN, "weft_loop_call: the loop was shut down");
	return rc;
}

static int
call_main(void *arg)
{
	struct call *call = arg;

	if (call_decide(call, BEGUN)) {
		call->result = call_run(call);
		if (call->result < 0)
			call->text = weft__copy_detail(call->result);
		(void)weft_event_set(&call->over);
	}
	call_drop(call);
	return 0;
}

/* Invariant 2. */
static void
call_end(struct call *call, weft_threadlet id, int why, uint64_t deadline_ns)
{
	while (why == WEFT_EINTR) {
		(void)weft__handle_request(id, WEFT__REQUEST_INTERRUPT);
		why = weft_event_wait(&call->over, deadline_ns);
	}
	if (why == 0)
		return;
	(void)weft__handle_request(id, why == WEFT_ETIMEDOUT ? WEFT__REQUEST_TIMEOUT
	                                                     : WEFT__REQUEST_CANCEL);
	weft__event_wait_shielded(&call->over, "call");
}

static struct call *
call_new(weft_threadlet_fn fn, void *arg)
{
	struct call *call = weft__sys->alloc(sizeof(*call));

	if (!call) {
		(void)weft__fail(WEFT_ENOMEM, "weft_loop_call: out of memory");
		return NULL;
	}
	*call = (struct call){ .fn = fn, .arg = arg, .over = WEFT_SHARED_INIT };
	weft__store(&call->refs, 2, WEFT__RELAXED);
	return call;
}

static int
call_wait(struct call *call, weft_threadlet id, uint64_t deadline_ns)
{
	int rc = weft_event_wait(&call->over, deadline_ns);

	if (rc < 0 && call_decide(call, WITHDRAWN))
		return rc;
	if (rc < 0)
		call_end(call, id, rc, deadline_ns);
	rc = call->result;
	if (rc < 0)
		weft__pass_text(rc, call->text, weft__failure_of(weft__thread_self()));
	return rc;
}

/* Whether the caller may wait.  A loop that this thread embeds could not run meanwhile. */
static int
call_check(const weft_loop *loop, uint64_t deadline_ns)
{
	if (!weft__self() && loop != WEFT_LEAST_LOADED && weft__loop_is_hosted_here(loop))
		return weft__fail(
			WEFT_EDEADLK,
			"weft_loop_call: this thread embeds the loop, which cannot run while the "
			"thread waits");
	return weft__waitable_may_wait(true, deadline_ns);
}

int
weft_loop_call(weft_loop *loop, weft_threadlet_fn fn, void *arg, uint64_t deadline_ns)
{
	weft_go_opts opts = { .name = "call", .loop = loop };
	weft_threadlet id;
	struct call *call;
	int rc;

	if (!loop || !fn)
		return weft__misuse(WEFT_EINVAL, "weft_loop_call: loop or fn is NULL");
	rc = call_check(loop, deadline_ns);
	if (rc < 0)
		return rc;
	call = call_new(fn, arg);
	if (!call)
		return WEFT_ENOMEM;
	id = weft_go_with(&opts, call_main, call);
	if (id < 0) {
		call_drop(call); /* the reference of the threadlet */
		rc = (int)id;
	} else {
		rc = call_wait(call, id, deadline_ns);
	}
	call_drop(call);
	return rc;
}
