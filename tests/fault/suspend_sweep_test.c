/* suspend_sweep_test.c - disturb every suspension of every scenario once.
 *
 *     suspend_sweep_test                        all of them
 *     suspend_sweep_test SCENARIO               one
 *     suspend_sweep_test SCENARIO BACKEND N HOW one run; HOW as it is printed
 *
 * All suspensions go through weft__switch_out().  The linker wraps that function here: the wrapper
 * counts the calls and disturbs the n-th.
 *
 *   1. A call has exactly one outcome: its own result or the disturbance.  A wait is ended by
 *      the thread that claims it.  If a disturbance can end the wait at once, the outcome is
 *      the disturbance.  If the wait was ended before, the outcome is its own result.
 *   2. An interrupt ends at most one call.
 *   3. After a run all threadlets have ended, the loops are freed, and no memory, stack or
 *      descriptor is held that was not held before.
 *   4. Planted scenarios contain a mistake.  The sweep fails if it does not find the mistake.
 *   5. If the process dies or hangs, the current run is printed.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "backend/backend.h"
#include "base/os.h"
#include "deaths.h"
#include "fault.h"
#include "open_fds.h"
#include "suspend.h"
#include "threadlet/threadlet.h"
#include "uring.h"

#define HANG_S    20u
#define PRINT_MAX 8
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* When to disturb: as the threadlet suspends; from the loop, after it suspended; or after its
 * wait ended and before it resumes.  CLOSE closes the object in use from a callback (AT_ONCE),
 * from a threadlet (PARKED), or from the code that happens to run when the wait has ended
 * (WOKEN).  If that code runs in a threadlet, it resets a stream instead, because that does not
 * wait. */
enum when { AT_ONCE, PARKED, WOKEN, WHENS };
enum what { NOTHING, CANCEL, INTERRUPT, DEADLINE, CLOSE, WHATS };
static const int reasons[] = { 0, WEFT_ECANCELED, WEFT_EINTR, WEFT_ETIMEDOUT, WEFT_ESHUTDOWN };
static const char *const hows[WHATS][WHENS] = {
	{ "-", "-", "-" },
	{ "cancel", "cancel-parked", "cancel-woken" },
	{ "interrupt", "interrupt-parked", "interrupt-woken" },
	{ "deadline", "deadline-parked", "deadline-woken" },
	{ "close", "close-parked", "close-woken" },
};

/* The object that a threadlet uses. */
struct use {
	weft_threadlet who;
	weft_stream **stream;
	weft_listener **listener;
};

#define USES_MAX 4

/* The current run and its disturbance. */
static struct {
	const char *backend;
	enum what what;
	enum when when;
	uint64_t n;        /* which suspension to disturb; 0: none */
	uint64_t count;    /* suspensions so far */
	uint64_t reported; /* calls that returned the disturbance's error */
	bool struck;       /* the disturbance happened */
	bool missed;       /* ... after the wait had ended by itself */
	bool exact;        /* the disturbance ended the wait at once */
	bool in_wait;      /* the target has not resumed yet */
	struct weft__threadlet *target;
	weft_threadlet id;
	weft_loop *loop;  /* of the scope */
	weft_scope scope; /* around the scenario */
	weft_node node;
	int alive; /* threadlets that have not ended */
	struct use uses[USES_MAX];
	uint32_t use_count;
} run;

/* --- the disturbance ---------------------------------------------------- */

/* The object that the target uses, or NULL. */
static const struct use *
find_use(void)
{
	for (uint32_t i = 0; i < run.use_count; i++)
		if (run.uses[i].who == run.id)
			return &run.uses[i];
	return NULL;
}

static void
close_used(void)
{
	const struct use *use = find_use();

	if (use->stream) {
		weft_stream *stream = *use->stream;

		*use->stream = NULL;
		if (run.when == WOKEN && weft__self())
			weft_stream_reset(stream);
		else
			weft_stream_close(stream);
	} else {
		weft_listener *listener = *use->listener;

		*use->listener = NULL;
		weft_listener_close(listener);
	}
}

/* Whether there is an object to close.  A stream must also be the one that the target waits
 * for. */
static bool
can_close(const struct weft__waiter *waiter)
{
	const struct use *use = find_use();

	if (!use || (use->stream ? !*use->stream : !*use->listener))
		return false;
	return !use->stream
	       || (waiter
	           && (strcmp(waiter->what, "read") == 0 || strcmp(waiter->what, "write") == 0));
}

