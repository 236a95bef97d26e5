/* layout.c - where debuggers find threadlets.
 *
 * scripts/gdb/weft-gdb.py reads the memory of a process or of a core file by the offsets listed
 * here.  So it needs no debug information of the library, and works with every build.  The
 * script uses the same names; a change of their meaning changes VERSION.
 */
#include "threadlet/threadlet.h"

#define VERSION 1

#define OF(name_, type, member)                                \
	{                                                      \
		.name = name_, .value = offsetof(type, member) \
	}

/* Nothing in the program reads it: keep it all the same. */
__attribute__((used)) WEFT_API const struct weft__gdb_entry weft_gdb_layout[] = {
	{ "version", VERSION },
	{ "registry", (uintptr_t)&weft__registry },
	OF("registry.first", struct weft__registry, first),
	OF("loop.next", weft_loop, next_listed),
	OF("loop.name", weft_loop, name),
	OF("loop.id", weft_loop, inbox.id),
	OF("loop.sched", weft_loop, parts[WEFT__PART_SCHED]),
	OF("sched.newest", struct weft__sched, newest),
	OF("sched.thread", struct weft__sched, thread),
	OF("thread.threadlet", struct weft__thread, threadlet),
	OF("threadlet.sp", struct weft__threadlet, context.sp),
	OF("threadlet.older", struct weft__threadlet, older),
	OF("threadlet.handle", struct weft__threadlet, handle),
	OF("threadlet.waiter", struct weft__threadlet, waiter),
	OF("threadlet.name", struct weft__threadlet, name),
	OF("threadlet.fn", struct weft__threadlet, fn),
	OF("threadlet.spawned_at", struct weft__threadlet, spawned_at),
	OF("handle.id", struct weft__handle, id),
	OF("waiter.what", struct weft__waiter, what),
	OF("waiter.on", struct weft__waiter, on),
	{ "", 0 },
};
