/* choose.c - picks a backend.
 *
 * The build lists the compiled backends, best first.  Which of them work is only known at run
 * time: a container may forbid what the kernel offers.  So each is tried until one opens; a
 * backend requested by name is the only one tried.  The reasons why better ones were rejected
 * are kept as a text, which any thread may read once the name is published (B).
 */
#include <errno.h>
#include <string.h>
#include "backend/backend.h"
#include "backend/list.h"
#include "base/valgrind.h"

#define COUNT (sizeof(backends) / sizeof(backends[0]))

bool
weft__backend_exists(const char *name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(backends[i]->name, name) == 0)
			return true;
	return false;
}

/* Keep the lists: ops may have finished, and watches ended, before there was a backend. */
static void
choose_clear(struct weft__backend *backend)
{
	*backend = (struct weft__backend){ .done = backend->done,
		                           .ended = backend->ended,
		                           .counters = backend->counters };
}

/* The text that may be written: the second one once the first is published. */
static char *
choose_text_of(struct weft__backend_counters *counters)
{
	return counters->texts[weft__load(&counters->name, WEFT__RELAXED) != 0];
}

/* Append to the reason, as far as there is room; its buffer was zeroed. */
static void
add_text(struct weft__backend_counters *counters, const char *text)
{
	char *reason = choose_text_of(counters);
	size_t used = strlen(reason), size = strlen(text);
	size_t room = sizeof(counters->texts[0]) - 1 - used;

	memcpy(reason + used, text, size < room ? size : room);
}

/* The text is complete. */
static void
publish(struct weft__backend_counters *counters, const char *name)
{
	weft__store(&counters->reason, (uintptr_t)choose_text_of(counters), WEFT__RELEASE);
	weft__store(&counters->name, (uintptr_t)name, WEFT__RELEASE); /* B */
}

/* Append the step that failed: "io_uring_setup: EPERM". */
static void
add_failure(const struct weft__backend *backend, int error)
{
	struct weft__backend_counters *counters = backend->counters;
	const char *name = weft_errname(error);

	if (choose_text_of(counters)[0])
		add_text(counters, ", ");
	add_text(counters, backend->at);
	add_text(counters, ": ");
	add_text(counters, name + (name[0] == '-' ? 1 : strncmp(name, "WEFT_", 5) ? 0 : 5));
}

static int
open_one(struct weft__backend *backend, const struct weft__backend_ops *ops, bool movable)
{
	int rc;

	choose_clear(backend);
	backend->ops = ops;
	backend->at = "memory";
	backend->movable = movable;
	backend->events_max = WEFT__EVENTS_MAX;
	backend->fd = backend->outer_fd = -1;
	backend->wake_fd[0] = backend->wake_fd[1] = -1;
	backend->events = weft__sys->alloc(WEFT__EVENTS_MAX * sizeof(*backend->events));
	rc = backend->events ? ops->open(backend) : WEFT_ENOMEM;
	if (rc < 0) {
		add_failure(backend, rc);
		weft__backend_close(backend);
	}
	return rc;
}

/* valgrind runs one thread at a time, and a thread that sleeps in io_uring_enter(2) keeps the
 * others from running: two loops hang. */
static bool
is_unfit(struct weft__backend_counters *counters, const struct weft__backend_ops *ops)
{
	if (!ops->shares || !weft__on_valgrind)
		return false;
	add_text(counters, "io_uring: hangs under valgrind");
	return true;
}

int
weft__backend_open(struct weft__backend *backend, const char *name, bool movable)
{
	struct weft__backend_counters *counters = backend->counters;
	int rc = WEFT_ENOSYS;

	weft__store(&counters->name, 0, WEFT__RELAXED);
	memset(counters->texts, 0, sizeof(counters->texts));
	for (size_t i = 0; i < COUNT && rc < 0; i++)
		if (name ? strcmp(backends[i]->name, name) == 0 : !is_unfit(counters, backends[i]))
			rc = open_one(backend, backends[i], movable);
	if (rc < 0)
		return rc;
	if (name) {
		add_text(counters, "requested by name");
	} else if (!counters->texts[0][0]) {
		add_text(counters, "best available");
	} else {
		add_text(counters, ", so ");
		add_text(counters, backend->ops->name);
	}
	backend->waker = backend->ops;
	publish(counters, backend->ops->name);
	return rc;
}

/* --- no way to wait ----------------------------------------------------- */

static void
none_submit(struct weft__backend *backend, struct weft__op *op)
{
	weft__backend_finish(backend, op, backend->broken);
}

/* Reset the eventfd that show() signals. */
static int
none_wait(struct weft__backend *backend, int64_t timeout_ns)
{
	uint64_t count;

	(void)timeout_ns;
	if (backend->outer_fd >= 0)
		(void)weft__kernel(backend)->read(backend->outer_fd, &count, sizeof(count));
	return 0;
}

static int
none_arm(struct weft__backend *backend, int fd, struct weft__fd *entry, uint32_t want)
{
	(void)fd, (void)entry;
	return want ? backend->broken : 0;
}

static int
none_fd(struct weft__backend *backend)
{
	return backend->outer_fd >= 0 ? backend->outer_fd : backend->broken;
}

static const struct weft__backend_ops backend_none = {
	.name = "none",
	.call = "none",
	.deaf = true,
	.submit = none_submit,
	.cancel = weft__ready_cancel,
	.wait = none_wait,
	.next = weft__ready_next,
	.fd = none_fd,
	.arm = none_arm,
};

/* End all waiters through the old table, then close the old backend, except for the descriptors
 * that other threads use to wake the loop. */
static void
break_down(struct weft__backend *backend, int error)
{
	uint32_t count = backend->fds.count * WEFT__FDS_PAGE;

	backend->broken = error;
	for (uint32_t fd = 0; fd < count; fd++) {
		const struct weft__fd *entry = weft__fds_get(&backend->fds, (int)fd);

		if (entry && (entry->waiter[0] || entry->waiter[1]))
			weft__ready_evict(backend, (int)fd, WEFT_READABLE | WEFT_WRITABLE, error);
	}
	if (backend->ops->close)
		backend->ops->close(backend);
	backend->state = NULL;
	if (backend->fd >= 0 && error != -EBADF && error != -EINVAL)
		(void)weft__kernel(backend)->close(backend->fd);
	backend->fd = -1;
	backend->ops = &backend_none;
}

void
weft__backend_fall(struct weft__backend *backend, int error)
{
	struct weft__backend_counters *counters = backend->counters;

	backend->at = backend->ops->call;
	add_failure(backend, error);
	if (!backend->ops->fall || backend->ops->fall(backend, error) < 0)
		break_down(backend, error);
	add_text(counters, ", so ");
	add_text(counters, backend->ops->name);
	publish(counters, backend->ops->name);
}

void
weft__backend_close(struct weft__backend *backend)
{
	const int fds[] = { backend->wake_fd[0], backend->wake_fd[1], backend->outer_fd,
		            backend->fd };

	if (!backend->ops)
		return;
	if (backend->ops->close)
		backend->ops->close(backend);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			(void)weft__kernel(backend)->close(fds[i]);
	weft__sys->release(backend->events);
	weft__sys->release(backend->buffer);
	weft__sys->release(backend->fetched);
	weft__fds_fini(&backend->fds);
	choose_clear(backend);
}