static int
run_closer(void *arg)
{
	(void)arg;
	if (run.in_wait) /* the target has not resumed since */
		close_used();
	else
		run.missed = true;
	run.alive--;
	return 0;
}

static void
close_by_threadlet(void)
{
	weft_go_opts opts = { .loop = run.loop };

	EXPECT(weft_go_with(&opts, run_closer, NULL) > 0);
	run.alive++;
}

static void
disturb(void)
{
	if (run.what == CLOSE && run.when == PARKED)
		close_by_threadlet();
	else if (run.what == CLOSE)
		close_used();
	else if (run.what == CANCEL)
		(void)weft_cancel(run.id);
	else if (run.what == INTERRUPT)
		(void)weft_interrupt(run.id);
	else if (run.when != PARKED)
		weft__scope_end(weft__scope_of(&run.scope), WEFT_ETIMEDOUT);
	else if (weft__scope_of(&run.scope))
		(void)weft_scope_set_deadline(&run.scope, 1);
	run.struck = true;
}

/* The target waits, or is about to. */
static void
disturb_target(void)
{
	const struct weft__waiter *waiter = run.target->waiter;
	bool direct = waiter && !waiter->request_end && !waiter->deaf;

	disturb();
	run.exact = direct && !run.target->waiter;
}

static void
on_parked(void *arg)
{
	(void)arg;
	if (run.in_wait && run.target->waiter) {
		disturb_target();
		return;
	}
	run.missed = true;
	if (run.alive > 0 && run.what != CLOSE)
		disturb();
}

/* Whether the disturbance may happen now.  A deadline must pass on the scope's loop.  A
 * threadlet that is about to suspend cannot close a listener. */
static bool
can_report(void)
{
	if (run.what == CLOSE)
		return find_use()->stream || !weft__self();
	return run.what != DEADLINE || weft_loop_current() == run.loop;
}

/* Called before each suspension and after each loop iteration: disturb if the target's wait
 * ended. */
static void
check_woken(void)
{
	const struct weft__waiter *waiter;

	if (run.when != WOKEN || !run.in_wait || run.struck || !can_report())
		return;
	waiter = run.target->waiter; /* a wake for another loop is still on its way */
	if (!waiter || weft__load(&waiter->claim, WEFT__RELAXED) == 1)
		disturb();
}

static void
aim(struct weft__threadlet *self)
{
	run.target = self;
	run.id = weft_self();
	if (run.what == CLOSE && !can_close(self->waiter))
		return;
	run.in_wait = true;
	if (run.what != CLOSE && run.when == AT_ONCE && !can_report())
		run.when = PARKED;
	run.node = (weft_node){ .fn = on_parked };
	if (run.when == WOKEN
	    || ((run.when == PARKED || run.what == CLOSE)
	        && weft_loop_post_node(run.loop, &run.node) == 0))
		return;
	disturb_target();
}

/* The threadlet of a weft_loop_call().  It ends early only if its caller does. */
static bool
is_librarys(const struct weft__threadlet *self)
{
	return strcmp(self->name, "call") == 0;
}

void __real_weft__switch_out(struct weft__threadlet *self);
void __wrap_weft__switch_out(struct weft__threadlet *self);

void
__wrap_weft__switch_out(struct weft__threadlet *self)
{
	const struct weft__waiter *waiter = self->waiter;
	bool aimed = !is_librarys(self) && ++run.count == run.n;

	check_woken();
	if (aimed)
		aim(self);
	__real_weft__switch_out(self);
	EXPECT(!self->waiter);
	if (waiter)
		EXPECT(weft__load(&waiter->claim, WEFT__RELAXED) == 1);
	if (!aimed)
		return;
	if (run.exact && waiter)
		EXPECT(waiter->result == reasons[run.what]);
	run.in_wait = false;
}

/* --- called by scenarios ------------------------------------------------ */

bool
went_well(int64_t rc, int64_t want)
{
	if (rc == want)
		return true;
	EXPECT(run.struck && rc == reasons[run.what]);
	run.reported++;
	if (run.what == INTERRUPT)
		EXPECT(run.reported == 1);
	else
		EXPECT(weft_check_canceled() == (run.what == CLOSE ? 0 : rc));
	return false;
}

