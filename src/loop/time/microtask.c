/* microtask.c - ticks and microtasks: what runs between two callbacks.
 *
 * A checkpoint runs all ticks, then all microtasks, and repeats until both are empty; then it
 * calls the hooks that have jobs of their own, and starts over if any job ran.  It does not nest:
 * a checkpoint inside one of its own calls would run what the outer one is about to run.  It is
 * exhaustive, like that of every JavaScript engine; a drain that does not end is reported once.
 *
 * The loop's thread queues in a ring.  Other threads send letters to the mailbox `tasks`.
 *
 *   1. A checkpoint takes the letters that are there as it begins.  Letters that arrive later
 *      wait for the next checkpoint, so a thread that keeps sending cannot hold the loop.
 *   2. A letter is its own entry in the queue: taking it needs no memory.
 *   3. Letters run before the loop's own entries.  A thread that begins to run a loop has sent
 *      its earlier entries as letters: so its order holds.
 *   4. The mailbox is closed as the loop begins to stop.  A thread that sends is a visitor of the
 *      loop, which is not freed meanwhile (invariant 3 of life.c).
 */
#include <weft/schedule.h>
#include "loop/core/loop.h"

#define FLOOD 100000u

static void
report_flood(weft_loop *loop)
{
	weft__loop_report(&(weft_report){
		.kind = WEFT_REPORT_MICROTASK_FLOOD,
		.level = 1,
		.loop = loop,
		.name = loop->name,
		.text = "a checkpoint has run 100,000 microtasks and has not ended",
	});
}

/* Count `jobs` more.  A drain is reported once, as it reaches FLOOD. */
static void
microtask_add(weft_loop *loop, uint64_t *count, uint64_t jobs)
{
	if (*count < FLOOD && *count + jobs >= FLOOD)
		report_flood(loop);
	*count += jobs;
}

/* --- tasks of other threads ---------------------------------------------- */

/* A letter has arrived. */
static void
task_take(struct weft__mailbox *box, struct weft__letter *letter)
{
	struct weft__tasks *tasks = &box->loop->tasks;
	struct weft__task *task = (struct weft__task *)(void *)letter;
	struct weft__task_list *list = task->is_tick ? &tasks->ticks : &tasks->microtasks;

	task->letter.next = NULL;
	if (list->last)
		list->last->letter.next = letter;
	else
		list->first = task;
	list->last = task;
	tasks->count++;
}

/* Remove the oldest task of a list that is not empty. */
WEFT__COLD static struct weft__call
task_pop(struct weft__tasks *tasks, struct weft__task_list *list)
{
	struct weft__task *task = list->first;
	struct weft__call call = task->call;

	weft__assert(tasks->count > 0); /* invariant 2 */
	list->first = (struct weft__task *)(void *)task->letter.next;
	if (!list->first)
		list->last = NULL;
	tasks->count--;
	weft__sys->release(task);
	return call;
}

void
weft__tasks_init(weft_loop *loop)
{
	weft__mailbox_init(&loop->tasks.box, loop, task_take);
}

void
weft__tasks_close(weft_loop *loop)
{
	struct weft__mailbox *box = &loop->tasks.box;
	struct weft__letter *letter = weft__mailbox_close(box), *next;

	for (; letter; letter = next) {
		next = letter->next;
		task_take(box, letter);
	}
}

/* Only in a forked child is there something left. */
void
weft__tasks_fini(weft_loop *loop)
{
	struct weft__tasks *tasks = &loop->tasks;

	weft__tasks_close(loop);
	while (tasks->ticks.first)
		(void)task_pop(tasks, &tasks->ticks);
	while (tasks->microtasks.first)
		(void)task_pop(tasks, &tasks->microtasks);
}

/* --- checkpoints --------------------------------------------------------- */

static void
run_tasks(weft_loop *loop, struct weft__task_list *list, struct weft__ring *ring, uint64_t *count)
{
	for (;;) {
		struct weft__call call;

		if (__builtin_expect(list->first != NULL, 0))
			call = task_pop(&loop->tasks, list);
		else if (ring->count > 0)
			call = weft__ring_pop(ring);
		else
			return;
		microtask_add(loop, count, 1);
		call.fn(call.arg);
	}
}

/* There is something to run, apart from letters that have not been taken. */
static bool
has_jobs(const weft_loop *loop)
{
	return weft__loop_task_count(loop) | loop->promises_due;
}

