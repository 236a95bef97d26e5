/* world.c - the sys table of a model: memory, parking, time, event descriptors.
 *
 * park() compares under the lock of the kernel: it sees the newest value.  unpark() wakes any
 * one of the threads parked on the word, by choice.  Time does not advance while some thread
 * can run; then it jumps to the earliest deadline.  In a model with `timeouts`, a park may also
 * time out at once.  That covers later timeouts, too, because the thread that returned from
 * park may be delayed arbitrarily.  The same holds for `spurious` returns.
 *
 *   1. Each call by which threads can wait for each other is a choice point and a seq_cst
 *      fence.  unpark() of a freed word fails, unless the model allows it (`late_unpark`): the
 *      real unpark() uses only the address.
 *   2. A member that is not set here fails the model when it is called.
 *   3. A thread that can be started waits for an event, and a thread that joins it waits for
 *      another event.  The model defines what the thread does; it ends like any thread.
 *
 * Not modeled: sockets, pipes, poll and epoll, fork.  The wake of a loop is modeled by the
 * event descriptor that the loop waits for.
 */
#include <errno.h>
#include <string.h>
#include "internal.h"

enum { EVENTS_MAX = 4 };

struct event {
	bool open;
	bool set;
	struct explore__view *view; /* released by the threads that set it, or NULL */
};

/* A thread of the model whose function is explore_started(). */
struct starter {
	struct event begun, ended;
	struct weft__thread_opts opts;
	bool busy; /* started and not yet joined */
};

static struct {
	struct event events[EVENTS_MAX];
	struct starter starters[EXPLORE_THREADS_MAX];
	bool dismissed;
	uint64_t random;
} world;

void
explore__world_begin(void)
{
	memset(&world, 0, sizeof world);
	world.events[0].open = true;
	for (int i = 0; i < EXPLORE_THREADS_MAX; i++) {
		world.starters[i].begun.open = true;
		world.starters[i].ended.open = true;
	}
	explore__run.now_ns = 1000000000;
	explore__run.spurious = explore__run.model->spurious;
}

static void
trace(const char *text, uintptr_t addr)
{
	char label[64];

	if (!explore__run.tracing)
		return;
	explore__label(addr, label, sizeof label);
	explore__trace(EXPLORE__NOTE, explore__self()->last, "%s %s", text, label);
}

static void
point(int kind, uintptr_t addr)
{
	struct explore__op op = { .kind = kind, .addr = addr };

	explore__point(&op);
	explore__fence();
}

/* --- parking ------------------------------------------------------------ */

enum ending { SLEEPS, SPURIOUS, TIMES_OUT };

/* Choose how a park whose value matches continues. */
static enum ending
park_choose(uint64_t deadline_ns)
{
	enum ending options[3];
	int count = 0, taken;

	if (deadline_ns <= explore__run.now_ns)
		return TIMES_OUT;
	options[count++] = SLEEPS;
	if (explore__run.spurious > 0)
		options[count++] = SPURIOUS;
	if (explore__run.model->timeouts && deadline_ns != WEFT_NEVER)
		options[count++] = TIMES_OUT;
	taken = explore__choose(count);
	explore__run.spurious -= options[taken] == SPURIOUS;
	return options[taken];
}

static int
sys_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	struct explore__slot *self = explore__self();
	uintptr_t addr = (uintptr_t)word;
	struct explore__atom *atom;

	explore__enter();
	if (explore__run.current == EXPLORE__MAIN)
		explore_fail("park in setup or check");
	point(EXPLORE__PARK, addr);
	explore__heap_check(addr, 4, self->last);
	atom = explore__atom_get(addr, explore__atom_size(addr));
	explore__atom_touch(atom, self->last);
	self->view.seen[atom->index] = atom->newest->time;
	self->spin_count = 0;
	if ((uint32_t)atom->newest->value != value) {
		trace("park: value differs:", addr);
		return -EAGAIN;
	}
	switch (park_choose(deadline_ns)) {
	case SPURIOUS:
		trace("park: spurious return:", addr);
		return 0;
	case TIMES_OUT:
		trace("park: time is up:", addr);
		if (explore__run.now_ns < deadline_ns)
			explore__run.now_ns = deadline_ns;
		return -ETIMEDOUT;
	default:
		trace("park: sleeps:", addr);
	}
	self->state = EXPLORE__PARKED;
	self->op.addr = addr;
	self->deadline_ns = deadline_ns;
	explore__block();
	self->deadline_ns = WEFT_NEVER;
	trace("park: woken:", addr);
	return self->wake_result;
}

