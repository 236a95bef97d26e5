/* jobs.c - limits how many commands run at once. */
#include "run.h"

static void
queue(struct jobs *jobs, struct waiter *waiter)
{
	struct waiter **link = &jobs->waiters;

	while (*link && (*link)->priority >= waiter->priority)
		link = &(*link)->next;
	waiter->next = *link;
	*link = waiter;
}

static void
unqueue(struct jobs *jobs, struct waiter *waiter)
{
	struct waiter **link = &jobs->waiters;

	while (*link != waiter)
		link = &(*link)->next;
	*link = waiter->next;
}

int
jobs_enter(struct jobs *jobs, int priority)
{
	struct waiter waiter = { .priority = priority };
	int rc;

	if (jobs->free > 0) {
		jobs->free--;
		return 0;
	}
	queue(jobs, &waiter);
	rc = weft_event_wait(&waiter.event, WEFT_NEVER);
	if (rc < 0 && waiter.granted)
		jobs_leave(jobs);
	else if (rc < 0)
		unqueue(jobs, &waiter);
	return rc;
}

void
jobs_leave(struct jobs *jobs)
{
	struct waiter *first = jobs->waiters;

	if (!first) {
		jobs->free++;
		return;
	}
	jobs->waiters = first->next;
	first->granted = true;
	(void)weft_event_set(&first->event);
}
