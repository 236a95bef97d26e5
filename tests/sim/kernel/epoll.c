/* epoll.c - epoll sets.
 *
 * As in Linux, a registration (an item) is identified by a descriptor number and the file that
 * the number referred to.  It belongs to the file, and exists until it is removed or the file's
 * last reference is dropped; if there is a dup, the number may be closed long before.  A file
 * that may have become ready puts its items on the ready lists of their sets.  Whether it is
 * ready, and for what, is checked when the events are fetched.
 *
 *   1. An item is on its set's ready list exactly if `listed`.
 *   2. A level-triggered item that was reported moves to the end of the list; an
 *      edge-triggered one leaves the list until its file is notified again.
 *   3. A one-shot item that was reported has no events, not even EPOLLERR and EPOLLHUP, until
 *      it is modified.
 *   4. If there are more events than slots, the next call begins with the events that were
 *      left out.
 *   5. Events that are reported together are in random order.
 *
 * EPOLLEXCLUSIVE is accepted, but wakes like any other registration.
 */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include "sim/run/fault.h"
#include "sim/kernel/kernel.h"
#include "sim/run/rng.h"
#include "sim/run/schedule.h"

#define PRIVATE_BITS (EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE)
#define EXCLUSIVE_OK \
	(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

enum { NESTS_MAX = 4 }; /* sets within sets within a set */

struct set;

struct sim_item {
	struct set *set;
	struct sim_file *file;
	int fd;
	uint32_t events;
	epoll_data_t data;
	bool listed;
	struct sim_item *file_next;           /* of the same file */
	struct sim_item *set_next, *set_prev; /* of the same set */
	struct sim_item *next, *prev;         /* on the ready list */
};

struct set {
	struct sim_file file;
	struct sim_item *items;
	struct sim_item *first, *last; /* the ready list */
	uint32_t listed;               /* how many are on it */
};

static struct sim_item *spare; /* dropped items of this run, for reuse */

/* --- the ready list --------------------------------------------------- */

static void
list_add(struct sim_item *item)
{
	struct set *set = item->set;

	if (item->listed)
		return;
	item->listed = true;
	item->next = NULL;
	item->prev = set->last;
	if (set->last)
		set->last->next = item;
	else
		set->first = item;
	set->last = item;
	set->listed++;
}

static void
list_drop(struct sim_item *item)
{
	struct set *set = item->set;

	if (!item->listed)
		return;
	item->listed = false;
	if (item->prev)
		item->prev->next = item->next;
	else
		set->first = item->next;
	if (item->next)
		item->next->prev = item->prev;
	else
		set->last = item->prev;
	set->listed--;
}

static uint32_t
item_ready(const struct sim_item *item)
{
	return item->file->ops->ready(item->file) & item->events & ~PRIVATE_BITS;
}

/* --- notification ----------------------------------------------------- */

static void
item_wake(struct sim_item *item)
{
	list_add(item);
	sim_wake_all(item->set, 0);
	sim_items_wake(&item->set->file, EPOLLIN);
}

void
sim_items_wake(struct sim_file *file, uint32_t key)
{
	for (struct sim_item *item = file->items; item; item = item->file_next) {
		if (!(item->events & ~PRIVATE_BITS))
			continue;
		if (key == 0 || (key & item->events))
			item_wake(item);
	}
}

/* --- items ------------------------------------------------------------ */

static struct sim_item *
item_find(struct set *set, struct sim_file *file, int fd)
{
	for (struct sim_item *item = file->items; item; item = item->file_next)
		if (item->set == set && item->fd == fd)
			return item;
	return NULL;
}

static void
item_drop(struct sim_item *item)
{
	struct sim_item **link = &item->file->items;

	list_drop(item);
	while (*link != item)
		link = &(*link)->file_next;
	*link = item->file_next;
	if (item->set_prev)
		item->set_prev->set_next = item->set_next;
	else
		item->set->items = item->set_next;
	if (item->set_next)
		item->set_next->set_prev = item->set_prev;
	item->next = spare;
	spare = item;
}

void
sim_items_drop(struct sim_file *file)
{
	while (file->items)
		item_drop(file->items);
}

void
sim_epoll_reset(void)
{
	spare = NULL; /* they were allocated from the memory of the last run */
}

static struct sim_item *
item_new(struct set *set, struct sim_file *file, int fd)
{
	struct sim_item *item = spare;

	if (item)
		spare = item->next;
	else
		item = sim_keep(sizeof(*item));
	*item = (struct sim_item){
		.set = set,
		.file = file,
		.fd = fd,
		.file_next = file->items,
		.set_next = set->items,
	};
	file->items = item;
	if (set->items)
		set->items->set_prev = item;
	set->items = item;
	return item;
}

/* --- the set as a file ------------------------------------------------ */

static uint32_t
set_ready(struct sim_file *file)
{
	struct set *set = (struct set *)file;

	for (struct sim_item *item = set->first, *next; item; item = next) {
		next = item->next;
		if (item_ready(item))
			return EPOLLIN;
		list_drop(item);
	}
	return 0;
}

static int64_t
set_read(struct sim_file *file, void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -EINVAL;
}

static int64_t
set_write(struct sim_file *file, const void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -EINVAL;
}

static void
set_end(struct sim_file *file)
{
	struct set *set = (struct set *)file;

	while (set->items)
		item_drop(set->items);
}

static const struct sim_file_ops set_ops = {
	.name = "epoll set",
	.kind = WEFT__FD_OTHER,
	.waits = true,
	.ready = set_ready,
	.read = set_read,
	.write = set_write,
	.end = set_end,
};

int
sim_epoll_new(void)
{
	int rc = sim_fd_room(1);

	if (rc < 0)
		return rc;
	return sim_fd_new(sim_file_new(&set_ops, sizeof(struct set)));
}

static struct set *
set_of(struct sim_file *file)
{
	return file && file->ops == &set_ops ? (struct set *)file : NULL;
}

/* --- epoll_ctl -------------------------------------------------------- */

/* How deep sets are nested below `set`; more than allowed if `wanted` is among them. */
static int
depth_below(const struct set *set, const struct set *wanted, int depth)
{
	int most = 0;

	if (set == wanted || depth > NESTS_MAX)
		return NESTS_MAX + 1;
	for (struct sim_item *item = set->items; item; item = item->set_next) {
		struct set *inner = set_of(item->file);
		int below = inner ? 1 + depth_below(inner, wanted, depth + 1) : 0;

		most = below > most ? below : most;
	}
	return most;
}

static int
depth_above(const struct sim_file *file, int depth)
{
	int most = 0;

	if (depth > NESTS_MAX)
		return 0;
	for (struct sim_item *item = file->items; item; item = item->file_next) {
		int above = 1 + depth_above(&item->set->file, depth + 1);

		most = above > most ? above : most;
	}
	return most;
}

static int
check_nesting(const struct set *set, struct sim_file *file, uint32_t events)
{
	const struct set *inner = set_of(file);

	if (!inner)
		return 0;
	if (events & EPOLLEXCLUSIVE)
		return -EINVAL;
	return depth_below(inner, set, 0) + 1 + depth_above(&set->file, 0) > NESTS_MAX ? -ELOOP : 0;
}

static void
item_set(struct sim_item *item, const struct epoll_event *event)
{
	item->events = event->events | EPOLLERR | EPOLLHUP;
	item->data = event->data;
	if (item_ready(item))
		item_wake(item);
}

static int
item_add(struct set *set, struct sim_file *file, int fd, struct epoll_event *event)
{
	int rc = check_nesting(set, file, event->events);

	if (rc < 0)
		return rc;
	if (item_find(set, file, fd))
		return -EEXIST;
	rc = sim_fault_errno(SIM_CALL_epoll_ctl);
	if (rc < 0)
		return rc;
	item_set(item_new(set, file, fd), event);
	return 0;
}

static bool
bad_exclusive(int op, uint32_t events)
{
	if (!(events & EPOLLEXCLUSIVE))
		return false;
	return op != EPOLL_CTL_ADD || (events & ~EXCLUSIVE_OK);
}

int
sim_epoll_change(int ep, int op, int fd, struct epoll_event *event)
{
	struct sim_file *ep_file = sim_fd_file(ep), *file = sim_fd_file(fd);
	struct set *set = set_of(ep_file);
	struct sim_item *item;

	if (!ep_file || !file)
		return -EBADF;
	if (!file->ops->waits)
		return -EPERM;
	if (!set || file == ep_file)
		return -EINVAL;
	if (op != EPOLL_CTL_DEL && bad_exclusive(op, event->events))
		return -EINVAL;
	if (op == EPOLL_CTL_ADD)
		return item_add(set, file, fd, event);
	if (op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	item = item_find(set, file, fd);
	if (!item)
		return -ENOENT;
	if (op == EPOLL_CTL_DEL)
		item_drop(item);
	else if (item->events & EPOLLEXCLUSIVE)
		return -EINVAL;
	else
		item_set(item, event);
	return 0;
}

/* --- epoll_wait ------------------------------------------------------- */

static void
shuffle(struct epoll_event *events, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int other = (int)sim_below(SIM_DRAW_ORDER, (uint64_t)i + 1);
		struct epoll_event event = events[i];

		events[i] = events[other];
		events[other] = event;
	}
}

static int
fetch(struct set *set, struct epoll_event *events, int max)
{
	int count = 0;

	for (uint32_t left = set->listed; left > 0 && count < max; left--) {
		struct sim_item *item = set->first;
		uint32_t ready = item_ready(item);

		list_drop(item);
		if (!ready)
			continue;
		events[count].events = ready;
		events[count].data = item->data;
		count++;
		sim_trace(SIM_CALL_event, item->fd, ready, 0);
		if (item->events & EPOLLONESHOT)
			item->events &= PRIVATE_BITS;
		else if (!(item->events & EPOLLET))
			list_add(item);
	}
	shuffle(events, count);
	return count;
}

static int
fetch_some(struct set *set, struct epoll_event *events, int max)
{
	uint64_t most = (uint64_t)max < set->listed ? (uint64_t)max : set->listed;
	struct sim_fault *hit = most > 1 ? sim_fault(SIM_BATCH, SIM_CALL_epoll_wait) : NULL;

	if (hit) {
		max = 1 + (int)(hit->bits % (most - 1));
		hit->what = max;
	}
	return fetch(set, events, max);
}

int
sim_epoll_sleep(int ep, struct epoll_event *events, int max, int64_t timeout_ns)
{
	struct sim_file *file = sim_fd_file(ep);
	struct set *set = set_of(file);
	struct sim_wait wait = {
		.channel = set, .what = "epoll_wait", .what_arg = ep, .spurious_ns = WEFT_NEVER
	};
	int rc;

	if (!file)
		return -EBADF;
	if (!set || max <= 0)
		return -EINVAL;
	rc = fetch_some(set, events, max);
	if (rc > 0 || timeout_ns == 0)
		return rc;
	wait.deadline_ns = sim_wait_end_ns(timeout_ns);
	wait.interrupt_ns = sim_wait_signal_ns(SIM_CALL_epoll_wait);
	sim_file_ref(file);
	do {
		int woken = sim_wait(&wait);

		rc = fetch_some(set, events, max);
		if (rc == 0 && woken == -EINTR)
			rc = -EINTR;
		if (woken == -ETIMEDOUT)
			break;
	} while (rc == 0);
	sim_file_unref(file);
	return rc;
}
