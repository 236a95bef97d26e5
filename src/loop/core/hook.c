/* hook.c - hooks: calls that bindings request at points of each loop iteration.
 *
 * A loop's hooks are one list, in the order of their pushes.  A pass calls one member of each
 * hook.  A called hook may push and drop any hook, so:
 *
 *   1. A pass refers to a hook only by its cursor, which is in the loop's list of cursors.
 *      Dropping a hook advances every cursor that is about to visit it.
 *   2. A pass calls the hooks that existed when it began: each push gets a number, and the
 *      pass skips later ones.  after_wait is called for the hooks that existed when
 *      before_wait began, so the two are paired.
 *   3. The counts (checkpoints, changes, more) cover the hooks in the list.  So a loop without
 *      such hooks needs to check only the counts.
 *   4. `notified_ns` is what the host knows: the last result of weft_loop_next(), or its value
 *      when next_changed was last called.
 */
#include "loop/core/loop.h"

/* The opaque part of a weft_loop_hook. */
struct links {
	weft_loop_hook *next, *before;
	weft_loop *loop;   /* NULL: not pushed */
	uint64_t more : 1; /* its last `ready` returned > 0 */
	uint64_t number : 63;
};
WEFT_STATIC_ASSERT(sizeof(struct links) == sizeof(((weft_loop_hook *)0)->opaque), "one layout");

struct weft__hook_cursor {
	weft_loop_hook *next;
	bool backward;
	uint64_t last; /* number of the last hook that the pass calls */
	struct weft__hook_cursor *outer;
};

static struct links *
links_of(weft_loop_hook *hook)
{
	return (struct links *)(void *)hook->opaque;
}

/* --- passes ------------------------------------------------------------- */

static void
loop_hook_begin(weft_loop *loop, struct weft__hook_cursor *cursor, bool backward)
{
	struct weft__hooks *hooks = &loop->hooks;

	*cursor = (struct weft__hook_cursor){
		.next = backward ? hooks->last : hooks->first,
		.backward = backward,
		.last = hooks->pushes,
		.outer = hooks->cursors,
	};
	hooks->cursors = cursor;
}

/* Every loop_hook_begin() has its loop_hook_end() in the same function: the cursor is on that
 * function's stack. */
static void
loop_hook_end(weft_loop *loop, const struct weft__hook_cursor *cursor)
{
	weft__assert(loop->hooks.cursors == cursor); /* invariant 1 */
	loop->hooks.cursors = cursor->outer;
}

/* The next hook of the pass, or NULL. */
static weft_loop_hook *
visit(struct weft__hook_cursor *cursor)
{
	weft_loop_hook *hook;

	while ((hook = cursor->next)) {
		struct links *links = links_of(hook);

		cursor->next = cursor->backward ? links->before : links->next;
		if (links->number <= cursor->last)
			return hook;
	}
	return NULL;
}

static void
set_more(weft_loop *loop, weft_loop_hook *hook, bool more)
{
	struct links *links = links_of(hook);

	loop->hooks.more += (uint32_t)more - links->more;
	links->more = more;
}

void
weft__hooks_ready(weft_loop *loop)
{
	struct weft__hook_cursor cursor;
	weft_loop_hook *hook;

	loop_hook_begin(loop, &cursor, false);
	while ((hook = visit(&cursor))) {
		if (!hook->ready)
			continue;
		set_more(loop, hook, false);
		loop->hooks.called = hook;
		if (hook->ready(loop, hook->arg) > 0 && loop->hooks.called)
			set_more(loop, hook, true);
		weft__checkpoint(loop);
	}
	loop_hook_end(loop, &cursor);
}

void
weft__hooks_before_wait(weft_loop *loop, bool may_block)
{
	struct weft__hook_cursor cursor;
	weft_loop_hook *hook;

	loop_hook_begin(loop, &cursor, false);
	loop->hooks.waiting = cursor.last;
	while ((hook = visit(&cursor)))
		if (hook->before_wait)
			hook->before_wait(loop, may_block, hook->arg);
	loop_hook_end(loop, &cursor);
}

/* No checkpoint runs between before_wait and after_wait: before_wait may have released a lock that
 * jobs need, such as Python's GIL. */
