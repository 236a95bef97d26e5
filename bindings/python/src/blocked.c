/* blocked.c - a loop that is held too long: by which Python code.
 *
 * weft's watchdog finds the loop and tells a hook, on a thread of its own.  There the GIL
 * is taken, which Python code lets go of every few milliseconds, and the stack of the
 * loop's thread is written to asyncio's log.
 *
 *   1. Entries are of loops with a watchdog, from _open() to _dispose(); the lock guards
 *      the list, and is never held with the GIL being waited for.
 *   2. Only the main interpreter's loops are told of: the thread has no other state.
 */
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
on_report(void *arg, const weft_report *report)
{
	unsigned long owner;
	PyGILState_STATE gil;
	PyObject *module, *result = NULL;

	(void)arg;
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

/* Once in a process: another interpreter finds that it is done. */
void
weftpy_blocked_init(void)
{
	weft_hooks hooks = { .on_report = on_report };

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
