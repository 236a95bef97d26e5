/* selftest.c - tests the simulator itself.
 *
 * Does the simulated kernel behave like the real one?  Does a run repeat exactly?  Are planted
 * bugs found?  Prints each test's name as it passes; stops at the first that fails.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim/run/crash.h"
#include "sim/selftest/differ.h"
#include "sim/run/fault.h"
#include "sim/kernel/heap.h"
#include "sim/selftest/planted.h"
#include "sim/scenarios/scenarios.h"
#include "sim/selftest/semantics.h"
#include "sim/run/shrink.h"
#include "sim/run/sim.h"

enum {
	SEEDS = 1000,
	SEMANTIC_SEEDS = 100,
	LOCAL_PROGRAMS = 3000,
	TCP_PROGRAMS = 100,
	FAULTS_MAX = 4096,
};

static int passed;

static void
pass(const char *name)
{
	passed++;
	(void)printf("ok  %s\n", name);
	(void)fflush(stdout);
}

static _Noreturn void
die(const char *text)
{
	(void)printf("FAILED: %s\n%d passed, 1 failed\n", text, passed);
	exit(1);
}

#define must(cond) ((cond) ? (void)0 : die(__FILE__ ":" PLACE(__LINE__) ": " #cond))

/* Run `scenario`; it must not fail. */
static struct sim_result
run_well(const struct sim_scenario *scenario, uint64_t seed, const struct sim_opts *opts)
{
	struct sim_result result;

	sim_run(scenario, seed, opts, &result);
	if (result.failed) {
		(void)printf("%s, seed %llu: ", scenario->name, (unsigned long long)seed);
		die(result.text);
	}
	return result;
}

/* --- compared with the real kernel ------------------------------------ */

static void
run_semantic(void *arg)
{
	const struct semantic_test *test = arg;

	test->run(&host_simulated);
}

static void
compare_semantics(const struct semantic_test *tests)
{
	for (; tests->name; tests++) {
		struct sim_scenario scenario = {
			.name = tests->name,
			.run = run_semantic,
			.arg = (void *)(uintptr_t)tests,
			.masked_faults = SIM_MASK_ALL,
		};

		tests->run(&host_real);
		for (uint64_t seed = 0; seed < SEMANTIC_SEEDS; seed++)
			(void)run_well(&scenario, seed, NULL);
		pass(tests->name);
	}
}

static struct differ_log log_real, log_simulated;
static bool with_tcp;

static void
run_program(void *arg)
{
	differ_run(&host_simulated, *(uint64_t *)arg, with_tcp, &log_simulated);
}

/* The real loopback is not always as fast as this test expects: a difference counts only if it
 * occurs three times. */
static void
compare_programs(uint64_t first, uint64_t count, bool tcp)
{
	struct sim_opts opts = { .calm = true };
	int retries = 0;

	with_tcp = tcp;
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct sim_scenario scenario = { .name = "differ",
			                         .run = run_program,
			                         .arg = &seed,
			                         .masked_faults = SIM_MASK_ALL };
		int tries = 0;

		do {
			differ_run(&host_real, seed, tcp, &log_real);
			(void)run_well(&scenario, seed, &opts);
		} while (!differ_equal(&log_real, &log_simulated) && ++tries < 3);
		retries += tries > 0 && tries < 3;
		if (tries < 3)
			continue;
		differ_print(&log_real, &log_simulated);
		(void)printf("random program %llu: ", (unsigned long long)seed);
		die("the kernels differ");
	}
	(void)printf("    %llu programs, %d of them run again\n", (unsigned long long)count,
	             retries);
}

/* --- repeatable runs -------------------------------------------------- */

static void
same_seed_gives_the_same_hash(void)
{
	uint64_t before = 0;
	int equal = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		const struct sim_scenario *scenario = sim_scenarios[seed % 2];
		uint64_t hash = run_well(scenario, seed, NULL).hash;

		must(hash == run_well(scenario, seed, NULL).hash);
		equal += hash == before;
		before = hash;
	}
	must(equal == 0);
	pass("same_seed_gives_the_same_hash_and_others_differ");
}

