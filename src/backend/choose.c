/* choose.c - pick a backend.
 *
 * The build lists those that it compiled, best first.  Which one works is a question
 * of the moment: a container may forbid what the kernel has.  So each is tried until
 * one opens; one that was asked for by name is tried alone.  Why the better ones were
 * refused is kept, as a text that any thread may read once the name is published (B).
 */
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

/* Ops may have finished, and watches ended, before there was a backend: their lists
 * stay. */
static void
clear(struct weft__backend *backend)
{
	*backend = (struct weft__backend){ .done = backend->done,
		                           .ended = backend->ended,
		                           .tally = backend->tally };
}

/* Add to the reason, as far as there is room; it was zeroed. */
static void
say(struct weft__tally *tally, const char *text)
{
	size_t used = strlen(tally->reason), size = strlen(text);
	size_t room = sizeof(tally->reason) - 1 - used;

	memcpy(tally->reason + used, text, size < room ? size : room);
}

/* "io_uring_setup: EPERM", from the step that failed. */
static void
say_refused(const struct weft__backend *backend, int error)
{
	const char *name = weft_errname(error);

	if (backend->tally->reason[0])
		say(backend->tally, ", ");
	say(backend->tally, backend->at);
	say(backend->tally, ": ");
	say(backend->tally, name
	                            + (name[0] == '-'              ? 1
	                               : strncmp(name, "WEFT_", 5) ? 0
	                                                           : 5));
}

static int
open_one(struct weft__backend *backend, const struct weft__backend_ops *ops,
         bool movable)
{
	int rc;

	clear(backend);
	backend->ops = ops;
	backend->at = "memory";
	backend->movable = movable;
	backend->events_max = WEFT__EVENTS_MAX;
	backend->fd = backend->outer_fd = -1;
	backend->wake_fd[0] = backend->wake_fd[1] = -1;
	backend->events = weft__sys->alloc(WEFT__EVENTS_MAX
	                                   * sizeof(*backend->events));
	rc = backend->events ? ops->open(backend) : WEFT_ENOMEM;
	if (rc < 0) {
		say_refused(backend, rc);
		weft__backend_close(backend);
	}
	return rc;
}

/* valgrind runs one thread at a time, and a thread that sleeps in io_uring_enter(2) keeps
 * the others from running: two loops hang. */
static bool
is_unfit(struct weft__tally *tally, const struct weft__backend_ops *ops)
{
	if (!ops->shares || !weft__on_valgrind)
		return false;
	say(tally, "io_uring: hangs on valgrind");
	return true;
}

int
weft__backend_open(struct weft__backend *backend, const char *name,
                   bool movable)
{
	struct weft__tally *tally = backend->tally;
	int rc = WEFT_ENOSYS;

	memset(tally->reason, 0, sizeof(tally->reason));
	for (size_t i = 0; i < COUNT && rc < 0; i++)
		if (name ? strcmp(backends[i]->name, name) == 0
		         : !is_unfit(tally, backends[i]))
			rc = open_one(backend, backends[i], movable);
	if (rc < 0)
		return rc;
	if (name) {
		say(tally, "asked for");
	} else if (!tally->reason[0]) {
		say(tally, "best here");
	} else {
		say(tally, ", so ");
		say(tally, backend->ops->name);
	}
	weft__store(&tally->name, (uintptr_t)backend->ops->name,
	            WEFT__RELEASE); /* B */
	return rc;
}

void
weft__backend_close(struct weft__backend *backend)
{
	const int fds[] = { backend->wake_fd[0], backend->wake_fd[1],
		            backend->outer_fd, backend->fd };

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
	clear(backend);
}
