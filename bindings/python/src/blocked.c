/* blocked.c - reports which Python code blocks a loop for too long.
 *
 * weft's watchdog detects the blocked loop and calls a hook on its own thread.  The hook takes
 * the GIL, which Python code releases every few milliseconds, and writes the stack of the loop's
 * thread to asyncio's log.
 *
 *   1. The list contains the loops that have a watchdog, from _open() to _dispose().  The lock
 *      protects the list, and is never held while waiting for the GIL.
 *   2. fork() takes the lock, and the parent and the child release it.  So the child has the lock
 *      free and the list complete, although the thread that was using them does not exist in it.
 *   3. Only loops of the main interpreter are reported, because the hook's thread has no state
 *      for any other.
 */
#include <pthread.h>
#include "core.h"

struct blocked {
	weft_loop *loop;
	struct loop_core *core;
	struct blocked *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct blocked *watched;

static unsigned long
owner_of(weft_loop *loop)
{
	unsigned long owner = 0;

	pthread_mutex_lock(&lock);
	for (struct blocked *entry = watched; entry; entry = entry->next)
		if (entry->loop == loop)
			owner = __atomic_load_n(&entry->core->owner, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return owner;
}

static void
on_report(void *Py_UNUSED(arg), const weft_report *report)
{
	unsigned long owner;
	PyGILState_STATE gil;
	PyObject *module, *result = NULL;

	if (report->kind != WEFT_REPORT_BLOCKED) {
		if (report->level <= 1)
			weft_report_print(report);
		return;
	}
	owner = owner_of(report->loop);
	if (owner == 0)
		return;
	gil = PyGILState_Ensure();
	module = PyImport_ImportModule("weft._blocked");
	if (module)
		result = PyObject_CallMethod(module, "report", "ks", owner, report->text);
	if (!result)
		PyErr_WriteUnraisable(module);
	Py_XDECREF(result);
	Py_XDECREF(module);
	PyGILState_Release(gil);
}

static void
before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* Without memory for it, a child forked at a bad moment hangs. */
static void
watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}

/* Takes effect once per process; a further interpreter finds the hook already set. */
void
weftpy_blocked_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	weft_hooks hooks = { .on_report = on_report };

	(void)pthread_once(&once, watch_forks);
	(void)weft_set_hooks(&hooks);
}

int
weftpy_blocked_watch(struct loop_core *core)
{
	struct blocked *entry = PyMem_RawMalloc(sizeof *entry);

	if (!entry) {
		PyErr_NoMemory();
		return -1;
	}
	pthread_mutex_lock(&lock);
	*entry = (struct blocked){ core->loop, core, watched };
	watched = entry;
	pthread_mutex_unlock(&lock);
	return 0;
}

void
weftpy_blocked_forget(struct loop_core *core)
{
	struct blocked **link = &watched, *entry = NULL;

	pthread_mutex_lock(&lock);
	while (*link && (*link)->core != core)
		link = &(*link)->next;
	if (*link) {
		entry = *link;
		*link = entry->next;
	}
	pthread_mutex_unlock(&lock);
	PyMem_RawFree(entry);
}
