/* checks.c - check services in rounds, each round a run of a graph.
 *
 *     checks FILE ROUNDS
 *
 * Each line of FILE has a name, an address, and perhaps one of a replica.
 * The first step of a run reads the file, and adds a step for each line.
 * This is a program of callbacks: the end of a run is the result of an op.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/dag.h>
#include <weft/weft.h>

#define SERVICES 100

struct service {
	char name[32], address[128], replica[128];
};

struct checks {
	weft_loop *loop;
	weft_dag *dag;
	weft_dag_run *run;
	weft_op op;
	int rounds;
	const char *file;
	int count; /* of services, in the last run */
	struct service services[SERVICES];
};

/* Half of the time is for the first address, the rest for the replica. */
static int
check_service(weft_dag_step *step, void *arg)
{
	struct service *service = arg;
	uint64_t end_ns = weft_dag_step_deadline(step), now_ns = weft_now();
	const char *state = "up";
	weft_stream *stream;
	int rc = weft_stream_connect(service->address, NULL, &stream,
	                             now_ns + (end_ns - now_ns) / 2);

	if (rc < 0 && *service->replica) {
		state = "only the replica is up";
		rc = weft_stream_connect(service->replica, NULL, &stream,
		                         end_ns);
	}
	if (rc < 0)
		return rc;
	weft_stream_close(stream);
	return weft_dag_step_out(step, weft_value_text(state));
}

static int
add_line(weft_dag_step *step, const char *line, struct service *service)
{
	static const char *const inputs[] = { "services", NULL };
	weft_dag_node node = { .fn = check_service,
		               .arg = service,
		               .name = service->name,
		               .inputs = inputs,
		               .type = &weft_type_text,
		               .place = WEFT_DAG_LOOP,
		               .timeout_ns = 10 * WEFT_S,
		               .retries = 1,
		               .backoff_ns = 10 * WEFT_MS };

	*service->replica = '\0';
	if (sscanf(line, "%31s %127s %127s", service->name, service->address,
	           service->replica)
	    < 2)
		return weft_fail(WEFT_EINVAL, "not a service: %s", line);
	return weft_dag_step_add(step, &node);
}

/* In the blocking pool. */
static int
read_services(weft_dag_step *step, void *arg)
{
	struct checks *checks = arg;
	FILE *file = fopen(checks->file, "r");
	char line[300];
	int rc = 0;

	checks->count = 0;
	if (!file)
		return -errno;
	while (rc == 0 && checks->count < SERVICES
	       && fgets(line, sizeof line, file)) {
		rc = add_line(step, line, &checks->services[checks->count]);
		checks->count += rc == 0;
	}
	fclose(file);
	return rc;
}

static void
print_run(struct checks *checks, int result)
{
	if (result < 0)
		printf("%s\n", weft_detail()); /* the first error */
	for (int i = 0; i < checks->count; i++) {
		const char *name = checks->services[i].name;
		weft_value state;
		int rc = weft_dag_run_get(checks->run, name, &state);

		printf("%s: %s\n", name,
		       rc < 0 ? "down" : (const char *)state.as.ptr);
	}
}

static int
start_round(struct checks *checks)
{
	weft_dag_run_opts opts = { .loop = checks->loop,
		                   .collect_errors = true };

	checks->rounds--;
	checks->run = weft_dag_run_new(checks->dag, &opts);
	return checks->run
	               ? weft_dag_run_op(checks->run, &checks->op, WEFT_NEVER)
	               : WEFT_ENOMEM;
}

static void
on_run_ended(weft_op *op, int64_t result, void *arg)
{
	struct checks *checks = arg;

	(void)op;
	print_run(checks, (int)result);
	weft_dag_run_free(checks->run);
	if (checks->rounds > 0 && start_round(checks) < 0)
		fprintf(stderr, "%s\n", weft_detail());
}

static int
make_graph(struct checks *checks)
{
	weft_dag_node list = { .name = "services",
		               .fn = read_services,
		               .arg = checks,
		               .place = WEFT_DAG_BLOCKING };
	int rc;

	checks->loop = weft_loop_new(NULL);
	checks->dag = weft_dag_new("checks");
	if (!checks->loop || !checks->dag)
		return WEFT_ENOMEM;
	weft_op_init(&checks->op, checks->loop, on_run_ended, checks);
	rc = weft_dag_add(checks->dag, &list);
	return rc < 0 ? rc : weft_dag_check(checks->dag);
}

int
main(int argc, char **argv)
{
	static struct checks checks;
	struct weft_dag_stats stats;

	if (argc != 3)
		return 2;
	checks.file = argv[1];
	checks.rounds = (int)strtol(argv[2], NULL, 10);
	if (make_graph(&checks) < 0 || start_round(&checks) < 0
	    || weft_loop_run(checks.loop) < 0)
		return 1;
	if (weft_dag_stats(checks.dag, &stats) == 0)
		printf("%d runs, %d failed, %d retries\n", (int)stats.runs,
		       (int)stats.failed, (int)stats.retries);
	return weft_dag_free(checks.dag) < 0 || weft_loop_free(checks.loop) < 0;
}
