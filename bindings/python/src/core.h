/* core.h - the definitions that the files of weft._core share.
 *
 * An asyncio loop consists of two parts here.  asyncio's own SelectorEventLoop, in Python, does
 * what happens once per loop or connection.  LoopCore, in C, does what happens once per callback
 * or packet: it precedes that class in the bases of weft.Loop, and so replaces its hot methods.
 *
 *   1. The ring holds everything to be called: handles, and transports that are readable or
 *      writable.  Only py_run.c takes items from it, at one point of a loop iteration.  So
 *      exceptions take one path, and no code of a program runs while the loop processes
 *      descriptors.
 *   2. The GIL protects everything.  A loop belongs to the thread that runs it; other threads
 *      only put handles into the ring.
 *   3. The GIL is released only in a loop iteration that may block, between the hooks
 *      before_wait and after_wait.
 *   4. There are no static objects: types, names and imported functions are in the state of the
 *      module, one for each interpreter.
 */
#ifndef WEFTPY_CORE_H
#define WEFTPY_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <weft/embed.h>
#include <weft/loop.h>
#include <weft/timer.h>
#include <weft/watch.h>
#include "base/proto_list.h"
#include "call.h"
#include "compat.h"
#include "py_tls.h"

#define WEFTPY_BASE_WORDS 10 /* the slots of asyncio.TimerHandle */
#define WEFTPY_ARGS       3  /* stored in the handle; more are in a tuple */
#define WEFTPY_IN_TUPLE   255
#define WEFTPY_POLL_NS    (100 * WEFT_US) /* see py_run.c */
#define WEFTPY_SCRATCH    (256 * 1024) /* largest read, in bytes */

struct loop_core;

/* A callback that is to be called once.  It is a real asyncio.Handle; the slots of that class
 * exist but stay empty, because getters of the same names take precedence. */
struct handle {
	PyObject_HEAD
	PyObject *base[WEFTPY_BASE_WORDS];
	PyObject *loop;
	PyObject *callback; /* NULL once canceled */
	PyObject *context;
	PyObject *spare;    /* args[-1], which a vectorcall may overwrite */
	PyObject *args[WEFTPY_ARGS];
	PyObject *traceback, *repr; /* in debug mode, else NULL */
	uint8_t   args_count; /* or WEFTPY_IN_TUPLE: args[0] is a tuple */
	bool      cancelled;
	bool      running; /* cancel() leaves callback and args until the call has ended */
};

struct timer_handle {
	struct handle        handle;
	double               when;   /* seconds of the monotonic clock */
	weft_timer           timer;
	struct weft__link    link;   /* in the loop's list, which owns a reference, if scheduled */
};

/* Names of attributes and methods that are used often. */
#define WEFTPY_NAMES(X)                                                        \
	X(_run) X(_run_in_debug) X(_check_thread) X(_check_callback)           \
	X(_ensure_fd_no_transport) X(_fatal_error) X(_call_connection_lost)    \
	X(_report_failed_callback) X(_report_flow_control) X(set_result)       \
	X(set_exception) X(done) X(data_received) X(get_buffer)                \
	X(buffer_updated) X(eof_received) X(pause_writing) X(resume_writing)   \
	X(create_future) X(sock_recv) X(sock_sendall) X(_sock_recv)            \
	X(_sock_sendall) X(cancel) X(cancelled) X(feed_data) X(_wakeup_waiter) \
	X(_stream_reader_wr) X(_buffer) X(_eof) X(_limit) X(_waiter)

#define WEFTPY_DECLARE_NAME(name) PyObject *name;

/* Every member before `free_lists` is a reference, and NULL before exec and after clear. */
struct weftpy_state {
	PyTypeObject *loop_type, *handle_type, *timer_type, *stream_type, *sock_type;
	PyTypeObject *shared_type;    /* returned by call_soon_threadsafe() */
	PyObject *socket_type;        /* socket.socket */
	PyObject *future_type;        /* asyncio.Future */
	PyObject *buffered_type;      /* asyncio.BufferedProtocol */
	PyObject *extract_stack;      /* from asyncio.format_helpers */
	struct {                      /* methods of asyncio's streams; NULL: unknown */
		PyTypeObject *protocol_type;
		PyObject *data_received, *feed_data, *wakeup_waiter;
	} reader;
	PyObject *context_argument;   /* ("context",): the tuple that was passed last */
	PyObject *loop_argument;      /* ("loop",) */
	struct { WEFTPY_NAMES(WEFTPY_DECLARE_NAME) } names;
	struct weftpy_tls_state tls;
	struct { /* freed handles and timers, for reuse */
		struct handle *first; /* linked by `callback` */
		unsigned count;
	} free_lists[2];
};

struct waiting;
struct fd_entry;

struct loop_core {
	PyObject_HEAD
	struct weftpy_state *state;
	weft_loop *loop;            /* NULL before _open() and after _dispose() */
	weft_loop_hook hook;
	PyObject **ring;            /* ring_size items, a power of two */
	size_t ring_size, head, tail; /* head: next to be called; both only grow */
	struct waiting *waiting;    /* other threads that wait for calls to end */
	struct weft__link timers;   /* scheduled ones */
	size_t reserved;            /* ring slots reserved for timers, so that firing cannot fail */
	struct fd_entry **fds;      /* indexed by descriptor; readers, writers, sock_*() */
	size_t fds_count;
	struct weft__link children;
	struct weft__link streams;  /* armed ones; the list owns references */
	struct weft_admin *admin;
	PyThreadState *saved;       /* thread state, while an iteration blocks */
	PyObject *raised;           /* the exception that ends the run */
	char *scratch;              /* buffer for reads of moderate size */
	unsigned long owner;        /* the thread that runs the loop, or 0 */
	uint64_t polled_ns;         /* last poll of the kernel; 0: poll before the next round */
	uint64_t yielded_ns;
	pid_t pid;                  /* the process that created it */
	bool closed, stopping, debug;
	bool poll_first;
	bool over;                  /* the run ends with this iteration */
};

