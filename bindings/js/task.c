/* task.c - timers, immediates and ticks of scripts.
 *
 * Tasks are in slots, which are allocated in blocks and never move.  The ID that a script sees
 * combines the slot number with the number of earlier uses of the slot.  So a lookup needs no
 * search, and an ID is never reused; a slot that is used up stays empty.  IDs belong to the
 * engine: a script cannot reach timers that C has set on the loop.
 *
 *   1. `kind` is NONE exactly while the task is in the list of unused ones, or its slot is used
 *      up.
 *   2. A task is released, and its values with it, before script code is called.
 *   3. An interval is rearmed after its callback, relative to that time, as in HTML and Node.
 */
#include "engine.h"

#define BLOCK_TASKS 128u
#define PLACE_BITS  24u
#define USES_MAX    (1u << 28)
#define NESTING_MAX 5
#define CLAMP_MS    4
#define MS_MAX      9e12 /* limit for the conversion to nanoseconds */

enum { NONE, TIMEOUT, INTERVAL, IMMEDIATE, TICK };

/* --- slots ------------------------------------------------------------------------ */

/* The memory counts as the script's, and its limit applies. */
static bool
add_block(weft_js *js)
{
	struct weft__js_tasks *all = &js->tasks;
	size_t room = (all->block_count + 1) * sizeof(*all->blocks);
	struct weft__js_task **blocks, *block;

	if (all->block_count >= (1u << PLACE_BITS) / BLOCK_TASKS)
		return false;
	blocks = js_realloc_rt(js->rt, all->blocks, room);
	if (!blocks)
		return false;
	all->blocks = blocks;
	block = js_mallocz_rt(js->rt, BLOCK_TASKS * sizeof(*block));
	if (!block)
		return false;
	for (uint32_t i = BLOCK_TASKS; i-- > 0;) {
		block[i].index = all->block_count * BLOCK_TASKS + i;
		block[i].next = all->unused;
		all->unused = &block[i];
	}
	blocks[all->block_count++] = block;
	return true;
}

static int64_t
number_of(const struct weft__js_task *task)
{
	return ((int64_t)task->uses << PLACE_BITS) + task->index + 1;
}

static struct weft__js_task *
place_of(struct weft__js_tasks *all, uint32_t index)
{
	return all->blocks[index / BLOCK_TASKS] + index % BLOCK_TASKS;
}

static struct weft__js_task *
task_find(struct weft__js_tasks *all, int64_t number)
{
	uint32_t index = (uint32_t)(number - 1) & ((1u << PLACE_BITS) - 1);
	struct weft__js_task *task;

	if (number <= 0 || index / BLOCK_TASKS >= all->block_count)
		return NULL;
	task = place_of(all, index);
	return task->kind != NONE && number_of(task) == number ? task : NULL;
}

static void
task_give_back(weft_js *js, struct weft__js_task *task)
{
	JSValue fn = task->fn, *args = task->args;
	int count = task->count;

	task->kind = NONE;
	task->args = NULL;
	if (task->background)
		weft_timer_set_background(&task->timer, false);
	task->background = false;
	if (++task->uses < USES_MAX) {
		task->next = js->tasks.unused;
		js->tasks.unused = task;
	}
	JS_FreeValueRT(js->rt, fn);
	for (int i = 0; i < count; i++)
		JS_FreeValueRT(js->rt, args[i]);
	js_free_rt(js->rt, args);
}

static bool
copy_args(weft_js *js, struct weft__js_task *task, int count, JSValueConst *args)
{
	task->count = 0;
	task->args = NULL;
	if (count <= 0)
		return true;
	task->args = js_malloc_rt(js->rt, (size_t)count * sizeof(*task->args));
	if (!task->args)
		return false;
	for (int i = 0; i < count; i++)
		task->args[i] = JS_DupValue(js->ctx, args[i]);
	task->count = count;
	return true;
}