void
weft__checkpoint_slow(weft_loop *loop)
{
	uint64_t count = 0, begin_ns = 0, jobs;

	if (loop->in_checkpoint)
		return;
	weft__mailbox_drain(&loop->tasks.box); /* invariant 1 */
	if (!has_jobs(loop) && !loop->hooks.checkpoints)
		return;
	loop->in_checkpoint = true;
	if (loop->timed)
		begin_ns = weft__sampler_drain(loop, weft__loop_task_count(loop));
	do {
		while (weft__loop_task_count(loop) > 0) {
			run_tasks(loop, &loop->tasks.ticks, &loop->ticks, &count);
			run_tasks(loop, &loop->tasks.microtasks, &loop->microtasks, &count);
		}
		jobs = loop->hooks.checkpoints ? weft__hooks_checkpoint(loop) : 0;
		if (!jobs && loop->promises_due) {
			loop->promises_due = false;
			jobs = weft__loop_part(loop, WEFT__PART_PROMISES)->ops->due(loop);
		}
		microtask_add(loop, &count, jobs);
	} while (jobs > 0 || has_jobs(loop));
	loop->in_checkpoint = false;
	weft__count(&loop->counts.calls[WEFT_PHASE_MICROTASKS], count);
	if (begin_ns)
		weft__sampler_drained(loop, begin_ns);
}

/* --- queueing ------------------------------------------------------------ */

/* Queue on a thread that does not run the loop: another one, or while the loop is idle. */
static int
task_send(weft_loop *loop, bool is_tick, struct weft__call call,
          const struct weft__schedule_texts *texts)
{
	struct weft__task *task = weft__sys->alloc(sizeof(*task));
	bool accepted;

	if (!task)
		return weft__fail(WEFT_ENOMEM, texts->no_memory);
	*task = (struct weft__task){ .call = call, .is_tick = is_tick };
	weft__loop_enter(loop); /* invariant 4 */
	accepted = !weft__loop_is_stopping(loop)
	           && weft__mailbox_post(&loop->tasks.box, &task->letter);
	weft__loop_exit(loop);
	if (accepted)
		return 0;
	weft__sys->release(task);
	return weft__fail(WEFT_ESHUTDOWN, texts->stopping);
}

WEFT__COLD static int
queue_slowly(weft_loop *loop, bool is_tick, struct weft__call call,
             const struct weft__schedule_texts *texts)
{
	int rc = weft__schedule_check(loop, call.fn, texts);

	if (rc < 0)
		return rc;
	if (!weft__loop_is_mine(loop) || weft__load(&loop->state, WEFT__RELAXED) == WEFT_STOPPED)
		return task_send(loop, is_tick, call, texts);
	if (weft__ring_push(is_tick ? &loop->ticks : &loop->microtasks, call.fn, call.arg) < 0)
		return weft__fail(WEFT_ENOMEM, texts->no_memory);
	return 0;
}

/* The calling thread runs the loop. */
static inline bool
runs_here(const weft_loop *loop)
{
	const struct weft__thread *self = weft__thread_here();

	return self && weft__load(&loop->runner, WEFT__RELAXED) == (uintptr_t)self
	       && weft__load(&loop->state, WEFT__RELAXED) != WEFT_STOPPED
	       && !weft__loop_is_forked(loop);
}

static inline __attribute__((always_inline)) int
queue(weft_loop *loop, bool is_tick, struct weft__call call,
      const struct weft__schedule_texts *texts)
{
	loop = weft__loop_or_current(loop);
	if (loop && call.fn && runs_here(loop)
	    && weft__ring_push(is_tick ? &loop->ticks : &loop->microtasks, call.fn, call.arg) == 0)
		return 0;
	return queue_slowly(loop, is_tick, call, texts);
}

int
weft_schedule_microtask(weft_loop *loop, weft_fn fn, void *arg)
{
	static const struct weft__schedule_texts texts = WEFT__SCHEDULE_TEXTS(
		"weft_schedule_microtask");

	return queue(loop, false, (struct weft__call){ fn, arg }, &texts);
}

int
weft_schedule_tick(weft_loop *loop, weft_fn fn, void *arg)
{
	static const struct weft__schedule_texts texts = WEFT__SCHEDULE_TEXTS("weft_schedule_tick");

	return queue(loop, true, (struct weft__call){ fn, arg }, &texts);
}
