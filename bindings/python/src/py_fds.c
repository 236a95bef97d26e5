/* py_fds.c - readers and writers of descriptors, and the waits of sock_*().
 *
 * Each descriptor has an entry with one watch and two directions, reading and writing.  A
 * direction holds a handle (add_reader), which is called each time, or a future (sock_recv and
 * similar), which is woken once.
 *
 *   1. An entry for readers and writers exists while it has one of them; the watch is armed for
 *      exactly the directions in use.
 *   2. An entry for sock_*() stays armed after a wait, because most sockets are waited for
 *      repeatedly; so a further wait costs no system call.  Readiness without a waiter disarms
 *      that direction until the next wait.
 *   3. Such an entry belongs to one socket object, which it references weakly.  Another object
 *      with the same number is another file: the watch is started again, and waits on the former
 *      object fail with EBADF.
 */
#include "core.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

struct fd_entry {
	weft_watch watch;
	struct loop_core *core;
	PyObject *side[2]; /* handle or future */
	PyObject *sock;    /* weak reference, for sock_*(); else NULL */
	uint32_t armed;    /* events that the watch is armed for */
	int fd;
	bool started;
};

static const uint32_t side_event[2] = { WEFT_READABLE, WEFT_WRITABLE };

static bool
is_handle_of(const struct loop_core *core, PyObject *object)
{
	return Py_TYPE(object) == core->state->handle_type;
}

static struct fd_entry *
fds_find(struct loop_core *core, int fd)
{
	return (size_t)fd < core->fds_count ? core->fds[fd] : NULL;
}

static struct fd_entry *
fds_make(struct loop_core *core, int fd)
{
	size_t count = core->fds_count ? core->fds_count : 64;
	struct fd_entry **fds;

	while (count <= (size_t)fd)
		count *= 2;
	if (count > core->fds_count) {
		fds = PyMem_RawRealloc(core->fds, count * sizeof *fds);
		if (!fds) {
			PyErr_NoMemory();
			return NULL;
		}
		memset(fds + core->fds_count, 0, (count - core->fds_count) * sizeof *fds);
		core->fds = fds;
		core->fds_count = count;
	}
	core->fds[fd] = PyMem_RawCalloc(1, sizeof **core->fds);
	if (!core->fds[fd]) {
		PyErr_NoMemory();
		return NULL;
	}
	core->fds[fd]->core = core;
	core->fds[fd]->fd = fd;
	return core->fds[fd];
}

/* Frees the entry.  The objects it held are released last, because that may run code. */
static void
discard(struct fd_entry *entry)
{
	PyObject *gone[3] = { entry->side[0], entry->side[1], entry->sock };

	if (entry->started)
		(void)weft_watch_stop(&entry->watch);
	entry->core->fds[entry->fd] = NULL;
	PyMem_RawFree(entry);
	for (int i = 0; i < 3; i++)
		Py_XDECREF(gone[i]);
}

static void on_ready(weft_watch *watch, int what, void *arg);

static int
is_done(struct weftpy_state *state, PyObject *future)
{
	return weftpy_truth(weftpy_call(future, state->names.done));
}

/* Fails a wait when its socket was closed. */
static void
fail_wait(struct loop_core *core, PyObject *future)
{
	PyObject *error;
	int rc = is_done(core->state, future);

	if (rc == 0) {
		(void)weftpy_error(WEFT_EBADF);
		error = weftpy_fetch_exception();
		rc = weftpy_done(weftpy_call_one(future, core->state->names.set_exception, error));
		Py_DECREF(error);
	}
	if (rc < 0)
		PyErr_WriteUnraisable(future);
}

/* The number refers to another file now: waits on the former one fail, and its readers and
 * writers are dropped. */
static void
end_stale(struct fd_entry *entry)
{
	struct loop_core *core = entry->core;
	PyObject *waits[2] = { entry->side[0], entry->side[1] };

	Py_XINCREF(waits[0]);
	Py_XINCREF(waits[1]);
	discard(entry);
	for (int side = 0; side < 2; side++)
		if (waits[side] && !is_handle_of(core, waits[side]))
			fail_wait(core, waits[side]);
	Py_XDECREF(waits[0]);
	Py_XDECREF(waits[1]);
}

static int
arm(struct fd_entry *entry, uint32_t events)
{
	int rc = weft_watch_start(entry->core->loop, &entry->watch, entry->fd, events, on_ready,
	                          entry);

	if (rc < 0)
		return rc;
	if (events & ~entry->armed)
		entry->core->polled_ns = 0;
	entry->started = true;
	entry->armed = events;
	return 0;
}

/* Wakes a wait.  If out of memory it stays, and the descriptor is reported ready again.  But if
 * the future itself failed to schedule its callbacks, they are lost; the exception is printed. */