static void
use_memory(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		char *mem = weft__sys->alloc(10), *more;

		more = mem ? weft__sys->resize(mem, 1000) : NULL;
		weft__sys->release(more ? more : mem);
	}
	sim_check(sim_count_bytes() == 0);
}

static uint64_t
note_classes(const struct sim_scenario *scenario, uint64_t seed, bool *seen)
{
	static struct sim_fault faults[FAULTS_MAX];
	struct sim_opts opts = { .faults = faults, .faults_max = FAULTS_MAX };
	struct sim_result result = run_well(scenario, seed, &opts);

	for (size_t i = 0; i < result.faults && i < FAULTS_MAX; i++)
		for (int k = 0; k < SIM_CLASSES; k++)
			seen[k] |= strcmp(faults[i].fault_class, sim_class_name(k)) == 0;
	return result.faults;
}

static void
every_class_of_fault_happens(void)
{
	static const struct sim_scenario memory = { .name = "memory", .run = use_memory };
	bool seen[SIM_CLASSES] = { false };
	uint64_t count = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++)
		count += note_classes(seed % 3 == 2 ? &memory : sim_scenarios[seed % 3], seed,
		                      seen);
	for (int i = 0; i < SIM_CLASSES; i++)
		if (!seen[i])
			die(sim_class_name(i));
	(void)printf("    %.1f faults on average\n", (double)count / SEEDS);
	pass("every_class_of_fault_happens");
}

static void
make_and_close(void *arg)
{
	uint64_t *count = arg;
	int fd;

	for (int i = 0; i < 200; i++) {
		fd = weft__sys->eventfd();
		if (fd < 0) {
			++*count;
			continue;
		}
		(void)weft__sys->close(fd);
		if (i == 100)
			sim_heal();
		if (i >= 100)
			sim_check(fd >= 0);
	}
}

static void
masked_and_healed_faults_do_not_happen(void)
{
	uint64_t errors = 0;
	struct sim_scenario scenario = { .name = "healing", .run = make_and_close, .arg = &errors };
	struct sim_opts opts = { .masked_faults = SIM_MASK_ALL };

	for (uint64_t seed = 0; seed < 200; seed++)
		must(run_well(&scenario, seed, &opts).faults == 0);
	must(errors == 0);
	for (uint64_t seed = 0; seed < 200; seed++)
		(void)run_well(&scenario, seed, NULL);
	must(errors > 0);
	pass("masked_and_healed_faults_do_not_happen");
}

static void
read_the_clock(void *arg)
{
	uint64_t before = weft__sys->now(), *jumps = arg;

	for (int i = 0; i < 2000; i++) {
		uint64_t now = weft__sys->now();

		sim_check(now > before);
		sim_check(now - before < 86402 * WEFT_S);
		*jumps += now - before > WEFT_MS;
		before = now;
	}
}

static void
clock_goes_forward_and_sometimes_jumps(void)
{
	uint64_t jumps = 0;
	struct sim_scenario scenario = { .name = "clock", .run = read_the_clock, .arg = &jumps };

	for (uint64_t seed = 0; seed < 200; seed++)
		(void)run_well(&scenario, seed, NULL);
	must(jumps > 10);
	pass("clock_goes_forward_and_sometimes_jumps");
}

/* --- planted bugs ----------------------------------------------------- */

struct hunt {
	const struct planted *plant;
	uint64_t seed, kind;
};

static bool
fails_alike(void *arg, const uint64_t *keys, size_t count)
{
	const struct hunt *hunt = arg;
	struct sim_opts opts = {
		.only = keys, .only_count = count, .steps_max = 100000, .calm = hunt->plant->calm
	};
	struct sim_result result;

	sim_run(&hunt->plant->scenario, hunt->seed, &opts, &result);
	return result.failed && result.kind == hunt->kind;
}

static size_t
shrink(struct hunt *hunt, const struct sim_fault *faults, size_t count)
{
	static uint64_t keys[FAULTS_MAX];

	for (size_t i = 0; i < count; i++)
		keys[i] = faults[i].key;
	return sim_shrink(
		&(struct sim_shrink){ .fails = fails_alike, .arg = hunt, .runs_max = 200 }, keys,
		count);
}

