/* sweep_test.c - every scenario under every single fault, on the real kernel.
 *
 *     sweep_test                                          all of them
 *     sweep_test SCENARIO|all [BACKEND]                   one, or on one backend
 *     sweep_test planted                                  those that contain a mistake
 *     sweep_test SCENARIO BACKEND MEMBER N ERRNO          one run
 *
 * A run without faults counts the calls of each member of the sys table.  Then there is one run
 * for each call and each of its errors (errnos.def, uring.def), runs in which each allocation
 * fails alone and together with all later ones, and runs in which each call that moves bytes
 * moves one.  io_uring requests and completions fail like calls (request.c).  After each run,
 * no allocation and no descriptor may be held that was not held before, there may be no child
 * process, and all checks of the scenario must have passed.  In place of ERRNO, `short` is a
 * short count; `one` and `from` are for the member `memory`; `once` and `ended` are for
 * multishot requests; `denied` is for calls that a seccomp filter forbids.  The backend `small`
 * is uring with the smallest rings.
 *
 *   1. A point is a fault that was injected.  The sweep fails if it has fewer points than the
 *      stored number: a sweep that injects nothing finds nothing.
 *   2. Planted scenarios contain a mistake.  The sweep fails if it does not find the mistake.
 *   3. If the process dies or hangs, the current run is printed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>
#include "backend/backend.h"
#include "base/os.h"
#include "deaths.h"
#include "fault.h"
#include "open_fds.h"
#include "scenarios.h"
#include "uring.h"

#define HANG_S     120u
#define WAIT_SHORT (20 * WEFT_MS)
#define WAIT_LONG  (1000 * WEFT_MS)
#define PRINT_MAX  8 /* problems printed per scenario */
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

enum { EPOLL, POLL, URING, SMALL, BACKENDS };
static const char *const backends[] = { "epoll", "poll", "uring", "small" };
static const char *const kinds[] = { "-", "-", "short", "one", "from", "once", "ended", "denied" };

/* c-ares resolves host names, or else one blocking call on a thread does. */
#define DNS_POINTS(n) (HAS_CARES ? (n) : 330)

#define TLS_POINTS(n) (HAS_TLS ? (n) : 0)

/* The least number of points of each scenario, by backend; 0: it does not run there.  Where
 * threads or the clock determine the number of waits, the stored number is lower than the usual
 * one. */
static const struct {
	const char *name;
	uint64_t points[BACKENDS];
} stored[] = {
	{ "loop", { 40, 40, 0, 0 } },
	{ "thread", { 35, 35, 0, 0 } },
	{ "thread_fd", { 110, 110, 160, 160 } },
	{ "thread_op", { 110, 110, 160, 160 } },
	{ "echo", { 260, 175, 170, 220 } },
	{ "tcp", { 540, 450, 350, 370 } },
	{ "full", { 155, 120, 130, 135 } },
	{ "full_two", { 310, 240, 210, 240 } },
	{ "poller", { 165, 125, 0, 0 } },
	{ "watch", { 150, 85, 470, 480 } },
	{ "ops", { 120, 80, 400, 410 } },
	{ "stop", { 200, 140, 310, 410 } },
	{ "stop_both", { 360, 270, 470, 610 } },
	{ "stop_request", { 120, 90, 155, 200 } },
	{ "choice", { 0, 0, 135, 170 } },
	{ "flood", { 350, 300, 370, 950 } },
	{ "late", { 320, 280, 480, 730 } },
	{ "caller", { 325, 265, 210, 235 } },
	{ "prompt", { 48, 33, 130, 145 } },
	{ "early", { 75, 45, 210, 245 } },
	{ "stream", { 450, 350, 190, 165 } },
	{ "clients", { 190, 175, 130, 170 } },
	{ "line", { 0, 0, 170, 0 } },
	{ "work", { 70, 70, 0, 0 } },
	{ "dag", { 350, 350, 0, 0 } },
	{ "promise", { 900, 900, 0, 0 } },
	{ "file", { 200, 190, 330, 400 } },
	{ "dgram", { 310, 290, 390, 400 } },
	{ "dns", { DNS_POINTS(850), DNS_POINTS(820), DNS_POINTS(950), 0 } },
	{ "streams", { 1050, 950, 850, 900 } },
	{ "stream_events", { 580, 530, 460, 480 } },
	{ "stream_file", { 560, 545, 690, 700 } },
	{ "tls", { TLS_POINTS(650), TLS_POINTS(650), TLS_POINTS(560), TLS_POINTS(570) } },
	{ "tls_client", { TLS_POINTS(700), TLS_POINTS(650), TLS_POINTS(620), TLS_POINTS(690) } },
	{ "redis", { 1700, 1600, 1450, 1450 } },
	{ "http", { 620, 560, 610, 640 } },
	{ "signal", { 340, 285, 560, 580 } },
	{ "child", { 190, 160, 300, 310 } },
	{ "child_stop", { 300, 260, 320, 330 } },
	{ "pid", { 75, 55, 155, 165 } },
	{ "wheel", { 22, 0, 0, 0 } },
	{ "spawn", { 170, 170, 170, 170 } },
	{ "spawn_there", { 360, 360, 360, 360 } },
};

