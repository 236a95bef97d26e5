/* record.c - a program that does a little of everything, and prints a trace of it.
 *
 * check.py runs it and checks what the trace contains. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/dag.h>
#include <weft/trace.h>
#include <weft/weft.h>

#define MUST(condition) \
	((condition) ? (void)0 : (fprintf(stderr, "%s: %s\n", #condition, weft_detail()), exit(1)))

static weft_loop *first, *second;
static weft_event done = WEFT_SHARED_INIT;
static weft_sem ran = WEFT_SHARED_INIT; /* calls of posted() */

static void
posted(void *arg)
{
	(void)arg;
	MUST(weft_sem_release(&ran, 1) == 0);
}

/* A post that makes another post. */
static void
posted_on(void *arg)
{
	(void)arg;
	MUST(weft_loop_post(second, posted, NULL) == 0);
}

static weft_sem back = WEFT_SHARED_INIT;

static void
post_back(void *arg)
{
	(void)arg;
	MUST(weft_sem_release(&back, 1) == 0);
}

static void
last_post(void *arg)
{
	(void)arg;
	MUST(weft_event_set(&done) == 0);
}

static int
compute(void *arg)
{
	volatile int sum = 0;

	(void)arg;
	for (int i = 0; i < 1000; i++)
		sum += i;
	return 0;
}

/* --- a graph ------------------------------------------------------------- */

static int
step(weft_dag_step *self, void *arg)
{
	(void)self;
	return compute(arg);
}

static int
waiting_step(weft_dag_step *self, void *arg)
{
	(void)self;
	(void)arg;
	return weft_sleep(50 * WEFT_US);
}

static int
list_step(weft_dag_step *self, void *arg)
{
	weft_value items[4] = { weft_value_integer(1), weft_value_integer(2), weft_value_integer(3),
		                weft_value_integer(4) };

	(void)arg;
	return weft_dag_step_out(self, weft_value_list(items, 4));
}

#define AFTER(...)                      \
	.inputs = (const char *const[]) \
	{                               \
		__VA_ARGS__, NULL       \
	}

static weft_dag *
make_graph(void)
{
	const weft_dag_node nodes[] = {
		{ .name = "a", .fn = step },
		{ .name = "b", .fn = waiting_step, .place = WEFT_DAG_LOOP, AFTER("a") },
		{ .name = "c", .fn = step, AFTER("a") },
		{ .name = "list", .fn = list_step, .type = &weft_type_list, AFTER("b", "c") },
		{ .name = "each",
		  .fn = waiting_step,
		  .place = WEFT_DAG_LOOP,
		  .map = true,
		  AFTER("list") },
		{ .name = "last", .fn = step, AFTER("each") },
	};
	weft_dag *dag = weft_dag_new("graph");

	MUST(dag);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		MUST(weft_dag_add(dag, &nodes[i]) >= 0);
	MUST(weft_dag_check(dag) == 0);
	return dag;
}

static void
run_graph(weft_dag *dag)
{
	weft_dag_run *run = weft_dag_run_new(dag, NULL);

	MUST(run && weft_dag_run_wait(run, WEFT_NEVER) == 0);
	weft_dag_run_free(run);
}

/* --- threadlets ---------------------------------------------------------- */

static int
child(void *arg)
{
	(void)arg;
	MUST(weft_loop_post(second, posted_on, NULL) == 0);
	MUST(weft_yield() == 0);
	return weft_sleep(20 * WEFT_US);
}

static int
play(void *arg)
{
	weft_scope scope;

	for (int i = 0; i < 5; i++) { /* an iteration of each loop, however busy they are */
		MUST(weft_loop_post(second, post_back, NULL) == 0);
		MUST(weft_sem_acquire(&back, WEFT_NEVER) == 0);
		MUST(weft_sleep(1) == 0);
	}
	MUST(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < 10; i++)
		MUST(weft_scope_go(&scope, child, NULL) > 0);
	MUST(weft_scope_close(&scope) == 0);
	for (int i = 0; i < 5; i++)
		MUST(weft_work(WEFT_CPU, compute, NULL, WEFT_NEVER) == 0);
	for (int i = 0; i < 3; i++)
		run_graph(arg);
	MUST(weft_loop_post(second, last_post, NULL) == 0);
	return weft_event_wait(&done, WEFT_NEVER);
}

static void *
post_from_outside(void *arg)
{
	static weft_node node = { .fn = posted };

	(void)arg;
	for (int i = 0; i < 100; i++)
		MUST(weft_loop_post(second, posted_on, NULL) == 0);
	MUST(weft_loop_post_node(first, &node) == 0);
	return NULL;
}

static void
print(weft_trace *trace)
{
	const char *piece;
	size_t size;
	int rc;

	while ((rc = weft_trace_read(trace, &piece, &size)) == 1)
		MUST(fwrite(piece, 1, size, stdout) == size);
	MUST(rc == 0);
}

int
main(int argc, char **argv)
{
	weft_loop_opts names[2] = { { .name = "first" },
		                    { .name = "second", .flags = WEFT_LOOP_KEEP } };
	weft_trace_opts opts = { .bytes_max = argc > 1 ? strtoul(argv[1], NULL, 10) : 0 };
	weft_go_opts go = { .name = "player" };
	weft_dag *dag = make_graph();
	weft_trace *trace;
	pthread_t thread;

	first = weft_loop_new(&names[0]);
	second = weft_loop_new(&names[1]);
	MUST(first && second && weft_loop_start(second) == 0);
	MUST(weft_trace_begin(&opts, &trace) == 0);
	go.loop = first;
	MUST(weft_go_with(&go, play, dag) > 0);
	MUST(pthread_create(&thread, NULL, post_from_outside, NULL) == 0);
	MUST(weft_loop_run(first) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(weft_loop_run(first) == 0);
	/* From the plain thread 100 that post again and one more; one from each child. */
	for (int i = 0; i < 100 + 1 + 10; i++)
		MUST(weft_sem_acquire(&ran, WEFT_NEVER) == 0);
	MUST(weft_trace_end(trace) == 0);
	weft_loop_shutdown(second);
	MUST(weft_loop_wait_stopped(second, WEFT_NEVER) == 0);
	MUST(weft_loop_free(first) == 0 && weft_loop_free(second) == 0);
	MUST(weft_dag_free(dag) == 0); /* the trace keeps its own copies of the names */
	print(trace);
	weft_trace_free(trace);
	return 0;
}