/* Of the seeds that fail, shrink the one with the most faults: it has the most to remove. */
static void
find(const struct planted *plant)
{
	static struct sim_fault faults[FAULTS_MAX], most[FAULTS_MAX];
	struct sim_opts opts = {
		.faults = faults, .faults_max = FAULTS_MAX, .steps_max = 100000, .calm = plant->calm
	};
	struct hunt hunt = { .plant = plant };
	struct sim_result result;
	size_t found = 0, count = 0, left;

	for (uint64_t seed = 0; seed < plant->seeds; seed++) {
		sim_run(&plant->scenario, seed, &opts, &result);
		if (!result.failed)
			continue;
		must(strncmp(result.text, plant->found_as, strlen(plant->found_as)) == 0);
		must(result.faults <= FAULTS_MAX);
		found++;
		if (found > 1 && result.faults <= count)
			continue;
		count = result.faults;
		memcpy(most, faults, count * sizeof(faults[0]));
		hunt.seed = seed;
		hunt.kind = result.kind;
	}
	if (found == 0)
		die(plant->scenario.name);
	left = shrink(&hunt, most, count);
	(void)printf("    found in %zu of %u seeds; %zu faults shrink to %zu\n", found,
	             plant->seeds, count, left);
	must(left <= plant->faults);
	pass(plant->scenario.name);
}

static void
crash(void *arg)
{
	(void)arg;
	weft__sys->yield();
	abort();
}

static void
crash_tells_its_seed(void)
{
	static const struct sim_scenario scenario = { .name = "crashes", .run = crash };
	char text[4096] = "";
	int fds[2], status;
	ssize_t size;
	pid_t pid;

	must(pipe(fds) == 0);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct sim_result result;

		(void)dup2(fds[1], STDERR_FILENO);
		sim_crash_install(10);
		sim_crash_watch();
		sim_run(&scenario, 4711, NULL, &result);
		_exit(0);
	}
	(void)close(fds[1]);
	must(waitpid(pid, &status, 0) == pid);
	size = read(fds[0], text, sizeof(text) - 1);
	(void)close(fds[0]);
	must(size > 0);
	must(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
	must(strstr(text, "./dev sim --seed 4711 --scenario crashes") != NULL);
	pass("crash_tells_its_seed");
}

/* selftest [FROM LOCAL TCP]: the first random program, and how many of both kinds.  selftest
 * crowd: only a server with thousands of peers. */
int
main(int argc, char **argv)
{
	uint64_t from = argc > 3 ? strtoull(argv[1], NULL, 0) : 0;
	uint64_t local = argc > 3 ? strtoull(argv[2], NULL, 0) : LOCAL_PROGRAMS;
	uint64_t tcp = argc > 3 ? strtoull(argv[3], NULL, 0) : TCP_PROGRAMS;
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	if (argc == 2 && strcmp(argv[1], "crowd") == 0)
		return http_many();
	(void)sigaction(SIGPIPE, &ignore, NULL); /* the real pipe sends SIGPIPE */
	for (int fd = 3; fd < 1024; fd++)        /* there must be no gaps in the free numbers */
		(void)close(fd);
	compare_semantics(semantics_epoll);
	compare_semantics(semantics_files);
	compare_semantics(semantics_sockets);
	compare_programs(from, local, false);
	pass("random_programs_get_the_same_results_from_both_kernels");
	compare_programs(from, tcp, true);
	pass("random_programs_with_tcp_get_the_same_results_from_both_kernels");
	same_seed_gives_the_same_hash();
	every_class_of_fault_happens();
	masked_and_healed_faults_do_not_happen();
	clock_goes_forward_and_sometimes_jumps();
	for (const struct planted *plant = planted; plant->found_as; plant++)
		if (!plant->unwatched || !SIM_MEMORY_WATCHED)
			find(plant);
	crash_tells_its_seed();
	must(scenario_plants() == 0);
	pass("judges_of_scenarios_find_what_is_planted");
	must(threadlet_plants() == 0);
	must(stream_plants() == 0);
	must(http_plants() == 0);
	must(dag_plants() == 0);
	must(redis_plants() == 0);
	pass("the_judge_of_threadlets_finds_what_is_planted");
	(void)printf("%d passed, 0 failed\n", passed);
	return 0;
}