/* --- the current run ---------------------------------------------------- */

/* The arguments that repeat the current run, for the handlers in deaths.c. */
static char now[160];

static const char *
name_of_error(const struct fault_plan *plan)
{
	if (plan->kind != FAULT_ERRNO)
		return kinds[plan->kind];
	for (size_t i = 0; i < fault_errno_count; i++)
		if (fault_errnos[i].error == plan->error
		    && strcmp(fault_errnos[i].member, fault_member_name(plan->member)) == 0)
			return fault_errnos[i].name;
	return "?";
}

static void
note_run(const char *scenario, const char *backend, const struct fault_plan *plan)
{
	(void)snprintf(now, sizeof(now), "sweep_test %s %s %s %llu %s", scenario, backend,
	               plan->kind == FAULT_NONE ? "-" : fault_member_name(plan->member),
	               (unsigned long long)plan->n, name_of_error(plan));
}

/* --- one run ------------------------------------------------------------ */

struct sweep {
	const struct scenario *scenario;
	const char *backend;
	uint64_t points;
	uint64_t problems; /* failed runs */
	bool quiet;
};

/* Whether there is a child, running or ended.  Waits for all children. */
static bool
has_child(void)
{
	bool any = false;

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		any = true;
		(void)waitpid(-1, NULL, 0);
	}
	return any;
}

/* The library's name of the backend. */
static const char *
name_of(const char *backend)
{
	bool small = strcmp(backend, backends[SMALL]) == 0;

	fault_set_small_rings(small);
	return small ? backends[URING] : backend;
}

/* Run the scenario under `plan`; each of its waits lasts at most `wait_ns`.  False if a check
 * failed. */
static bool
try_one(const struct sweep *sweep, const struct fault_plan *plan, uint64_t wait_ns)
{
	int64_t held = fault_live();
	int fds = test_open_fds();

	scenario_wait_ns = wait_ns;
	note_run(sweep->scenario->name, sweep->backend, plan);
	fault_begin(plan);
	sweep->scenario->run(name_of(sweep->backend));
	EXPECT(fault_live() == held);
	EXPECT(test_open_fds() == fds);
	EXPECT(!has_child());
	return fault_problems() == 0;
}

/* On a busy machine, a short wait can expire although nothing is wrong.  So a failed run is
 * repeated with waits that are fifty times as long, and only that result counts. */
static void
run_one(struct sweep *sweep, const struct fault_plan *plan)
{
	bool good;

	(void)alarm(HANG_S);
	/* The run without a fault determines the number of calls, so a short wait must not
	 * truncate it. */
	good = plan->kind != FAULT_NONE && try_one(sweep, plan, WAIT_SHORT);
	if (!good)
		good = try_one(sweep, plan, WAIT_LONG);
	sweep->points += fault_hits() > 0;
	if (good)
		return;
	if (sweep->problems++ < PRINT_MAX && !sweep->quiet)
		printf("%s: %s\n", now, fault_problem_text());
}

/* --- one scenario ------------------------------------------------------- */

static void
sweep_errors(struct sweep *sweep, const uint64_t *counts)
{
	for (size_t i = 0; i < fault_errno_count; i++) {
		const struct fault_errno *e = &fault_errnos[i];
		int member = fault_member_find(e->member);
		struct fault_plan plan = {
			.kind = FAULT_ERRNO,
			.member = (enum fault_member)member,
			.error = e->error,
			.honest = e->recoverable && e->error != EAGAIN,
		};

		for (uint64_t n = 1; member >= 0 && n <= counts[member]; n++) {
			plan.n = n;
			run_one(sweep, &plan);
		}
	}
}

static void
sweep_kind(struct sweep *sweep, int member, enum fault_kind kind, uint64_t count)
{
	struct fault_plan plan = { .kind = kind, .member = (enum fault_member)member };

	if (kind == FAULT_DENIED && count > 1)
		count = 1; /* the fault affects every call */
	for (plan.n = 1; plan.n <= count; plan.n++)
		run_one(sweep, &plan);
}

