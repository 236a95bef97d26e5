/* py_child.c - watches for the exit of child processes, without threads and signals.
 *
 * The handle to call is made when the watch starts, with a reserved slot in the ring.  So an
 * exit cannot be lost for lack of memory.
 */
#include "core.h"
#include <sys/wait.h>

#define CODE_UNKNOWN 255 /* asyncio's code for a child that was reaped elsewhere */

struct child {
	weft_watch watch;
	struct loop_core *core;
	struct handle *handle;  /* callback(pid, code) */
	struct weft__link link; /* in the loop's list */
};

static int
code_of(int status)
{
	if (status >= 0 && WIFEXITED(status))
		return WEXITSTATUS(status);
	return status >= 0 && WIFSIGNALED(status) ? -WTERMSIG(status) : CODE_UNKNOWN;
}

static void
py_child_on_end(weft_watch *Py_UNUSED(watch), int status, void *arg)
{
	struct child *child = arg;
	PyObject *code = PyLong_FromLong(code_of(status));

	if (!code) {
		PyErr_Clear();
		code = PyLong_FromLong(CODE_UNKNOWN); /* small integers always exist */
	}
	Py_SETREF(child->handle->args[1], code);
	weft__link_remove(&child->link);
	weftpy_ring_push_reserved(child->core, (PyObject *)child->handle);
	PyMem_RawFree(child);
}

/* Calls callback(pid, code) when the child has exited. */
int
weftpy_child_watch(struct loop_core *core, pid_t pid, PyObject *callback)
{
	PyObject *number = PyLong_FromLong(pid);
	PyObject *args[3] = { callback, number, Py_None };
	struct child *child = PyMem_RawCalloc(1, sizeof *child);
	int rc = WEFT_ENOMEM;

	if (child && number)
		child->handle = weftpy_handle_new(core, args, 3, NULL);
	Py_XDECREF(number);
	/* Making the handle may have run code that filled the ring. */
	if (child && child->handle && weftpy_ring_reserve(core, 1) == 0) {
		child->core = core;
		rc = weft_watch_start_pid(core->loop, &child->watch, pid, py_child_on_end, child);
	}
	if (rc < 0) {
		if (child)
			Py_XDECREF(child->handle);
		PyMem_RawFree(child);
		if (!PyErr_Occurred())
			weftpy_error(rc);
		return -1;
	}
	weftpy_handle_track((PyObject *)child->handle);
	core->reserved++;
	weft__link_after(&core->children, &child->link);
	return 0;
}

int
weftpy_children_traverse(struct loop_core *core, visitproc visit, void *arg)
{
	for (struct weft__link *at = core->children.next; at != &core->children; at = at->next)
		Py_VISIT(WEFT__LINK_OF(child, link, at)->handle);
	return 0;
}

void
weftpy_children_clear(struct loop_core *core)
{
	while (!weft__list_is_empty(&core->children)) {
		struct child *child = WEFT__LINK_OF(child, link, core->children.next);
		struct handle *handle = child->handle;

		(void)weft_watch_stop(&child->watch);
		weft__link_remove(&child->link);
		core->reserved--;
		PyMem_RawFree(child);
		Py_DECREF(handle);
	}
}
