/* ranking.c - a request as a DAG: two loads at once, a score per post. */
#include <stdio.h>
#include <weft/dag.h>
#include <weft/weft.h>

static int
load_taste(weft_dag_step *step, void *delay_ms)
{
	int64_t viewer = weft_dag_step_in(step, 0)->as.integer;
	int rc = weft_sleep(*(int *)delay_ms * WEFT_MS);

	return rc < 0 ? rc
	              : weft_dag_step_out(step,
	                                  weft_value_integer(viewer % 10));
}

static int
list_posts(weft_dag_step *step, void *arg)
{
	weft_value posts[] = { weft_value_integer(30), weft_value_integer(50) };

	(void)arg;
	return weft_dag_step_out(step, weft_value_list(posts, 2));
}

static int
score(weft_dag_step *step, void *arg)
{
	int64_t score = weft_dag_step_in(step, 0)->as.integer
	                * weft_dag_step_in(step, 1)->as.integer;

	(void)arg;
	return weft_dag_step_out(step, weft_value_integer(score));
}

static void
print(const weft_list *scores)
{
	for (size_t i = 0; i < scores->count; i++)
		printf("post %zu: %d\n", i, (int)scores->items[i].as.integer);
}

static int
request(weft_dag *dag, int viewer)
{
	weft_dag_run *run = weft_dag_run_new(dag, NULL);
	weft_value scores;
	int rc = WEFT_ENOMEM;

	if (run) {
		weft_dag_run_set(run, "viewer", weft_value_integer(viewer));
		rc = weft_dag_run_wait(run, weft_after(5 * WEFT_S));
	}
	if (rc == 0 && (rc = weft_dag_run_get(run, "scores", &scores)) == 0)
		print(scores.as.ptr);
	weft_dag_run_free(run);
	return rc;
}

static int
run(void *arg)
{
	static const char *const viewer[] = { "viewer", NULL };
	static const char *const both[] = { "posts", "taste", NULL };
	const weft_type *integer = &weft_type_integer;
	weft_dag *dag = weft_dag_new("ranking");
	int rc, delay_ms = 1;

	(void)arg;
	weft_dag_add_input(dag, "viewer", integer);
	weft_dag_add(dag,
	             &(weft_dag_node){
			     "taste", load_taste, &delay_ms, .inputs = viewer,
			     .type = integer, .place = WEFT_DAG_LOOP,
			     .timeout_ns = 200 * WEFT_MS, .optional = true,
			     .fallback = weft_value_integer(1) });
	weft_dag_add(dag, &(weft_dag_node){ "posts", list_posts, NULL,
	                                    .type = &weft_type_list });
	weft_dag_add(dag, &(weft_dag_node){ "scores", score, NULL, .map = true,
	                                    .inputs = both, .type = integer });
	if ((rc = weft_dag_check(dag)) == 0)
		rc = request(dag, 7);
	delay_ms = 60000; /* too long now: the fallback is used */
	if (rc < 0 || (rc = request(dag, 8)) < 0)
		fprintf(stderr, "%s\n", weft_detail());
	weft_dag_free(dag);
	return rc;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