static void
sweep_all(struct sweep *sweep)
{
	struct fault_plan none = { .kind = FAULT_NONE };
	uint64_t counts[FAULT_MEMBER_COUNT];

	run_one(sweep, &none);
	for (int i = 0; i < FAULT_MEMBER_COUNT; i++)
		counts[i] = fault_count(i);
	sweep_errors(sweep, counts);
	for (int kind = FAULT_SHORT; kind <= FAULT_DENIED; kind++)
		for (int i = 0; i < FAULT_MEMBER_COUNT; i++)
			if (fault_can_be(i, (enum fault_kind)kind))
				sweep_kind(sweep, i, (enum fault_kind)kind, counts[i]);
}

static uint64_t
least_points(const char *name, size_t backend)
{
	for (size_t i = 0; i < COUNT(stored); i++)
		if (strcmp(stored[i].name, name) == 0)
			return stored[i].points[backend];
	return 1;
}

/* The backend is part of this build, and the kernel supports it. */
static bool
works_here(const char *backend)
{
	const char *name = name_of(backend);

	return weft__backend_exists(name)
	       && (strcmp(name, backends[URING]) != 0 || fault_has_rings());
}

/* Returns 1 if it failed. */
static int
sweep_scenario(const struct scenario *scenario, size_t backend)
{
	struct sweep sweep = { .scenario = scenario, .backend = backends[backend] };
	uint64_t least = least_points(scenario->name, backend);
	uint64_t begin_ns = weft__sys_real.now();

	if (least == 0 || !works_here(sweep.backend))
		return 0;
	sweep_all(&sweep);
	printf("%-12s %-6s %6llu points, %llu problems, %llu ms\n", scenario->name, sweep.backend,
	       (unsigned long long)sweep.points, (unsigned long long)sweep.problems,
	       (unsigned long long)((weft__sys_real.now() - begin_ns) / WEFT_MS));
	if (sweep.points < least)
		printf("%s %s: fewer than %llu points\n", scenario->name, sweep.backend,
		       (unsigned long long)least);
	return sweep.problems > 0 || sweep.points < least;
}

/* --- planted ------------------------------------------------------------ */

/* Memory that the planted scenarios leak, so that the sweep can free it at the end. */
static void *lost[4], *lost_stacks[4];
static unsigned lost_count, lost_stack_count;

/* Leaks the first of two allocations when the second fails. */
static void
run_leak(const char *backend)
{
	void *first = weft__sys->alloc(16), *second;

	(void)backend;
	if (!first)
		return;
	second = weft__sys->alloc(16);
	if (!second) {
		lost[lost_count++] = first; /* in the runs `one` 2 and `from` 2 */
		return;
	}
	weft__sys->release(second);
	weft__sys->release(first);
}

/* Closes a descriptor in the error path and again at the end. */
static void
run_twice(const char *backend)
{
	int fds[2];
	char byte;

	(void)backend;
	if (weft__sys->pipe(fds) < 0)
		return;
	if (weft__sys->write(fds[1], "x", 1) < 0)
		(void)weft__sys->close(fds[0]);
	else
		(void)weft__sys->read(fds[0], &byte, 1);
	(void)weft__sys->close(fds[0]);
	(void)weft__sys->close(fds[1]);
}

/* Leaks one end when closing the other reports an error. */
static void
run_forget(const char *backend)
{
	int fds[2];

	(void)backend;
	if (weft__sys->pipe(fds) < 0)
		return;
	if (weft__sys->close(fds[0]) < 0)
		return;
	(void)weft__sys->close(fds[1]);
}

/* Does not reap an ended child when the first attempt fails. */
static void
run_zombie(const char *backend)
{
	const char *const argv[] = { "true", NULL };
	struct weft__spawn spawn = { .argv = argv, .fds = { -1, -1, -1 } };
	struct weft__pid pid = { .fd = -1 };
	int status;

	(void)backend;
	pid.pid = weft__sys->spawn(&spawn);
	if (pid.pid > 0)
		(void)weft__sys->reap(&pid, WEFT__REAP_WAIT, &status);
}

#define STACK_BYTES ((size_t)65536)

/* Leaks a stack whose guard page could not be set. */
static void
run_unguarded(const char *backend)
{
	void *stack = weft__sys->stack_map(2 * STACK_BYTES);

	(void)backend;
	if (stack && weft__sys->stack_guard(stack, STACK_BYTES) < 0) {
		lost_stacks[lost_stack_count++] = stack;
		return;
	}
	if (stack)
		weft__sys->stack_unmap(stack, 2 * STACK_BYTES);
}

static const struct scenario planted[] = {
	{ "leak", run_leak },     { "twice", run_twice },         { "forget", run_forget },
	{ "zombie", run_zombie }, { "unguarded", run_unguarded },
};

