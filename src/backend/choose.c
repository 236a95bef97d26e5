/* choose.c - pick a backend.
 *
 * The build lists those that it compiled, best first.  Which one works is a question
 * of the moment: a container may forbid what the kernel has.  So each is tried until
 * one opens; one that was asked for by name is tried alone.
 */
#include <string.h>
#include "backend/backend.h"
#include "backend/list.h"

#define COUNT (sizeof(backends) / sizeof(backends[0]))

bool
weft__backend_exists(const char *name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(backends[i]->name, name) == 0)
			return true;
	return false;
}

/* Ops may have finished before there was a backend: their list stays. */
static void
clear(struct weft__backend *backend)
{
	*backend = (struct weft__backend){ .done = backend->done };
}

static int
open_one(struct weft__backend *backend, const struct weft__backend_ops *ops)
{
	int rc;

	clear(backend);
	backend->ops = ops;
	backend->events_max = WEFT__EVENTS_MAX;
	backend->fd = backend->wake_fd[0] = backend->wake_fd[1] = -1;
	backend->events = weft__sys->alloc(WEFT__EVENTS_MAX
	                                   * sizeof(*backend->events));
	rc = backend->events ? ops->open(backend) : WEFT_ENOMEM;
	if (rc < 0)
		weft__backend_close(backend);
	return rc;
}

int
weft__backend_open(struct weft__backend *backend, const char *name)
{
	int rc = WEFT_ENOSYS;

	for (size_t i = 0; i < COUNT && rc < 0; i++)
		if (!name || strcmp(backends[i]->name, name) == 0)
			rc = open_one(backend, backends[i]);
	return rc;
}

void
weft__backend_close(struct weft__backend *backend)
{
	if (!backend->ops)
		return;
	backend->ops->close(backend);
	weft__sys->release(backend->events);
	weft__sys->release(backend->buffer);
	weft__sys->release(backend->fetched);
	weft__fds_fini(&backend->fds);
	clear(backend);
}