static void
wake(struct fd_entry *entry, int side)
{
	struct loop_core *core = entry->core;
	PyObject *future = Py_NewRef(entry->side[side]);
	int fd = entry->fd, rc = is_done(core->state, future);

	if (rc == 0)
		rc = weftpy_done(weftpy_call_one(future, core->state->names.set_result, Py_None));
	/* Either call may have run code that freed the entry. */
	if (rc >= 0 && core->fds[fd] == entry && entry->side[side] == future)
		Py_CLEAR(entry->side[side]);
	if (rc < 0)
		PyErr_WriteUnraisable(future);
	Py_DECREF(future);
}

static void
fds_notify(struct fd_entry *entry, int side)
{
	PyObject *who = entry->side[side];

	if (!who) /* rule 2 */
		(void)arm(entry, entry->armed & ~side_event[side]);
	else if (!is_handle_of(entry->core, who))
		wake(entry, side);
	else if (weftpy_ring_push(entry->core, who) < 0)
		PyErr_Clear(); /* readiness is reported again */
}

static void
on_ready(weft_watch *Py_UNUSED(watch), int what, void *arg)
{
	struct fd_entry *entry = arg;
	struct loop_core *core = entry->core;
	uint32_t events = (uint32_t)what;
	int fd = entry->fd;

	if (what < 0) {
		entry->started = false;
		if (what == WEFT_EBADF) /* else the loop is ending */
			end_stale(entry);
		return;
	}
	if (events & (WEFT_EV_ERROR | WEFT_EV_HUP))
		events |= WEFT_READABLE | WEFT_WRITABLE;
	for (int side = 0; side < 2 && core->fds[fd] == entry; side++)
		if (events & entry->armed & side_event[side])
			fds_notify(entry, side);
}

static uint32_t
wanted(const struct fd_entry *entry)
{
	return (entry->side[0] ? WEFT_READABLE : 0) | (entry->side[1] ? WEFT_WRITABLE : 0);
}

/* Removes the object of a direction, and cancels it if it is a handle.  Returns true if it was
 * one. */
static bool
take_off(struct fd_entry *entry, int side)
{
	PyObject *who = entry->side[side];
	bool is_handle;

	entry->side[side] = NULL;
	is_handle = who && is_handle_of(entry->core, who);
	if (is_handle)
		weftpy_handle_cancel((struct handle *)who);
	Py_XDECREF(who);
	return is_handle;
}

static PyObject *
fds_fail(struct fd_entry *entry, int error)
{
	if (!wanted(entry))
		discard(entry);
	return weftpy_error(error);
}

/* Whether a device can be waited for; /dev/null cannot. */
static bool
is_waitable(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);
	bool refused = set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EPERM;

	if (set >= 0)
		close(set);
	return !refused;
}

/* A regular file is always ready. asyncio rejects it, as epoll does; weft would call back
 * forever. */
static struct fd_entry *
make_watchable(struct loop_core *core, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) == 0
	    && (S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode)
	        || (S_ISCHR(stat.st_mode) && !is_waitable(fd)))) {
		weftpy_error(WEFT_EPERM);
		return NULL;
	}
	return fds_make(core, fd);
}

/* Stores a handle for a direction.  The entry may be gone afterwards, because releasing the
 * former object may run code. */
static void
put_on(struct fd_entry *entry, int side, struct handle *handle)
{
	PyObject *old = entry->side[side], *sock = entry->sock;
	bool is_handle = old && is_handle_of(entry->core, old);

	entry->side[side] = Py_NewRef((PyObject *)handle);
	entry->sock = NULL; /* with readers, the number no longer belongs to one socket object */
	if (is_handle)
		weftpy_handle_cancel((struct handle *)old);
	Py_XDECREF(old);
	Py_XDECREF(sock);
}

/* Whether another object that still has the same number is waiting: then it is the same file. */
static bool
is_waited_for(struct loop_core *core, struct fd_entry *entry)
{
	PyObject *sock = weftpy_referent(entry->sock);
	int fd = entry->fd;
	bool same = sock && wanted(entry) && PyObject_AsFileDescriptor(sock) == fd;

	PyErr_Clear(); /* the object was closed */
	Py_XDECREF(sock);
	return same && fds_find(core, fd) == entry;
}

