/* job.c - runs the jobs of scripts at the loop's microtask checkpoint.
 *
 * The engine has one queue for promise jobs and queueMicrotask(), and a queue of ticks.  The
 * checkpoint runs them after the loop's own ticks and microtasks: all ticks, then all jobs,
 * until there are none; then unhandled rejections are judged, and if that created jobs, it
 * starts again.  After a module was loaded its jobs come first, because its body itself counts
 * as a job; Node does the same.
 *
 * Each job is a callback with a time limit.  A drain of the queues has the same limit; after
 * that, what is left waits for the next loop iteration.  So jobs that create jobs forever do not
 * block the loop.
 */
#include "engine.h"

#define LOOK 1024

bool
weft__js_has_jobs(weft_js *js)
{
	return js->tasks.ticks || JS_IsJobPending(js->rt);
}

/* Reads the clock only once in LOOK calls.  Each job and each tick has the full time limit of a
 * callback. */
static bool
goes_on(weft_js *js, int count)
{
	js->until_ns = 0;
	if (js->ended || js->stopped)
		return false;
	if (count % LOOK != LOOK - 1)
		return true;
	if (js->drain_until_ns == 0)
		js->drain_until_ns = weft_after(js->opts.run_ns);
	return js->drain_until_ns == WEFT_NEVER || weft_now() < js->drain_until_ns;
}

static int
run_jobs(weft_js *js)
{
	JSContext *ctx;
	int count = 0, rc;

	while (goes_on(js, count) && (rc = JS_ExecutePendingJob(js->rt, &ctx)) != 0) {
		if (rc < 0)
			weft__js_uncaught(js);
		count++;
	}
	return count;
}

static int
run_ticks(weft_js *js)
{
	int count = 0;

	while (goes_on(js, count) && weft__js_run_tick(js))
		count++;
	return count;
}

static int
drain(weft_js *js)
{
	int count = 0;

	weft__js_enter(js);
	js->drain_until_ns = 0;
	if (js->jobs_first)
		count += run_jobs(js);
	js->jobs_first = false;
	count += run_ticks(js);
	if (!js->tasks.ticks)
		count += run_jobs(js);
	if (JS_IsJobPending(js->rt) || js->tasks.ticks)
		js->yielded = !goes_on(js, LOOK - 1);
	weft__js_leave(js);
	return count;
}

int
weft__js_checkpoint(weft_loop *loop UNUSED, void *arg)
{
	weft_js *js = arg;

	if (js->ended || js->yielded || js->depth > 0)
		return 0;
	if (weft__js_has_jobs(js))
		return drain(js);
	js->jobs_first = false;
	return js->rejections.count > 0 ? weft__js_judge(js) : 0;
}

/* A loop that was idle may be stopping on a thread that is not its own: dropped values then end
 * with the engine. */
int
weft__js_ready(weft_loop *loop, void *arg)
{
	weft_js *js = arg;

	if (weft_loop_state(loop) != WEFT_STOPPING)
		weft__js_handles_end_dropped(js);
	js->yielded = false;
	return !js->ended && weft__js_has_jobs(js);
}

/* An exception in it is an uncaught error, not a rejection. */
static JSValue
run_queued(JSContext *ctx, int count UNUSED, JSValueConst *args)
{
	JSValue result = JS_Call(ctx, args[0], JS_UNDEFINED, 0, NULL);

	if (JS_IsException(result))
		weft__js_uncaught(weft__js_of(ctx));
	JS_FreeValue(ctx, result);
	return JS_UNDEFINED;
}

int
weft__js_queue(weft_js *js, JSValueConst fn)
{
	return JS_EnqueueJob(js->ctx, run_queued, 1, &fn);
}
