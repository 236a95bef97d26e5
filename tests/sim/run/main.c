/* main.c - the simulation: many seeds over all scenarios, in several processes.
 *
 * Seed s runs scenario s modulo the number of scenarios, or the one selected by an option.
 * Each worker process runs every J-th seed and writes its results to shared memory.  A worker
 * that crashes is replaced by one that continues after the seed that crashed.  At the end each
 * failed seed is run again with fewer and fewer faults, each time in its own process, so that a
 * crash can be shrunk like any other failure.
 *
 *   1. Every 100th seed runs twice and must give the same hash.
 *   2. The last line is `N passed, M failed`; the exit status is 1 if M > 0.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sim/run/crash.h"
#include "sim/run/rng.h"
#include "sim/scenarios/scenarios.h"
#include "sim/run/shrink.h"
#include "sim/run/sim.h"

enum {
	JOBS_MAX = 64,
	FAILURES_MAX = 8,  /* of one worker; then it stops */
	FAULTS_MAX = 8192, /* listed per run */
	RUNS_MAX = 200,    /* to shrink one failure */
	TOLD_MAX = 5,      /* failures that are shrunk */
	SECONDS_MAX = 60,  /* for one seed */
	TWICE_EVERY = 100,
};

struct failure {
	uint64_t seed;
	uint32_t scenario;
	char text[SIM_TEXT_BYTES];
};

struct worker {
	pid_t pid;
	uint64_t next; /* seed to begin with */
	uint64_t seed; /* the running seed */
	uint64_t passed, faults, steps, calls;
	uint32_t failed;
	struct failure failures[FAILURES_MAX];
};

/* One run in its own process. */
struct trial {
	struct sim_result result;
	bool ended; /* the run ended; false: it crashed */
	struct sim_fault faults[FAULTS_MAX];
};

static struct {
	uint64_t from, seeds;
	uint64_t seed; /* with `one` */
	bool one;      /* run one seed only */
	bool trace;
	uint32_t jobs;
	double min_faults;
	const char *scenario;
	uint32_t only; /* index of `scenario`; UINT32_MAX: all */
	uint32_t scenarios;
	struct worker *workers; /* shared */
	struct trial *trial;    /* shared */
} job = { .seeds = 1000, .from = 1, .only = UINT32_MAX };

static uint32_t
scenario_of(uint64_t seed)
{
	return job.only != UINT32_MAX ? job.only : (uint32_t)(seed % job.scenarios);
}

static void *
share(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		perror("sim: mmap");
		exit(2);
	}
	return mem;
}

/* --- workers ---------------------------------------------------------- */

static void
add_failure(struct worker *worker, uint64_t seed, const char *text)
{
	struct failure *failure = &worker->failures[worker->failed++];

	failure->seed = seed;
	failure->scenario = scenario_of(seed);
	(void)snprintf(failure->text, sizeof(failure->text), "%s", text);
}

static void
run_seed(struct worker *worker, uint64_t seed)
{
	const struct sim_scenario *scenario = sim_scenarios[scenario_of(seed)];
	struct sim_result result, again;

	worker->seed = seed;
	sim_crash_watch();
	sim_run(scenario, seed, NULL, &result);
	worker->faults += result.faults;
	worker->steps += result.steps;
	worker->calls += result.calls;
	if (!result.failed && seed % TWICE_EVERY == 0) {
		sim_run(scenario, seed, NULL, &again);
		if (again.hash != result.hash)
			add_failure(worker, seed,
			            "run twice, it gave two hashes: some state "
			            "outlives a run, or an address matters");
		else
			worker->passed++;
	} else if (result.failed) {
		add_failure(worker, seed, result.text);
	} else {
		worker->passed++;
	}
}

static _Noreturn void
work(struct worker *worker)
{
	sim_crash_install(SECONDS_MAX);
	while (worker->next < job.from + job.seeds && worker->failed < FAILURES_MAX) {
		uint64_t seed = worker->next;

		worker->next += job.jobs;
		run_seed(worker, seed);
	}
	_exit(0);
}

static void
spawn(struct worker *worker)
{
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		work(worker);
	if (pid < 0) {
		perror("sim: fork");
		exit(2);
	}
	worker->pid = pid; /* not in the child: the memory is shared */
}

static struct worker *
worker_of(pid_t pid)
{
	for (uint32_t i = 0; i < job.jobs; i++)
		if (job.workers[i].pid == pid)
			return &job.workers[i];
	return NULL;
}