static int
sweep_planted(const struct scenario *scenario, const char *backend)
{
	struct sweep sweep = { .scenario = scenario, .backend = backend, .quiet = true };

	sweep_all(&sweep);
	while (lost_count > 0)
		weft__sys->release(lost[--lost_count]);
	while (lost_stack_count > 0)
		weft__sys->stack_unmap(lost_stacks[--lost_stack_count], 2 * STACK_BYTES);
	printf("%-12s %-6s %6llu points, planted: %s\n", scenario->name, backend,
	       (unsigned long long)sweep.points, sweep.problems ? "found" : "NOT FOUND");
	return sweep.problems == 0;
}

static int
sweep_all_planted(void)
{
	int failed = 0;

	for (size_t i = 0; i < COUNT(planted); i++)
		failed |= sweep_planted(&planted[i], "-");
	for (size_t i = 0; works_here(backends[URING]) && i < mistaken_count; i++)
		failed |= sweep_planted(&mistaken[i], backends[URING]);
	return failed;
}

/* --- the first loop of a process ---------------------------------------- */

/* at_fork is called once per process, so its fault comes before all others. */
static int
sweep_first_loop(void)
{
	struct fault_plan plan = {
		.kind = FAULT_ERRNO, .member = FAULT_at_fork, .n = 1, .error = ENOMEM
	};
	weft_loop *loop;

	note_run("-", "-", &plan);
	fault_begin(&plan);
	EXPECT(!weft_loop_new(NULL));
	EXPECT(fault_hits() == 1);
	fault_heal();
	loop = weft_loop_new(NULL);
	EXPECT(loop != NULL);
	EXPECT(weft_loop_free(loop) == 0);
	EXPECT(fault_live() == 0);
	if (fault_problems() > 0)
		printf("the first loop: %s\n", fault_problem_text());
	return fault_problems() > 0;
}

/* --- main --------------------------------------------------------------- */

/* Sweep all scenarios or one, on all backends or one. */
static int
sweep_named(const char *name, const char *backend)
{
	int failed = 0, found = 0;

	if (weft__backend_exists(backends[URING]) && !works_here(backends[URING]))
		printf("io_uring is refused here, and not swept\n");
	for (size_t i = 0; i < scenario_count; i++) {
		if (name && strcmp(name, scenarios[i].name) != 0)
			continue;
		for (size_t k = 0; k < BACKENDS; k++) {
			if (backend && strcmp(backend, backends[k]) != 0)
				continue;
			found++;
			failed |= sweep_scenario(&scenarios[i], k);
		}
	}
	if (found == 0)
		printf("nothing to sweep is called so\n");
	return failed || found == 0;
}

static int
sweep_requested(const char *name, const char *backend)
{
	if (!name)
		return sweep_named(NULL, NULL) | sweep_all_planted();
	if (strcmp(name, "planted") == 0)
		return sweep_all_planted();
	return sweep_named(strcmp(name, "all") == 0 ? NULL : name, backend);
}

static bool
read_error(struct fault_plan *plan, const char *text)
{
	for (int i = FAULT_SHORT; i <= FAULT_DENIED; i++)
		if (strcmp(kinds[i], text) == 0)
			plan->kind = (enum fault_kind)i;
	for (size_t i = 0; i < fault_errno_count; i++) {
		const struct fault_errno *e = &fault_errnos[i];

		if (fault_member_find(e->member) == (int)plan->member
		    && strcmp(e->name, text) == 0) {
			plan->kind = FAULT_ERRNO;
			plan->error = e->error;
			plan->honest = e->recoverable && e->error != EAGAIN;
		}
	}
	return plan->kind != FAULT_NONE;
}

/* One run, preceded by one without faults, as in the sweep. */
static int
replay(char **args)
{
	struct sweep sweep = { .backend = args[1] };
	struct fault_plan plan = { .kind = FAULT_NONE };
	int member = fault_member_find(args[2]);

	for (size_t i = 0; i < scenario_count; i++)
		if (strcmp(scenarios[i].name, args[0]) == 0)
			sweep.scenario = &scenarios[i];
	plan.member = (enum fault_member)member;
	plan.n = strtoull(args[3], NULL, 10);
	if (!sweep.scenario || member < 0 || !read_error(&plan, args[4])) {
		printf("no such run\n");
		return 2;
	}
	run_one(&sweep, &(struct fault_plan){ .kind = FAULT_NONE });
	run_one(&sweep, &plan);
	printf("%s\n", sweep.points == 0     ? "not reached"
	               : sweep.problems == 0 ? "no problem"
	                                     : "a problem");
	return sweep.problems > 0;
}

int
main(int argc, char **argv)
{
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	(void)unsetenv("WEFT_BACKEND"); /* the sweep sets the backend */
	fault_install();
	weft__hooks.silent = true; /* do not print errors that are injected on purpose */
	deaths_catch(now);
	failed = sweep_first_loop();
	(void)weft_fail(0, "warm: the text buffer of this thread is no leak");
	if (argc == 6)
		return replay(argv + 1);
	failed |= sweep_requested(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
	return failed;
}