extern struct PyModuleDef weftpy_module;

/* py_module.c */
struct weftpy_state *weftpy_state_of(PyObject *module);
PyObject *weftpy_error(int error);     /* raises OSError or what fits; returns NULL */

/* py_handle.c */
int  weftpy_handle_exec(PyObject *module, struct weftpy_state *state);
struct handle *weftpy_handle_new(struct loop_core *core, PyObject *const *args,
                                 Py_ssize_t count, PyObject *context);
struct handle *weftpy_handle_new_shared(struct loop_core *core, PyObject *const *args,
                                        Py_ssize_t count, PyObject *context);
struct timer_handle *weftpy_timer_new(struct loop_core *core, double when,
                                      PyObject *const *args, Py_ssize_t count,
                                      PyObject *context);
int  weftpy_handle_run(struct loop_core *core, struct handle *handle);
int  weftpy_report_failed(struct loop_core *core, PyObject *item); /* takes the exception */
void weftpy_handle_cancel(struct handle *handle);
int  weftpy_timer_schedule(struct loop_core *core, struct timer_handle *timer);
void weftpy_timers_clear(struct loop_core *core);
void weftpy_handles_free(struct weftpy_state *state);
int  weftpy_handle_visit(struct weftpy_state *state, PyObject *item, visitproc visit,
                         void *arg);

/* Make the garbage collector track the handle from now on. */
static inline void
weftpy_handle_track(PyObject *handle)
{
	if (!PyObject_GC_IsTracked(handle))
		PyObject_GC_Track(handle);
}

/* py_ring.c */
int  weftpy_ring_reserve(struct loop_core *core, size_t places);
int  weftpy_ring_push(struct loop_core *core, PyObject *item); /* borrows `item` */
void weftpy_ring_push_reserved(struct loop_core *core, PyObject *item); /* takes ownership */
PyObject *weftpy_ring_pop(struct loop_core *core);
void weftpy_ring_clear(struct loop_core *core);

/* loop.c */
bool weftpy_is_open(struct loop_core *core); /* raises RuntimeError if not */
int  weftpy_loop_exec(PyObject *module, struct weftpy_state *state);
int  weftpy_call_soon(struct loop_core *core, PyObject *callback, PyObject *arg,
                      PyObject *context);

/* py_run.c */
int  weftpy_run(struct loop_core *core);
void weftpy_run_init(struct loop_core *core);

/* py_fds.c */
PyObject *weftpy_fd_add(struct loop_core *core, int side, PyObject *const *args,
                        Py_ssize_t count, PyObject *context);
int  weftpy_fd_remove(struct loop_core *core, int side, int fd);
int  weftpy_fd_watched(struct loop_core *core, int side, int fd);
PyObject *weftpy_fd_wait(struct loop_core *core, int side, PyObject *sock);
void weftpy_fd_forget(struct loop_core *core, int fd);
int  weftpy_fds_traverse(struct loop_core *core, visitproc visit, void *arg);
void weftpy_fds_clear(struct loop_core *core);

/* py_admin.c */
PyObject *weftpy_metrics(struct loop_core *core);
PyObject *weftpy_admin_open(struct loop_core *core, PyObject *const *args);
void weftpy_admin_close(struct loop_core *core);

/* blocked.c */
void weftpy_blocked_init(void);
int  weftpy_blocked_watch(struct loop_core *core);
void weftpy_blocked_forget(struct loop_core *core);

/* py_child.c */
int  weftpy_child_watch(struct loop_core *core, pid_t pid, PyObject *callback);
int  weftpy_children_traverse(struct loop_core *core, visitproc visit, void *arg);
void weftpy_children_clear(struct loop_core *core);

/* sock.c */
int  weftpy_sock_exec(PyObject *module, struct weftpy_state *state);
PyObject *weftpy_sock_recv(struct loop_core *core, PyObject *sock, PyObject *size);
PyObject *weftpy_sock_sendall(struct loop_core *core, PyObject *sock, PyObject *data);

/* reader.c */
int  weftpy_reader_exec(struct weftpy_state *state);

/* py_stream.c */
int  weftpy_stream_exec(PyObject *module, struct weftpy_state *state);
int  weftpy_streams_traverse(struct loop_core *core, visitproc visit, void *arg);
void weftpy_streams_clear(struct loop_core *core);
int  weftpy_stream_run(PyObject *stream);
int  weftpy_stream_check(struct weftpy_state *state, PyObject *object);
int  weftpy_stream_write(PyObject *stream, PyObject *data);

static inline size_t
weftpy_ring_count(const struct loop_core *core)
{
	return core->tail - core->head;
}

/* Whether it is a struct handle, and not one of asyncio's own handles. */
static inline bool
weftpy_is_handle(const struct weftpy_state *state, PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	return type == state->handle_type || type == state->timer_type
	       || type == state->shared_type;
}

#endif