void
weft__hooks_after_wait(weft_loop *loop, bool may_block)
{
	struct weft__hook_cursor cursor;
	weft_loop_hook *hook;

	loop_hook_begin(loop, &cursor, true);
	cursor.last = loop->hooks.waiting; /* invariant 2 */
	while ((hook = visit(&cursor)))
		if (hook->after_wait)
			hook->after_wait(loop, may_block, hook->arg);
	loop_hook_end(loop, &cursor);
	weft__checkpoint(loop);
}

uint64_t
weft__hooks_checkpoint(weft_loop *loop)
{
	struct weft__hook_cursor cursor;
	weft_loop_hook *hook;
	uint64_t count = 0;

	loop_hook_begin(loop, &cursor, false);
	while ((hook = visit(&cursor)))
		if (hook->checkpoint) {
			int jobs = hook->checkpoint(loop, hook->arg);

			count += jobs > 0 ? (uint64_t)jobs : 0;
		}
	loop_hook_end(loop, &cursor);
	return count;
}

static void
hooks_notify_all(weft_loop *loop)
{
	struct weft__hook_cursor cursor;
	weft_loop_hook *hook;

	loop_hook_begin(loop, &cursor, false);
	while ((hook = visit(&cursor)))
		if (hook->next_changed)
			hook->next_changed(loop, hook->arg);
	loop_hook_end(loop, &cursor);
}

/* A change made by a next_changed callback is reported after all hooks have been called. */
void
weft__hooks_notify(weft_loop *loop)
{
	uint64_t next_ns;

	if (weft__load(&loop->runner, WEFT__RELAXED) || loop->hooks.notifying)
		return;
	loop->hooks.notifying = true;
	while ((next_ns = weft__loop_next(loop)) != loop->hooks.notified_ns) {
		loop->hooks.notified_ns = next_ns;
		hooks_notify_all(loop);
	}
	loop->hooks.notifying = false;
}

/* --- the list ----------------------------------------------------------- */

static void
count(weft_loop *loop, const weft_loop_hook *hook, uint32_t by)
{
	loop->hooks.checkpoints += hook->checkpoint ? by : 0;
	loop->hooks.changes += hook->next_changed ? by : 0;
	loop->quick = loop->hooks.changes ? ~loop->forks : loop->forks;
}

int
weft_loop_push_hook(weft_loop *loop, weft_loop_hook *hook)
{
	struct weft__hooks *hooks;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_loop_push_hook");
	if (rc < 0)
		return rc;
	if (!hook)
		return weft__misuse(WEFT_EINVAL, "weft_loop_push_hook: hook is NULL");
	if (links_of(hook)->loop)
		return weft__misuse(WEFT_EBUSY,
		                    "weft_loop_push_hook: the hook is already on a loop");
	hooks = &loop->hooks;
	*links_of(hook) =
		(struct links){ .before = hooks->last, .loop = loop, .number = ++hooks->pushes };
	*(hooks->last ? &links_of(hooks->last)->next : &hooks->first) = hook;
	hooks->last = hook;
	count(loop, hook, 1);
	return 0;
}

/* Invariant 1. */
static void
move_cursors(weft_loop *loop, weft_loop_hook *hook)
{
	struct links *links = links_of(hook);

	for (struct weft__hook_cursor *c = loop->hooks.cursors; c; c = c->outer)
		if (c->next == hook)
			c->next = c->backward ? links->before : links->next;
	if (loop->hooks.called == hook)
		loop->hooks.called = NULL;
}

static void
loop_hook_drop(weft_loop *loop, weft_loop_hook *hook)
{
	struct weft__hooks *hooks = &loop->hooks;
	struct links *links = links_of(hook);

	move_cursors(loop, hook);
	set_more(loop, hook, false);
	count(loop, hook, UINT32_MAX);
	*(links->before ? &links_of(links->before)->next : &hooks->first) = links->next;
	*(links->next ? &links_of(links->next)->before : &hooks->last) = links->before;
	*links = (struct links){ .loop = NULL };
}

void
weft_loop_drop_hook(weft_loop *loop, weft_loop_hook *hook)
{
	loop = weft__loop_or_current(loop);
	if (!hook || !loop || links_of(hook)->loop != loop)
		return;
	if (weft__loop_check(loop, "weft_loop_drop_hook") == 0)
		loop_hook_drop(loop, hook);
}

void
weft__hooks_fini(weft_loop *loop)
{
	const struct weft__hooks *hooks = &loop->hooks;

	while (hooks->first)
		loop_hook_drop(loop, hooks->first);
	weft__assert(!hooks->checkpoints && !hooks->changes && !hooks->more); /* invariant 3 */
}