static void
describe_death(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		(void)snprintf(text, size, "crashed: %s", strsignal(WTERMSIG(status)));
	else
		(void)snprintf(text, size, "crashed: exit status %d", WEXITSTATUS(status));
}

static void
run_workers(void)
{
	uint32_t running = job.jobs;

	for (uint32_t i = 0; i < job.jobs; i++) {
		job.workers[i].next = job.from + i;
		spawn(&job.workers[i]);
	}
	while (running > 0) {
		char text[64];
		int status;
		pid_t pid = wait(&status);
		struct worker *worker = worker_of(pid);

		if (pid < 0 && errno != EINTR)
			exit(2);
		if (!worker)
			continue;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			running--;
			continue;
		}
		describe_death(status, text, sizeof(text));
		add_failure(worker, worker->seed, text);
		if (worker->failed < FAILURES_MAX)
			spawn(worker);
		else
			running--;
	}
}

/* --- one run in its own process --------------------------------------- */

struct attempt {
	const struct sim_scenario *scenario;
	uint64_t seed;
	uint64_t kind; /* of the failure to reproduce; 0: a crash */
};

/* The child prints no errors: its crashes are expected. */
static void
try_in_child(const struct attempt *attempt, const struct sim_opts *opts)
{
	if (!freopen("/dev/null", "w", stderr))
		_exit(3);
	sim_crash_install(SECONDS_MAX);
	sim_crash_watch();
	sim_run(attempt->scenario, attempt->seed, opts, &job.trial->result);
	job.trial->ended = true;
	_exit(0);
}

static bool
try_apart(const struct attempt *attempt, const uint64_t *only, size_t count)
{
	struct sim_opts opts = { .only = only,
		                 .only_count = count,
		                 .faults = job.trial->faults,
		                 .faults_max = FAULTS_MAX };
	pid_t pid;

	memset(&job.trial->result, 0, sizeof(job.trial->result));
	memset(job.trial->faults, 0, sizeof(job.trial->faults));
	job.trial->ended = false;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		try_in_child(attempt, &opts);
	if (pid < 0)
		return false;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return !job.trial->ended || job.trial->result.failed;
}

static bool
fails_alike(void *arg, const uint64_t *keys, size_t count)
{
	const struct attempt *attempt = arg;

	return try_apart(attempt, keys, count)
	       && (job.trial->ended ? job.trial->result.kind : 0) == attempt->kind;
}

static size_t
listed_faults(void)
{
	size_t count = 0;

	while (count < FAULTS_MAX && job.trial->faults[count].fault_class)
		count++;
	return count;
}

static void
print_faults(size_t before)
{
	size_t count = listed_faults();

	(void)printf("  %zu of %zu faults are enough%s\n", count, before, count ? ":" : "");
	for (size_t i = 0; i < count && i < 40; i++) {
		const struct sim_fault *fault = &job.trial->faults[i];

		(void)printf("    %zu. %s at %s, thread %u, %llu ns: %lld\n", i, fault->fault_class,
		             fault->call, fault->thread, (unsigned long long)fault->time_ns,
		             (long long)fault->what);
	}
}

static void
shrink(struct attempt *attempt)
{
	static uint64_t keys[FAULTS_MAX];
	size_t count, before;

	if (!try_apart(attempt, NULL, 0)) {
		(void)printf("  it does not fail when run alone\n");
		return;
	}
	attempt->kind = job.trial->ended ? job.trial->result.kind : 0;
	before = listed_faults();
	for (size_t i = 0; i < before; i++)
		keys[i] = job.trial->faults[i].key;
	count = sim_shrink(
		&(struct sim_shrink){ .fails = fails_alike, .arg = attempt, .runs_max = RUNS_MAX },
		keys, before);
	(void)try_apart(attempt, keys, count);
	print_faults(before);
}

/* --- reporting -------------------------------------------------------- */

static void
tell_failure(const struct failure *failure, bool in_full)
{
	const char *name = sim_scenarios[failure->scenario]->name;
	unsigned long long seed = failure->seed;
	struct attempt attempt = { .scenario = sim_scenarios[failure->scenario],
		                   .seed = failure->seed };

	(void)printf("FAILED seed %llu of %s: %s\n", seed, name, failure->text);
	(void)printf("  ./dev sim --seed %llu --scenario %s --trace\n", seed, name);
	if (in_full)
		shrink(&attempt);
	(void)fflush(stdout);
}