/* Makes a task that calls `fn`.  Returns NULL, with an exception, if out of memory. */
static struct weft__js_task *
task_take(weft_js *js, uint8_t kind, JSValueConst fn, int count, JSValueConst *args)
{
	struct weft__js_task *task = js->tasks.unused;

	if (!task && add_block(js))
		task = js->tasks.unused;
	if (!task || !copy_args(js, task, count, args)) {
		(void)JS_ThrowOutOfMemory(js->ctx);
		return NULL;
	}
	js->tasks.unused = task->next;
	task->js = js;
	task->fn = JS_DupValue(js->ctx, fn);
	task->kind = kind;
	task->running = false;
	task->nesting = 0;
	return task;
}

/* --- firing ------------------------------------------------------------------------ */

static void
eval(weft_js *js, JSValueConst text)
{
	size_t size;
	const char *source;
	JSValue result = JS_EXCEPTION;

	weft__js_enter(js);
	source = JS_ToCStringLen(js->ctx, &size, text);
	if (source)
		result = JS_Eval(js->ctx, source, size, "<timer>", JS_EVAL_TYPE_GLOBAL);
	if (JS_IsException(result))
		weft__js_uncaught(js);
	if (source)
		JS_FreeCString(js->ctx, source);
	JS_FreeValue(js->ctx, result);
	weft__js_leave(js);
}

static void
task_call(weft_js *js, JSValueConst fn, int count, JSValue *args)
{
	if (js->ended)
		return;
	if (JS_IsString(fn))
		eval(js, fn);
	else
		weft__js_run(js, fn, count, args);
}

/* The last call of a task: releases the task first (invariant 2) and keeps its values for the
 * call. */
static void
call_last(struct weft__js_task *task)
{
	weft_js *js = task->js;
	JSValue fn = task->fn, *args = task->args;
	int count = task->count;

	task->fn = JS_UNDEFINED;
	task->args = NULL;
	task->count = 0;
	task_give_back(js, task);
	task_call(js, fn, count, args);
	JS_FreeValue(js->ctx, fn);
	for (int i = 0; i < count; i++)
		JS_FreeValue(js->ctx, args[i]);
	js_free_rt(js->rt, args);
}

static void on_timer(weft_timer *timer, void *arg);

static int
arm(weft_js *js, struct weft__js_task *task, uint64_t delay_ns)
{
	uint64_t due_ns = weft_after(delay_ns);

	if (due_ns == WEFT_NEVER)
		due_ns--;
	return weft_timer_start(js->loop, &task->timer, due_ns, 0, on_timer, task);
}

/* HTML's minimum delay for timers that are set by timers, nested deeply. */
static uint64_t
clamp(unsigned nesting, uint64_t delay_ns)
{
	return nesting > NESTING_MAX && delay_ns < CLAMP_MS * WEFT_MS ? CLAMP_MS * WEFT_MS
	                                                              : delay_ns;
}

static void
repeat(weft_js *js, struct weft__js_task *task)
{
	unsigned nesting = task->nesting;

	task->running = true;
	task_call(js, task->fn, task->count, task->args);
	task->running = false;
	if (task->kind == INTERVAL && !js->ended) {
		task->nesting = (uint16_t)(nesting + (nesting <= NESTING_MAX));
		if (arm(js, task, clamp(nesting, task->every_ns)) == 0)
			return;
	}
	task_give_back(js, task);
}

static void
on_timer(weft_timer *timer UNUSED, void *arg)
{
	struct weft__js_task *task = arg;
	weft_js *js = task->js;

	js->tasks.nesting = task->nesting;
	if (task->kind == INTERVAL)
		repeat(js, task);
	else
		call_last(task);
	js->tasks.nesting = 0;
}

static void
on_immediate(void *arg)
{
	call_last(arg);
}

bool
weft__js_run_tick(weft_js *js)
{
	struct weft__js_tasks *all = &js->tasks;
	struct weft__js_task *task = all->ticks;

	if (!task)
		return false;
	all->ticks = task->next;
	if (!all->ticks)
		all->ticks_end = &all->ticks;
	call_last(task);
	return true;
}

