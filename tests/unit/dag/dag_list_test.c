/* dag_list_test.c - the list of templates, with counters and times of their nodes. */
#include <weft/dag.h>
#include <weft/trace.h>
#include "base/sys.h"
#include "unit/dag/graph.h"

/* A clock that only steps advance. */
static const struct weft__sys *plain;
static struct weft__sys faked;
static uint64_t clock_ns, readings;

static uint64_t
now(void)
{
	readings++;
	return clock_ns;
}

static void
fake_clock(void)
{
	plain = weft__sys;
	faked = *plain;
	faked.now = now;
	weft__sys = &faked;
	clock_ns += 1000 * WEFT_S; /* after the end of all earlier observations */
}

static void
unfake(void)
{
	weft__sys = plain;
}

static int
take_time(weft_dag_step *step, void *arg)
{
	(void)step;
	clock_ns += (uint64_t) * (const int *)arg * WEFT_US;
	return 0;
}

static int
take_time_and_fail(weft_dag_step *step, void *arg)
{
	(void)take_time(step, arg);
	return weft_fail(WEFT_EPROTO, "told to fail");
}

/* The listed text of the template `name`, or "".  Valid until the next call. */
static const char *
see(const char *name)
{
	static char text[4096];
	char head[64];
	uint64_t cursor = 0;
	weft_value value;
	bool found = false;

	snprintf(head, sizeof(head), "{\n\t\"name\": \"%s\",", name);
	while (!found && weft_dag_list(&cursor, &value) == 1) {
		found = strncmp(value.as.ptr, head, strlen(head)) == 0;
		snprintf(text, sizeof(text), "%s", (const char *)value.as.ptr);
		weft_value_drop(&value);
	}
	return found ? text : "";
}

static void
run_once(weft_dag *dag, int rc)
{
	weft_dag_run *run = run_of(dag, NULL);

	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), rc);
	weft_dag_run_free(run);
}

static weft_dag *
checked(const char *name, const weft_dag_node *node)
{
	weft_dag *dag = weft_dag_new(name);

	CHECK(weft_dag_add(dag, node) >= 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	return dag;
}

static int ten = 10, thirty = 30;

/* --- lists --------------------------------------------------------------- */

TEST(templates_are_listed_from_their_check_until_they_are_freed)
{
	weft_dag *dag = weft_dag_new("listed");

	CHECK(weft_dag_add(dag, NODE("a", take_time, .arg = &ten)) >= 0);
	CHECK_STR(see("listed"), "");
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK(strstr(see("listed"), "\"started\": 0, \"running\": 0, "
	                            "\"failed\": 0, \"retries\": 0, \"late\": 0"));
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_STR(see("listed"), "");
}

TEST(each_template_is_listed_once_with_its_own_id)
{
	weft_dag *dags[3];
	uint64_t cursor = 0, before = 0;
	weft_value value;
	char id[40];

	for (int i = 0; i < 3; i++)
		dags[i] = checked("many", NODE("a", take_time, .arg = &ten));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(weft_dag_list(&cursor, &value), 1);
		CHECK(cursor > before);
		before = cursor;
		snprintf(id, sizeof(id), "\"id\": %llu,", (unsigned long long)cursor);
		CHECK(strstr(value.as.ptr, id));
		weft_value_drop(&value);
	}
	CHECK_EQ(weft_dag_list(&cursor, &value), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_dag_free(dags[i]), 0);
}