bool
went_well_shielded(int64_t rc, int64_t want)
{
	if (run.what == INTERRUPT)
		return went_well(rc, want);
	EXPECT(rc == want);
	return rc == want;
}

static void
add_use(struct use use)
{
	EXPECT(run.use_count < USES_MAX);
	use.who = weft_self();
	run.uses[run.use_count++] = use;
}

void
uses_stream(weft_stream **stream)
{
	add_use((struct use){ .stream = stream });
}

void
uses_listener(weft_listener **listener)
{
	add_use((struct use){ .listener = listener });
}

weft_threadlet
target(void)
{
	return run.struck ? run.id : 0;
}

struct started {
	weft_threadlet_fn fn;
	void *arg;
};

static int
run_started(void *arg)
{
	struct started started = *(struct started *)arg;
	int rc;

	free(arg);
	rc = started.fn(started.arg);
	run.alive--;
	return rc;
}

weft_threadlet
start_in(weft_scope *scope, weft_loop *loop, weft_threadlet_fn fn, void *arg)
{
	struct started *started = malloc(sizeof(*started));
	weft_go_opts opts = { .loop = loop, .scope = scope };
	weft_threadlet id;

	if (!started)
		abort();
	*started = (struct started){ fn, arg };
	id = weft_go_with(&opts, run_started, started);
	if (id > 0) {
		run.alive++;
		return id;
	}
	free(started);
	EXPECT(run.struck && id == reasons[run.what]);
	return id;
}

/* --- one run ------------------------------------------------------------ */

static struct stage stage;
static weft_loop *other; /* runs on the same thread */
static const struct suspend_scenario *now;

/* The arguments that repeat the current run, for the handlers in deaths.c. */
static char now_text[160];

static int
run_root(void *arg)
{
	int rc = weft_scope_open(&run.scope, 0, WEFT_NEVER);

	(void)arg;
	EXPECT(rc == 0);
	if (rc == 0) {
		(void)start_in(&run.scope, NULL, now->run, &stage);
		EXPECT(weft_scope_close(&run.scope) == 0);
	}
	run.alive--;
	return 0;
}

/* Run both loops until all threadlets have ended. */
static void
drive(weft_loop *loop)
{
	while (run.alive > 0) {
		EXPECT(weft_loop_run_once(loop, WEFT_NOWAIT) >= 0);
		check_woken();
		EXPECT(weft_loop_run_once(other, WEFT_NOWAIT) >= 0);
		check_woken();
	}
	EXPECT(weft_loop_run(loop) == 0 || weft_loop_state(loop) == WEFT_STOPPED);
	EXPECT(weft_loop_run(other) == 0 || weft_loop_state(other) == WEFT_STOPPED);
}

static weft_loop *
make_loop(void)
{
	weft_loop_opts opts = { .backend = run.backend, .flags = WEFT_LOOP_NO_SPIN };
	weft_loop *loop = weft_loop_new(&opts);

	if (!loop)
		abort();
	return loop;
}

static void
run_scenario(void)
{
	weft_loop *loop = make_loop();
	weft_go_opts opts = { .loop = loop };

	other = make_loop();
	stage = (struct stage){ .there = now->apart ? other : NULL,
		                .flags = now->apart ? WEFT_SHARED : 0,
		                .file = memfd_create("file", MFD_CLOEXEC) };
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, stage.fds) == 0);
	run.loop = loop;
	run.alive = 1;
	EXPECT(weft_go_with(&opts, run_root, NULL) > 0);
	drive(loop);
	EXPECT(run.alive == 0); /* invariant 3 */
	EXPECT(weft_loop_free(other) == 0);
	EXPECT(weft_loop_free(loop) == 0);
	fault_close(stage.fds[0]);
	fault_close(stage.fds[1]);
	fault_close(stage.file);
}

static void
note_run(void)
{
	(void)snprintf(now_text, sizeof(now_text), "suspend_sweep_test %s %s %llu %s", now->name,
	               run.backend, (unsigned long long)run.n, hows[run.what][run.when]);
}