/* --- setting ------------------------------------------------------------------------- */

/* A timer handler as HTML defines it: a function, or else text to evaluate.  The caller frees
 * it. */
static JSValue
handler_of(JSContext *ctx, JSValueConst value)
{
	if (JS_IsFunction(ctx, value))
		return JS_DupValue(ctx, value);
	return JS_ToString(ctx, value);
}

/* A delay is converted to 32 bits and wraps; the minimum is 1 ms. */
static int
delay_of(JSContext *ctx, int count, JSValueConst *args, uint64_t *out)
{
	int32_t ms = 0;

	if (count > 1 && JS_ToInt32(ctx, &ms, args[1]) < 0)
		return -1;
	*out = (uint64_t)(ms < 1 ? 1 : ms) * WEFT_MS;
	return 0;
}

/* If the loop is stopping, the timer is not started, and the ID refers to no timer. */
static JSValue
task_start(weft_js *js, struct weft__js_task *task, uint64_t delay_ns)
{
	int64_t number = number_of(task);
	int rc = js->ended ? WEFT_ESHUTDOWN : arm(js, task, delay_ns);

	if (rc == WEFT_ENOMEM) {
		task_give_back(js, task);
		return JS_ThrowOutOfMemory(js->ctx);
	}
	if (rc < 0)
		task_give_back(js, task);
	return JS_NewInt64(js->ctx, number);
}

static JSValue
set_timer(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args, int kind)
{
	weft_js *js = weft__js_of(ctx);
	unsigned nesting = js->tasks.nesting;
	struct weft__js_task *task;
	uint64_t delay_ns;
	JSValue fn;

	if (count < 1)
		return JS_ThrowTypeError(ctx, "the first argument must be a function");
	fn = handler_of(ctx, args[0]);
	if (JS_IsException(fn))
		return fn;
	task = delay_of(ctx, count, args, &delay_ns) < 0
	               ? NULL
	               : task_take(js, (uint8_t)kind, fn, count - 2, args + 2);
	JS_FreeValue(ctx, fn);
	if (!task)
		return JS_EXCEPTION;
	task->nesting = (uint16_t)(nesting + (nesting <= NESTING_MAX));
	task->every_ns = delay_ns;
	return task_start(js, task, clamp(nesting, delay_ns));
}

JSValue
weft__js_timeout(weft_js *js, JSValueConst fn, double ms, bool background)
{
	struct weft__js_task *task = task_take(js, TIMEOUT, fn, 0, NULL);

	if (!task)
		return JS_EXCEPTION;
	if (!(ms >= 0))
		ms = 0;
	else if (ms > MS_MAX)
		ms = MS_MAX;
	task->background = background;
	if (background)
		weft_timer_set_background(&task->timer, true);
	return task_start(js, task, (uint64_t)(ms * 1e6));
}

static JSValue
set_immediate(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args)
{
	weft_js *js = weft__js_of(ctx);
	struct weft__js_task *task;
	int64_t number;

	if (!JS_IsFunction(ctx, args[0]))
		return JS_ThrowTypeError(ctx, "the first argument must be a function");
	task = task_take(js, IMMEDIATE, args[0], count - 1, args + 1);
	if (!task)
		return JS_EXCEPTION;
	number = number_of(task);
	task->number = js->ended ? WEFT_ESHUTDOWN
	                         : weft_schedule_immediate(js->loop, on_immediate, task);
	if (task->number < 0) {
		bool full = task->number == WEFT_ENOMEM;

		task_give_back(js, task);
		if (full)
			return JS_ThrowOutOfMemory(ctx);
	}
	return JS_NewInt64(ctx, number);
}

JSValue
weft__js_next_tick(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args)
{
	weft_js *js = weft__js_of(ctx);
	struct weft__js_task *task;

	if (!JS_IsFunction(ctx, args[0]))
		return JS_ThrowTypeError(ctx, "the first argument must be a function");
	task = task_take(js, TICK, args[0], count - 1, args + 1);
	if (!task)
		return JS_EXCEPTION;
	task->next = NULL;
	*js->tasks.ticks_end = task;
	js->tasks.ticks_end = &task->next;
	return JS_UNDEFINED;
}