TEST(runs_count_as_running_until_freed_and_use_as_subgraph_does_not_count)
{
	weft_dag *inner = checked("inner", NODE("a", take_time, .arg = &ten));
	weft_dag *outer = checked("outer", &(weft_dag_node){ .name = "in", .subgraph = inner });
	weft_dag_run *run = run_of(inner, NULL);

	CHECK(strstr(see("inner"), "\"started\": 1, \"running\": 1"));
	CHECK(strstr(see("outer"), "\"started\": 0, \"running\": 0"));
	weft_dag_run_free(run);
	CHECK(strstr(see("inner"), "\"started\": 1, \"running\": 0"));
	CHECK_EQ(weft_dag_free(outer), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(a_list_without_memory_fails_and_can_be_continued)
{
	weft_dag *dag = checked("poor", NODE("a", take_time, .arg = &ten));
	uint64_t cursor = 0;
	weft_value value;

	fake_clock();
	faked.alloc = no_memory;
	CHECK_EQ(weft_dag_list(&cursor, &value), WEFT_ENOMEM);
	CHECK_EQ(cursor, 0);
	unfake();
	CHECK_EQ(weft_dag_list(&cursor, &value), 1);
	weft_value_drop(&value);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_MISUSE(weft_dag_list(NULL, &value), WEFT_EINVAL);
	CHECK_MISUSE(weft_dag_list(&cursor, NULL), WEFT_EINVAL);
}

/* --- times --------------------------------------------------------------- */

#define UNSEEN                                                         \
	"\"count\": 0, \"failed\": 0, \"mean_ns\": 0, \"max_ns\": 0, " \
	"\"last_ns\": 0"

TEST(the_times_of_nodes_are_reported_while_observed)
{
	int us = 10;
	weft_dag *dag;

	fake_clock();
	dag = checked("timed", NODE("a", take_time, .arg = &us));
	run_once(dag, 0);
	CHECK(strstr(see("timed"), UNSEEN));
	weft_dag_observe(clock_ns + WEFT_S);
	run_once(dag, 0);
	us = 40;
	run_once(dag, 0);
	us = 10;
	run_once(dag, 0);
	CHECK(strstr(see("timed"), "\"count\": 3, \"failed\": 0, "
	                           "\"mean_ns\": 20000, \"max_ns\": 40000, \"last_ns\": 10000"));
	CHECK_EQ(weft_dag_free(dag), 0);
	unfake();
}

TEST(failed_attempts_of_a_node_are_counted)
{
	weft_dag *dag;

	fake_clock();
	dag = checked("failing", NODE("a", take_time_and_fail, .arg = &ten, .retries = 2));
	weft_dag_observe(clock_ns + WEFT_S);
	run_once(dag, WEFT_EPROTO);
	CHECK(strstr(see("failing"), "\"failed\": 1, \"retries\": 2"));
	CHECK(strstr(see("failing"), "\"count\": 3, \"failed\": 3, \"mean_ns\": 10000"));
	CHECK_EQ(weft_dag_free(dag), 0);
	unfake();
}

TEST(a_subgraph_is_timed_as_a_whole)
{
	weft_dag *inner, *outer;

	fake_clock();
	inner = weft_dag_new("inner");
	CHECK(weft_dag_add(inner, NODE("a", take_time, .arg = &ten)) >= 0);
	CHECK(weft_dag_add(inner, NODE("b", take_time, .arg = &thirty)) >= 0);
	CHECK_EQ(weft_dag_check(inner), 0);
	outer = checked("outer", &(weft_dag_node){ .name = "in", .subgraph = inner });
	weft_dag_observe(clock_ns + WEFT_S);
	run_once(outer, 0);
	CHECK(strstr(see("outer"), "\"count\": 1, \"failed\": 0, \"mean_ns\": 40000"));
	CHECK(strstr(see("inner"), "\"count\": 1, \"failed\": 0, \"mean_ns\": 30000"));
	CHECK_EQ(weft_dag_free(outer), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
	unfake();
}

TEST(items_of_a_list_are_timed_as_a_whole)
{
	weft_value items[3] = { weft_value_integer(1), weft_value_integer(2),
		                weft_value_integer(3) };
	weft_dag *dag = weft_dag_new("items");
	weft_dag_run *run;

	fake_clock();
	CHECK(weft_dag_add_input(dag, "list", &weft_type_list) >= 0);
	CHECK(weft_dag_add(dag,
	                   NODE("a", take_time, .arg = &ten, .map = true, .inputs = INPUTS("list")))
	      >= 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	weft_dag_observe(clock_ns + WEFT_S);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_set(run, "list", weft_value_list(items, 3)), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	CHECK(strstr(see("items"), "\"count\": 1, \"failed\": 0, \"mean_ns\": 30000"));
	CHECK_EQ(weft_dag_free(dag), 0);
	unfake();
}

TEST(runs_read_no_clock_after_the_observation_has_ended)
{
	weft_dag *dag;
	uint64_t before;

	fake_clock();
	dag = checked("quiet", NODE("a", take_time, .arg = &ten));
	for (int i = 0; i < 8; i++) /* the first runs are timed anyway */
		run_once(dag, 0);
	readings = 0;
	run_once(dag, 0);
	before = readings;
	weft_dag_observe(clock_ns + WEFT_S);
	weft_dag_observe(clock_ns); /* does not shorten the observation */
	run_once(dag, 0);
	CHECK(readings > before);
	clock_ns += 2 * WEFT_S;
	run_once(dag, 0); /* detects that the observation has expired */
	readings = 0;
	run_once(dag, 0);
	CHECK_EQ(readings, before);
	CHECK(strstr(see("quiet"), "\"count\": 1,"));
	CHECK_EQ(weft_dag_free(dag), 0);
	unfake();
}

static void
linger(const weft_dag_progress *progress, void *arg)
{
	(void)progress;
	(void)arg;
	clock_ns += 5 * WEFT_MS;
}

/* The thread that runs a step may have spent any time in the progress callback of the step
 * before. */
TEST(work_between_two_steps_is_not_part_of_their_times)
{
	weft_dag_run_opts opts = { .on_progress = linger };
	weft_dag_run *run;
	weft_dag *dag;

	fake_clock();
	dag = weft_dag_new("between");
	CHECK(weft_dag_add(dag, NODE("a", take_time, .arg = &ten)) >= 0);
	CHECK(weft_dag_add(dag, NODE("b", take_time, .arg = &ten, .inputs = INPUTS("a"))) >= 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	weft_dag_observe(clock_ns + WEFT_S);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	CHECK(!strstr(see("between"), "\"last_ns\": 10010000"));
	CHECK_EQ(weft_dag_free(dag), 0);
	unfake();
}

static char *
trace_of(weft_dag *dag)
{
	weft_value items[2] = { weft_value_integer(1), weft_value_integer(2) };
	weft_dag_run_opts opts = { .trace = true };
	weft_dag_run *run = run_of(dag, &opts);
	weft_value value;
	char *text;

	CHECK_EQ(weft_dag_run_set(run, "list", weft_value_list(items, 2)), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(weft_dag_run_write(run, WEFT_DAG_TRACE, &value), 0);
	text = strdup(value.as.ptr);
	weft_value_drop(&value);
	weft_dag_run_free(run);
	return text;
}

/* Only steps advance the clock, so both traces are equal. */
TEST(the_trace_of_a_run_does_not_change_while_a_recording_runs)
{
	weft_trace *recording;
	char *without, *with;
	weft_dag *dag;

	fake_clock();
	dag = weft_dag_new("items");
	CHECK(weft_dag_add_input(dag, "list", &weft_type_list) >= 0);
	CHECK(weft_dag_add(dag,
	                   NODE("a", take_time, .arg = &ten, .map = true, .inputs = INPUTS("list")))
	      >= 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	without = trace_of(dag);
	CHECK_EQ(weft_trace_begin(NULL, &recording), 0);
	with = trace_of(dag);
	weft_trace_free(recording);
	CHECK_STR(with, without);
	free(with);
	free(without);
	CHECK_EQ(weft_dag_free(dag), 0);
	unfake();
}