/* args: the descriptor, the callback and its arguments. */
PyObject *
weftpy_fd_add(struct loop_core *core, int side, PyObject *const *args, Py_ssize_t count,
              PyObject *context)
{
	int fd = PyObject_AsFileDescriptor(args[0]), rc;
	struct fd_entry *entry;
	struct handle *handle;

	if (fd < 0)
		return NULL;
	handle = weftpy_handle_new(core, args + 1, count - 1, context);
	if (!handle)
		return NULL;
	entry = fds_find(core, fd);
	if (entry && entry->sock && wanted(entry) && !is_waited_for(core, entry)) {
		entry = fds_find(core, fd); /* the check may have run code */
		if (entry)
			end_stale(entry);
		entry = fds_find(core, fd);
	}
	if (!entry && !(entry = make_watchable(core, fd))) {
		Py_DECREF(handle);
		return NULL;
	}
	rc = arm(entry, wanted(entry) | side_event[side]);
	if (rc < 0) {
		Py_DECREF(handle);
		return fds_fail(entry, rc);
	}
	weftpy_handle_track((PyObject *)handle);
	put_on(entry, side, handle);
	return (PyObject *)handle;
}

int
weftpy_fd_remove(struct loop_core *core, int side, int fd)
{
	struct fd_entry *entry = fds_find(core, fd);
	bool found;

	if (!entry || !entry->side[side])
		return 0;
	found = take_off(entry, side);
	if (core->fds[fd] != entry)
		return found; /* releasing it ran code that freed the entry */
	if (!wanted(entry))
		discard(entry);
	else if (arm(entry, wanted(entry)) < 0)
		discard(entry); /* closed without notifying the loop */
	return found;
}

int
weftpy_fd_watched(struct loop_core *core, int side, int fd)
{
	struct fd_entry *entry = fds_find(core, fd);

	return entry && entry->side[side];
}

/* --- sock_*() ------------------------------------------------------------- */

/* The entry for a socket object.  Ends the entry of any former file with its number. */
static struct fd_entry *
entry_of(struct loop_core *core, PyObject *sock, int fd)
{
	struct fd_entry *entry = fds_find(core, fd);

	if (entry && entry->sock && weftpy_refers_to(entry->sock, sock))
		return entry;
	if (weftpy_done(weftpy_call_one((PyObject *)core,
	                                core->state->names._ensure_fd_no_transport, sock))
	    < 0)
		return NULL;
	entry = fds_find(core, fd);
	if (entry && (!entry->sock || is_waited_for(core, entry)))
		return entry;       /* shared with readers, writers or another object */
	entry = fds_find(core, fd); /* the check may have run code */
	if (entry)
		end_stale(entry);
	entry = fds_find(core, fd);
	if (entry) /* ending it may have run code, too */
		return entry;
	entry = fds_make(core, fd);
	if (entry && !(entry->sock = PyWeakref_NewRef(sock, NULL))) {
		discard(entry);
		return NULL;
	}
	return entry;
}

static int
check_free(struct loop_core *core, struct fd_entry *entry, int side)
{
	PyObject *who = entry->side[side];
	int done;

	if (!who)
		return 0;
	done = is_handle_of(core, who) ? 0 : is_done(core->state, who);
	if (done == 0)
		PyErr_Format(PyExc_RuntimeError, "file descriptor %d already has a %s", entry->fd,
		             side ? "writer" : "reader");
	return done == 1 ? 0 : -1;
}

/* Returns a future that is woken when the socket is readable or writable. */
PyObject *
weftpy_fd_wait(struct loop_core *core, int side, PyObject *sock)
{
	int fd = PyObject_AsFileDescriptor(sock), rc = 0;
	struct fd_entry *entry;
	PyObject *future;

	if (fd < 0 || !weftpy_is_open(core))
		return NULL;
	entry = entry_of(core, sock, fd);
	if (!entry || check_free(core, entry, side) < 0)
		return NULL;
	if (!entry->started || !(entry->armed & side_event[side]))
		rc = arm(entry, wanted(entry) | side_event[side]);
	if (rc < 0)
		return fds_fail(entry, rc);
	future = PyObject_CallMethodNoArgs((PyObject *)core, core->state->names.create_future);
	if (!future || core->fds[fd] != entry)
		return future;
	Py_XSETREF(entry->side[side], Py_NewRef(future));
	return future;
}

/* A transport takes over the number. */
void
weftpy_fd_forget(struct loop_core *core, int fd)
{
	struct fd_entry *entry = fds_find(core, fd);

	if (entry)
		end_stale(entry);
}

int
weftpy_fds_traverse(struct loop_core *core, visitproc visit, void *arg)
{
	for (size_t fd = 0; fd < core->fds_count; fd++) {
		if (!core->fds[fd])
			continue;
		Py_VISIT(core->fds[fd]->side[0]);
		Py_VISIT(core->fds[fd]->side[1]);
	}
	return 0;
}

void
weftpy_fds_clear(struct loop_core *core)
{
	for (size_t fd = 0; fd < core->fds_count; fd++)
		if (core->fds[fd])
			discard(core->fds[fd]);
}