static void
sys_unpark(weft__a32 *word)
{
	uintptr_t addr = (uintptr_t)word;
	int found[EXPLORE_THREADS_MAX], count = 0, slot;

	explore__enter();
	point(EXPLORE__UNPARK, addr);
	if (!explore__run.model->late_unpark)
		explore__heap_check(addr, 4, explore__self()->last);
	for (int i = 0; i < explore__run.model->threads; i++)
		if (explore__run.slots[i].state == EXPLORE__PARKED
		    && explore__run.slots[i].op.addr == addr)
			found[count++] = i;
	trace(count > 0 ? "unpark" : "unpark: nobody is at", addr);
	if (count == 0)
		return;
	slot = found[explore__choose(count)];
	explore__wake(slot, 0);
}

static void
sys_yield(void)
{
	if (explore__run.current != EXPLORE__MAIN)
		explore__spin();
}

static int
sys_barrier(void)
{
	struct explore__op op = { .kind = EXPLORE__BARRIER };

	explore__enter();
	explore__point(&op);
	explore__fence_all();
	trace("barrier", 0);
	return 0;
}

/* --- event descriptors -------------------------------------------------- */

static struct event *
event_get(int fd)
{
	struct event *event = &world.events[fd - EXPLORE_FD];

	if (fd < EXPLORE_FD || fd >= EXPLORE_FD + EVENTS_MAX)
		explore_fail("descriptor %d has no model", fd);
	return event;
}

static void
event_point(int kind, struct event *event, const char *text)
{
	struct explore__slot *self = explore__self();

	point(kind, (uintptr_t)event);
	if (!event->open)
		explore_fail("%s: %s of a closed descriptor, after %s:%d",
		             explore__slot_name(explore__run.current), text,
		             explore__base_name(self->last.file), self->last.line);
	trace(text, (uintptr_t)event);
}

bool
explore__event_ready(uintptr_t event)
{
	return ((const struct event *)event)->set || !((const struct event *)event)->open;
}

static int
sys_eventfd(void)
{
	for (int i = 1; i < EVENTS_MAX; i++)
		if (!world.events[i].open) {
			memset(&world.events[i], 0, sizeof world.events[i]);
			world.events[i].open = true;
			return EXPLORE_FD + i;
		}
	return -EMFILE;
}

static int
sys_close(int fd)
{
	struct event *event = event_get(fd);

	explore__enter();
	event_point(EXPLORE__CLOSE, event, "close");
	event->open = false;
	return 0;
}

static void
event_set(struct event *event, const char *text)
{
	struct explore__view *view;

	event_point(EXPLORE__SIGNAL, event, text);
	view = explore__view_publish();
	if (event->view)
		explore__view_join(view, event->view);
	event->view = view;
	event->set = true;
}

static int64_t
sys_write(int fd, const void *buf, size_t size)
{
	(void)buf;
	if (fd == 2) /* a report before an abort */
		return (int64_t)size;
	explore__enter();
	event_set(event_get(fd), "signal");
	return (int64_t)size;
}

static int64_t
sys_read(int fd, void *buf, size_t size)
{
	struct event *event = event_get(fd);
	uint64_t one = 1;

	explore__enter();
	event_point(EXPLORE__RESET, event, "reset");
	if (!event->set)
		return -EAGAIN;
	event->set = false;
	explore__view_join(&explore__self()->view, event->view);
	memcpy(buf, &one, size < sizeof one ? size : sizeof one);
	return sizeof one;
}

static bool
event_wait(struct event *event, uint64_t deadline_ns, const char *text)
{
	struct explore__slot *self = explore__self();

	if (explore__run.current == EXPLORE__MAIN)
		explore_fail("wait in setup or check");
	self->deadline_ns = deadline_ns;
	self->expired = false;
	event_point(EXPLORE__WAIT, event, text);
	self->deadline_ns = WEFT_NEVER;
	self->spin_count = 0;
	if (!event->set) {
		if (explore__run.now_ns < deadline_ns)
			explore__run.now_ns = deadline_ns;
		return false;
	}
	event->set = false;
	explore__view_join(&self->view, event->view);
	return true;
}

bool
explore_fd_wait(int fd, uint64_t deadline_ns)
{
	explore__enter();
	return event_wait(event_get(fd), deadline_ns, "wait ends");
}

/* --- threads ------------------------------------------------------------ */