/* Run the scenario with one disturbance.  False if a check failed. */
static bool
run_one(uint64_t n, enum what what, enum when when)
{
	int64_t held = fault_live();
	int fds = test_open_fds();
	const char *backend = run.backend;

	memset(&run, 0, sizeof(run));
	run.backend = backend;
	run.n = n;
	run.what = what;
	run.when = when;
	note_run();
	fault_begin(&(struct fault_plan){ .kind = FAULT_NONE });
	run_scenario();
	EXPECT(fault_live() == held);
	EXPECT(test_open_fds() == fds);
	return fault_problems() == 0;
}

/* --- the sweep ---------------------------------------------------------- */

struct sweep {
	uint64_t points;   /* suspensions that were disturbed while they waited */
	uint64_t problems; /* failed runs */
	bool quiet;
};

static void
try_one(struct sweep *sweep, uint64_t n, enum what what, enum when when)
{
	bool good;

	(void)alarm(HANG_S);
	good = run_one(n, what, when);
	sweep->points += run.struck && !run.missed;
	if (good)
		return;
	if (sweep->problems++ < PRINT_MAX && !sweep->quiet)
		printf("%s: %s\n", now_text, fault_problem_text());
}

/* Returns 1 if it failed, or if it is planted and did not fail. */
static int
sweep_one(const struct suspend_scenario *scenario, const char *backend, bool planted)
{
	struct sweep sweep = { .quiet = planted };
	uint64_t count;
	int whats;

	now = scenario;
	run.backend = backend;
	try_one(&sweep, 0, NOTHING, AT_ONCE);
	count = run.count;
	whats = run.use_count > 0 ? WHATS : CLOSE;
	for (uint64_t n = 1; n <= count; n++)
		for (int what = CANCEL; what < whats; what++)
			for (int when = AT_ONCE; when < WHENS; when++)
				try_one(&sweep, n, (enum what)what, (enum when)when);
	printf("%-14s %-6s %4llu suspensions, %5llu points, ", scenario->name, backend,
	       (unsigned long long)count, (unsigned long long)sweep.points);
	if (planted) {
		printf("planted: %s\n", sweep.problems ? "found" : "NOT FOUND");
		return sweep.problems == 0;
	}
	printf("%llu problems\n", (unsigned long long)sweep.problems);
	if (count < scenario->at_least)
		printf("  fewer than the %u that it has\n", scenario->at_least);
	return sweep.problems > 0 || count < scenario->at_least;
}

static bool
works_here(const char *backend)
{
	return weft__backend_exists(backend)
	       && (strcmp(backend, "uring") != 0 || fault_has_rings());
}

static int
sweep_named(const char *name)
{
	static const char *const backends[] = { "poll", "epoll", "uring" };
	int failed = 0, found = 0;

	for (size_t i = 0; i < suspend_scenario_count; i++) {
		if (name && strcmp(name, suspend_scenarios[i].name) != 0)
			continue;
		found++;
		for (size_t k = 0; k < COUNT(backends); k++)
			if (works_here(backends[k]))
				failed |= sweep_one(&suspend_scenarios[i], backends[k], false);
	}
	for (size_t i = 0; !name && i < suspend_plant_count; i++)
		failed |= sweep_one(&suspend_plants[i], "poll", true);
	if (found == 0)
		printf("no scenario %s\n", name);
	return failed || found == 0;
}

static int
replay(char **args)
{
	struct sweep sweep = { 0 };

	for (size_t i = 0; i < suspend_scenario_count; i++)
		if (strcmp(suspend_scenarios[i].name, args[0]) == 0)
			now = &suspend_scenarios[i];
	for (size_t i = 0; now && i < COUNT(hows) * WHENS; i++) {
		if (strcmp(hows[i / WHENS][i % WHENS], args[3]) != 0)
			continue;
		run.backend = args[1];
		try_one(&sweep, strtoull(args[2], NULL, 10), (enum what)(i / WHENS),
		        (enum when)(i % WHENS));
		printf("%llu suspensions, %s\n", (unsigned long long)run.count,
		       sweep.problems ? "a problem" : "no problem");
		return sweep.problems > 0;
	}
	printf("no such run\n");
	return 2;
}

int
main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	(void)unsetenv("WEFT_BACKEND"); /* the sweep sets the backend */
	fault_install();
	weft__hooks.silent = true; /* do not print errors that are caused on purpose */
	deaths_catch(now_text);
	(void)weft_fail(0, "warm: the text buffer of this thread is no leak");
	if (argc == 5)
		return replay(argv + 1);
	return sweep_named(argc > 1 ? argv[1] : NULL);
}