static double
seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int
tell_all(double began)
{
	uint64_t passed = 0, failed = 0, faults = 0, steps = 0, calls = 0;
	double runs, average;

	for (uint32_t i = 0; i < job.jobs; i++) {
		struct worker *worker = &job.workers[i];

		for (uint32_t k = 0; k < worker->failed; k++)
			tell_failure(&worker->failures[k], failed++ < TOLD_MAX);
		passed += worker->passed;
		faults += worker->faults;
		steps += worker->steps;
		calls += worker->calls;
	}
	runs = passed + failed > 0 ? (double)(passed + failed) : 1;
	average = (double)faults / runs;
	(void)printf("%llu seeds over %u scenarios in %.1f s; on average %.0f calls, "
	             "%.0f steps, %.1f faults\n",
	             (unsigned long long)(passed + failed),
	             job.only == UINT32_MAX ? job.scenarios : 1, seconds() - began,
	             (double)calls / runs, (double)steps / runs, average);
	if (passed + failed < job.seeds)
		(void)printf("stopped early: too many failures\n");
	if (average < job.min_faults) {
		(void)printf("FAILED: fewer than %.1f faults on average\n", job.min_faults);
		failed++;
	}
	(void)printf("%llu passed, %llu failed\n", (unsigned long long)passed,
	             (unsigned long long)failed);
	return failed > 0;
}

/* Run one seed in this process, so that a debugger can be used. */
static int
run_one(void)
{
	const struct sim_scenario *scenario = sim_scenarios[scenario_of(job.seed)];
	struct sim_opts opts = { .print_trace = job.trace,
		                 .faults = job.trial->faults,
		                 .faults_max = FAULTS_MAX };
	struct attempt attempt = { .scenario = scenario, .seed = job.seed };
	struct sim_result result;

	sim_crash_install(SECONDS_MAX);
	sim_run(scenario, job.seed, &opts, &result);
	(void)printf("seed %llu of %s: %s%s\n  hash %016llx, %llu calls, %llu steps, "
	             "%llu faults, %.6f virtual seconds\n",
	             (unsigned long long)job.seed, scenario->name,
	             result.failed ? "FAILED: " : "passed", result.text,
	             (unsigned long long)result.hash, (unsigned long long)result.calls,
	             (unsigned long long)result.steps, (unsigned long long)result.faults,
	             (double)result.virtual_ns / 1e9);
	if (result.failed)
		shrink(&attempt);
	(void)printf("%d passed, %d failed\n", !result.failed, result.failed);
	return result.failed;
}

/* --- options ---------------------------------------------------------- */

static _Noreturn void
usage(void)
{
	(void)fprintf(stderr, "usage: sim [--seeds N] [--from S] [--scenario NAME] "
	                      "[--jobs J] [--min-faults F]\n"
	                      "       sim --seed S [--scenario NAME] [--trace]\n"
	                      "       sim --list\n");
	exit(2);
}

static uint64_t
number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (end == text || *end)
		usage();
	return value;
}

static void
list(void)
{
	for (uint32_t i = 0; i < job.scenarios; i++)
		(void)printf("%s\n", sim_scenarios[i]->name);
	exit(0);
}

static void
take_option(int option)
{
	switch (option) {
	case 'n':
		job.seeds = number(optarg);
		break;
	case 'f':
		job.from = number(optarg);
		break;
	case 's':
		job.seed = number(optarg);
		job.one = true;
		break;
	case 'c':
		job.scenario = optarg;
		break;
	case 'j':
		job.jobs = (uint32_t)number(optarg);
		break;
	case 'm':
		job.min_faults = (double)number(optarg);
		break;
	case 't':
		job.trace = true;
		break;
	case 'l':
		list();
		break;
	default:
		usage();
	}
}

static void
take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "from", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "scenario", required_argument, NULL, 'c' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "min-faults", required_argument, NULL, 'm' },
		{ "trace", no_argument, NULL, 't' },
		{ "list", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(option);
	if (optind < argc)
		usage();
	if (job.jobs == 0)
		job.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (job.jobs > JOBS_MAX)
		job.jobs = JOBS_MAX;
	for (uint32_t i = 0; job.scenario && i < job.scenarios; i++)
		if (strcmp(sim_scenarios[i]->name, job.scenario) == 0)
			job.only = i;
	if (job.scenario && job.only == UINT32_MAX) {
		(void)fprintf(stderr, "sim: no scenario %s; try --list\n", job.scenario);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	double began = seconds();

	while (sim_scenarios[job.scenarios])
		job.scenarios++;
	take_options(argc, argv);
	job.workers = share(sizeof(*job.workers) * JOBS_MAX);
	job.trial = share(sizeof(*job.trial));
	if (job.one)
		return run_one();
	run_workers();
	return tell_all(began);
}