static int
sys_thread_start(const struct weft__thread_opts *opts, uint64_t *out)
{
	explore__enter();
	for (int i = 0; i < explore__run.model->threads; i++) {
		struct starter *starter = &world.starters[i];

		if (explore__run.model->thread[i] != explore_started || starter->busy)
			continue;
		starter->busy = true;
		starter->opts = *opts;
		*out = (uint64_t)i;
		event_set(&starter->begun, "thread_start");
		return 0;
	}
	return -EAGAIN;
}

static int
sys_thread_join(uint64_t thread)
{
	struct starter *starter = &world.starters[thread];

	explore__enter();
	if (thread >= EXPLORE_THREADS_MAX || !starter->busy)
		explore_fail("thread_join of no thread");
	(void)event_wait(&starter->ended, WEFT_NEVER, "thread_join");
	starter->busy = false;
	return 0;
}

/* Wait to be started; NULL: it was dismissed. */
static __attribute__((noinline)) const struct weft__thread_opts *
starter_wait(struct starter *starter)
{
	explore__enter();
	(void)event_wait(&starter->begun, WEFT_NEVER, "begins");
	return world.dismissed ? NULL : &starter->opts;
}

static __attribute__((noinline)) void
starter_end(struct starter *starter)
{
	explore__enter();
	event_set(&starter->ended, "ends");
}

void
explore_started(void *state)
{
	struct starter *starter = &world.starters[explore__run.current];
	const struct weft__thread_opts *opts;

	(void)state;
	while ((opts = starter_wait(starter))) {
		opts->fn(opts->arg);
		weft__thread_end(weft__thread_self());
		starter_end(starter);
	}
}

void
explore_dismiss(void)
{
	explore__enter();
	world.dismissed = true;
	for (int i = 0; i < explore__run.model->threads; i++)
		if (explore__run.model->thread[i] == explore_started)
			event_set(&world.starters[i].begun, "dismissed");
}

/* --- the rest ----------------------------------------------------------- */

static uint64_t
sys_now(void)
{
	return explore__run.now_ns;
}

static int
sys_random(void *buf, size_t size)
{
	unsigned char *bytes = buf;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(world.random++ * 0x9e3779b1u >> 24);
	return 0;
}

static struct weft__thread *
sys_thread_self(void)
{
	return &explore__self()->thread;
}

static int
sys_at_fork(void (*fn)(void))
{
	(void)fn;
	return 0;
}

static const char *
sys_env(const char *name)
{
	(void)name;
	return NULL;
}

static int
sys_cpus(void)
{
	return 2;
}

static int
sys_other_threads(void)
{
	return -ENOSYS;
}

static int
sys_set_nonblock(int fd)
{
	(void)event_get(fd);
	return 0;
}

static int
sys_kind(int fd)
{
	(void)event_get(fd);
	return WEFT__FD_OTHER;
}

static int64_t
sys_identity(int fd)
{
	(void)event_get(fd);
	return 1 + fd;
}

/* Rule 2.  It replaces functions of any type, because it does not return. */
static void
sys_missing(void)
{
	explore_fail("%s calls a system function that has no model, after %s:%d",
	             explore__slot_name(explore__run.current),
	             explore__base_name(explore__self()->last.file), explore__self()->last.line);
}

const struct weft__sys *
explore__sys(void)
{
	static union {
		struct weft__sys table;
		void (*members[sizeof(struct weft__sys) / sizeof(void (*)(void))])(void);
	} sys = { .table = {
			  .alloc = explore__heap_alloc,
			  .resize = explore__heap_resize,
			  .release = explore__heap_release,
			  .now = sys_now,
			  .random = sys_random,
			  .park = sys_park,
			  .unpark = sys_unpark,
			  .yield = sys_yield,
			  .barrier = sys_barrier,
			  .thread_start = sys_thread_start,
			  .thread_join = sys_thread_join,
			  .thread_self = sys_thread_self,
			  .at_fork = sys_at_fork,
			  .cpus = sys_cpus,
			  .other_threads = sys_other_threads,
			  .env = sys_env,
			  .close = sys_close,
			  .read = sys_read,
			  .write = sys_write,
			  .set_nonblock = sys_set_nonblock,
			  .kind = sys_kind,
			  .identity = sys_identity,
			  .eventfd = sys_eventfd,
		  } };

	for (size_t i = 0; i < sizeof sys.members / sizeof sys.members[0]; i++)
		if (!sys.members[i])
			sys.members[i] = sys_missing;
	return &sys.table;
}