/* --- clearing ------------------------------------------------------------------------- */

/* Removes the task from the loop.  A tick needs nothing: its queue is dropped as a whole. */
static void
stop(weft_js *js, struct weft__js_task *task)
{
	if (task->kind == IMMEDIATE)
		(void)weft_schedule_clear(js->loop, task->number, NULL);
	else
		(void)weft_timer_stop(&task->timer);
}

/* A task in its callback is released after that; the changed `kind` makes repeat() do it. */
static void
task_clear(weft_js *js, struct weft__js_task *task)
{
	stop(js, task);
	if (task->running)
		task->kind = TIMEOUT;
	else
		task_give_back(js, task);
}

JSValue
weft__js_clear(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED, JSValueConst *args)
{
	weft_js *js = weft__js_of(ctx);
	struct weft__js_task *task;
	double value = 0;

	if (!JS_IsNumber(args[0]) && !JS_IsString(args[0]))
		return JS_UNDEFINED;
	if (JS_ToFloat64(ctx, &value, args[0]) < 0)
		JS_FreeValue(ctx, JS_GetException(ctx));
	if (!(value >= 1 && value < 9e15))
		return JS_UNDEFINED;
	task = task_find(&js->tasks, (int64_t)value);
	if (task && task->kind != TICK)
		task_clear(js, task);
	return JS_UNDEFINED;
}

void
weft__js_tasks_clear(weft_js *js)
{
	struct weft__js_tasks *all = &js->tasks;

	all->ticks = NULL;
	all->ticks_end = &all->ticks;
	for (uint32_t i = 0; i < all->block_count * BLOCK_TASKS; i++) {
		struct weft__js_task *task = place_of(all, i);

		if (task->kind != NONE && !task->running)
			task_clear(js, task);
	}
}

void
weft__js_tasks_fini(weft_js *js)
{
	struct weft__js_tasks *all = &js->tasks;

	weft__js_tasks_clear(js);
	for (uint32_t i = 0; i < all->block_count; i++)
		js_free_rt(js->rt, all->blocks[i]);
	js_free_rt(js->rt, all->blocks);
	all->blocks = NULL;
	all->block_count = 0;
	all->unused = NULL;
}

/* --- the functions for scripts ----------------------------------------------------------- */

JSValue
weft__js_microtask(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED,
                   JSValueConst *args)
{
	if (!JS_IsFunction(ctx, args[0]))
		return JS_ThrowTypeError(ctx, "the first argument must be a function");
	return weft__js_queue(weft__js_of(ctx), args[0]) < 0 ? JS_EXCEPTION : JS_UNDEFINED;
}

static const JSCFunctionListEntry functions[] = {
	JS_CFUNC_MAGIC_DEF("setTimeout", 1, set_timer, TIMEOUT),
	JS_CFUNC_MAGIC_DEF("setInterval", 1, set_timer, INTERVAL),
	JS_CFUNC_DEF("setImmediate", 1, set_immediate),
	JS_CFUNC_DEF("clearTimeout", 1, weft__js_clear),
	JS_CFUNC_DEF("clearInterval", 1, weft__js_clear),
	JS_CFUNC_DEF("clearImmediate", 1, weft__js_clear),
	JS_CFUNC_DEF("queueMicrotask", 1, weft__js_microtask),
};

/* Replaces QuickJS's own queueMicrotask(), which does not report errors. */
void
weft__js_tasks_init(weft_js *js, JSValueConst global)
{
	JSAtom name = JS_NewAtom(js->ctx, "queueMicrotask");

	(void)JS_DeleteProperty(js->ctx, global, name, 0);
	JS_FreeAtom(js->ctx, name);
	JS_SetPropertyFunctionList(js->ctx, global, functions,
	                           sizeof(functions) / sizeof(*functions));
}
