/* job.c - the jobs of scripts, at weft's checkpoint.
 *
 * The engine has one queue, of promise jobs and of what queueMicrotask was given, and
 * ticks of its own.  The checkpoint asks for them once the loop's own ticks and microtasks
 * are done: all ticks, then all jobs, until there are none; then rejections are judged,
 * and if that made jobs, again.  After a module was loaded its jobs come first, since its
 * body counts as a job itself; that is how Node does it.
 *
 * A drain is one callback.  At its limit of time what is left waits for the next turn: so
 * jobs that make jobs for ever do not hold up the loop for ever.
 */
#include "engine.h"

bool
weft__js_has_jobs(weft_js *js)
{
	return js->tasks.ticks || JS_IsJobPending(js->rt);
}

static int
run_jobs(weft_js *js)
{
	JSContext *ctx;
	int count = 0, rc;

	while (!js->ended && !js->stopped
	       && (rc = JS_ExecutePendingJob(js->rt, &ctx)) != 0) {
		if (rc < 0)
			weft__js_uncaught(js);
		count++;
		/* Jobs may be too short to be polled. */
		if (count % 1024 == 0 && weft__js_is_late(js))
			break;
	}
	return count;
}

static int
drain(weft_js *js)
{
	int count = 0;

	weft__js_enter(js);
	if (js->jobs_first)
		count += run_jobs(js);
	js->jobs_first = false;
	count += weft__js_run_ticks(js);
	count += run_jobs(js);
	if (JS_IsJobPending(js->rt) || js->stopped)
		js->yielded = true;
	weft__js_leave(js);
	return count;
}

int
weft__js_checkpoint(weft_loop *loop, void *arg)
{
	weft_js *js = arg;

	(void)loop;
	if (js->ended || js->yielded || js->depth > 0)
		return 0;
	if (weft__js_has_jobs(js))
		return drain(js);
	js->jobs_first = false;
	return js->rejections.count > 0 ? weft__js_judge(js) : 0;
}

int
weft__js_ready(weft_loop *loop, void *arg)
{
	weft_js *js = arg;

	(void)loop;
	js->yielded = false;
	return !js->ended && weft__js_has_jobs(js);
}

/* A throw in it is an error, not a rejection. */
static JSValue
run_queued(JSContext *ctx, int count, JSValueConst *args)
{
	JSValue result = JS_Call(ctx, args[0], JS_UNDEFINED, 0, NULL);

	(void)count;
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
