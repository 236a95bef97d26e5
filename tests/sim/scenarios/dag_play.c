/* dag_play.c - runs of a random graph, on a loop, its pools and plain threads.
 *
 *   1. A node begins when its inputs have ended, once for each attempt, and not after its run
 *      was reported as over.
 *   2. A run has one result.  If the run succeeded, each node has succeeded, and its value is
 *      the sum of its inputs.
 *   3. A run that is not canceled ends by itself, whatever other work there is.
 *   4. At the end nothing is left: templates, loop and pool can be freed.
 *
 * A node with a timeout may count as ended while it still runs.  An optional node may count as
 * ended without having begun, for lack of memory.  So rule 1 is not checked for what depends on
 * such nodes.
 */
#include "sim/scenarios/dag_play.h"
#include <string.h>
#include <weft/dag.h>
#include <weft/threadlet.h>
#include <weft/work.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { NODES = 10, RUNS = 6, ROUNDS = 25 };

/* A random node, the same in all runs. */
struct part {
	char name[4];
	uint32_t inputs; /* bits */
	uint32_t retries, fails;
	bool optional, vague;
	weft_dag_place place;
};

struct round {
	weft_op op;
	weft_dag_run *run;
	struct once once;
	int left; /* how often it is started again */
	weft__a32 ended[NODES], attempts[NODES], done[NODES];
	weft__a32 over;
};

static struct {
	struct host host;
	enum dag_spoil spoil;
	int spoiled; /* index of the node with the planted bug */
	int count;
	struct part parts[NODES];
	weft_dag *dag, *plain; /* `plain` is for threads without a loop */
	weft_pool *pool;
	struct round rounds[RUNS];
	weft_timer timer;
	weft__a32 done, stop;
} play;

/* --- a node -------------------------------------------------------------- */

static void
check_begin(struct round *round, int index, uint32_t attempt)
{
	const struct part *part = &play.parts[index];

	if (weft__load(&round->over, WEFT__RELAXED))
		sim_fail("a step after the end of its run");
	if (weft__add(&round->attempts[index], 1, WEFT__RELAXED) > attempt && !part->vague)
		sim_fail("a step ran more often than it was tried");
	sim_check(attempt <= part->retries);
	for (int i = 0; i < index; i++)
		if ((part->inputs & 1u << i) && !play.parts[i].vague && !play.parts[i].optional
		    && !weft__load(&round->ended[i], WEFT__RELAXED))
			sim_fail("a step began before its input had ended");
}

/* Take some time, by sleeping or by blocking. */
static int
dawdle(const struct part *part)
{
	uint64_t ns = sim_random_below(60 * WEFT_US);

	if (sim_random_below(3) == 0)
		return 0;
	if (part->place == WEFT_DAG_LOOP && weft_self())
		return weft_sleep_until(weft_after(ns));
	pause_ns(ns);
	return weft_check_canceled();
}

static int64_t
add_up(weft_dag_step *step, int index)
{
	int64_t sum = 1 << index;
	size_t at = 0;

	for (int i = 0; i < index; i++)
		if (play.parts[index].inputs & 1u << i) {
			const weft_value *in = weft_dag_step_in(step, at++);

			if (in->type == &weft_type_integer)
				sum |= in->as.integer;
		}
	return sum;
}

static int
work(weft_dag_step *step, void *arg)
{
	int index = (int)((struct part *)arg - play.parts), rc;
	struct part *part = arg;
	struct round *round = weft_dag_run_context(weft_dag_step_run(step));
	uint32_t attempt = weft_dag_step_attempt(step);

	check_begin(round, index, attempt);
	if (play.spoil == DAG_SPOIL_TWICE && index == play.spoiled)
		check_begin(round, index, attempt);
	rc = dawdle(part);
	if (rc == 0 && attempt < part->fails)
		rc = WEFT_EPROTO;
	if (rc == 0)
		rc = weft_dag_step_out(
			step,
			weft_value_integer(play.spoil == DAG_SPOIL_VALUE && index == play.spoiled
		                                   ? 0
		                                   : add_up(step, index)));
	if (rc == 0)
		weft__store(&round->done[index], 1, WEFT__RELAXED);
	if (rc == 0 || attempt == part->retries)
		weft__store(&round->ended[index], 1, WEFT__RELAXED);
	return rc;
}

/* --- drawing ------------------------------------------------------------- */

static void
draw_part(int index)
{
	struct part *part = &play.parts[index];

	memcpy(part->name, "n0", 3);
	part->name[1] = (char)('0' + index);
	for (int i = 0; i < index; i++)
		if (sim_random_below(3) == 0)
			part->inputs |= 1u << i;
	part->place = (weft_dag_place)sim_random_below(3);
	part->retries = (uint32_t)(sim_random_below(3) ? 0 : 2);
	part->fails = (uint32_t)(sim_random_below(4) ? 0 : sim_random_below(3));
	part->optional = sim_random_below(3) == 0;
	part->vague = sim_random_below(6) == 0;
}

/* Remove everything that would keep the checks from being exact. */
static void
make_exact(void)
{
	for (int i = 0; i < play.count; i++) {
		struct part *part = &play.parts[i];

		part->vague = part->optional = false;
		part->retries = part->fails = 0;
	}
	play.spoiled = (int)sim_random_below((uint64_t)play.count - 1);
	if (play.spoil == DAG_SPOIL_EDGE || play.spoil == DAG_SPOIL_VALUE)
		play.parts[play.count - 1].inputs |= 1u << play.spoiled;
}

static int
add_part(weft_dag *dag, int index, bool plain)
{
	struct part *part = &play.parts[index];
	const char *inputs[NODES + 1];
	weft_dag_node node = { .name = part->name,
		               .fn = work,
		               .arg = part,
		               .inputs = inputs,
		               .type = &weft_type_integer,
		               .retries = part->retries,
		               .optional = part->optional,
		               .place = plain ? WEFT_DAG_CPU : part->place };
	int count = 0;

	for (int i = 0; i < index; i++)
		if ((part->inputs & 1u << i)
		    && !(play.spoil == DAG_SPOIL_EDGE && i == play.spoiled
		         && index == play.count - 1))
			inputs[count++] = play.parts[i].name;
	inputs[count] = NULL;
	if (part->vague && !plain)
		node.timeout_ns = 1 + sim_random_below(100 * WEFT_US);
	if (sim_random_below(2) && !plain)
		node.backoff_ns = 1 + sim_random_below(20 * WEFT_US);
	if (index % 3 == 0)
		node.limit = "some";
	return weft_dag_add(dag, &node);
}

static weft_dag *
make_dag(bool plain)
{
	weft_dag *dag;

	while (!(dag = weft_dag_new("play")))
		continue;
	while (weft_dag_set_limit(dag, "some", 2) == WEFT_ENOMEM)
		continue;
	for (int i = 0; i < play.count; i++)
		while (add_part(dag, i, plain) == WEFT_ENOMEM)
			continue;
	while (weft_dag_check(dag) == WEFT_ENOMEM)
		continue;
	sim_check(weft_dag_check(dag) == 0);
	return dag;
}

/* --- runs ---------------------------------------------------------------- */

static bool
is_fair_end(int64_t rc)
{
	return rc == 0 || rc == WEFT_EPROTO || rc == WEFT_ECANCELED || rc == WEFT_ETIMEDOUT
	       || rc == WEFT_ESHUTDOWN || rc == WEFT_ENOMEM || rc == WEFT_EAGAIN;
}

/* The value that a node of a successful run must have. */
static int64_t
expected(const struct round *round, int index)
{
	int64_t sum = 1 << index;

	for (int i = 0; i < index; i++)
		if ((play.parts[index].inputs & 1u << i)
		    && weft__load(&round->done[i], WEFT__RELAXED))
			sum |= expected(round, i);
	return sum;
}

/* Each node has set its own bit, and passed on the bits of its inputs. */
static bool
is_wrong(struct round *round, int index)
{
	weft_value value = { 0 };

	sim_check(weft_dag_run_get(round->run, play.parts[index].name, &value) == 0);
	return value.as.integer != expected(round, index);
}

static bool
is_exact(void)
{
	for (int i = 0; i < play.count; i++)
		if (play.parts[i].optional || play.parts[i].vague)
			return false;
	return true;
}

static void
check_values(struct round *round)
{
	for (int i = 0; i < play.count; i++) {
		weft_value value = { 0 };
		const struct part *part = &play.parts[i];

		sim_check(weft_dag_run_get(round->run, part->name, &value) == 0);
		if (part->optional || part->vague)
			continue;
		sim_check(weft__load(&round->ended[i], WEFT__RELAXED));
		if (!value.type)
			sim_fail("a node that has ended well has no value");
	}
	for (int i = 0; is_exact() && i < play.count; i++)
		if (is_wrong(round, i))
			sim_fail("a wrong value");
}

static void
check_end(struct round *round, int64_t rc)
{
	weft__store(&round->over, 1, WEFT__RELAXED);
	sim_check(is_fair_end(rc));
	if (rc == 0)
		check_values(round);
}

static uint64_t
draw_deadline(void)
{
	return sim_random_below(4) ? WEFT_NEVER : weft_after(sim_random_below(300 * WEFT_US));
}

static bool
make_run(struct round *round, weft_dag *dag, const weft_dag_run_opts *from)
{
	weft_dag_run_opts opts = *from;

	opts.context = round;
	opts.collect_errors = sim_random_below(2);
	opts.trace = sim_random_below(4) == 0;
	for (int i = 0; i < NODES; i++) {
		weft__store(&round->ended[i], 0, WEFT__RELAXED);
		weft__store(&round->done[i], 0, WEFT__RELAXED);
		weft__store(&round->attempts[i], 0, WEFT__RELAXED);
	}
	weft__store(&round->over, 0, WEFT__RELAXED);
	round->run = weft_dag_run_new(dag, &opts);
	return round->run != NULL;
}

static void
start_round(struct round *round)
{
	const weft_dag_run_opts opts = { 0 };
	int rc = WEFT_ENOMEM;

	while (round->left > 0 && rc < 0) {
		round->left--;
		if (!make_run(round, play.dag, &opts))
			continue;
		rc = weft_dag_run_op(round->run, &round->op, draw_deadline());
		sim_check(rc == 0 || rc == WEFT_ENOMEM || rc == WEFT_ESHUTDOWN);
		if (rc < 0)
			weft_dag_run_free(round->run);
	}
	if (rc < 0) {
		round->run = NULL;
		count_up(&play.done);
		return;
	}
	once_begin(&round->once);
	if (play.spoil == DAG_SPOIL_OVER)
		weft__store(&round->over, 1, WEFT__RELAXED);
}

static void
on_round(weft_op *op, int64_t result, void *arg)
{
	struct round *round = arg;

	sim_check(op == &round->op);
	once_end(&round->once);
	check_end(round, result);
	weft_dag_run_free(round->run);
	round->run = NULL;
	start_round(round);
}

static void
act(weft_timer *timer, void *arg)
{
	struct round *round = &play.rounds[sim_random_below(RUNS - 1)];

	(void)timer;
	(void)arg;
	if (!round->run)
		return;
	if (sim_random_below(2))
		weft_dag_run_cancel(round->run);
	else
		weft_op_cancel(&round->op);
}

static void
begin_rounds(void *arg)
{
	(void)arg;
	for (int i = 0; i < RUNS - 1; i++) {
		struct round *round = &play.rounds[i];

		round->left = ROUNDS;
		sim_check(weft_op_init(&round->op, NULL, on_round, round) == 0);
		start_round(round);
	}
	if (sim_random_below(2) && !play.spoil)
		(void)weft_timer_start(NULL, &play.timer, weft_after(WEFT_US),
		                       10 * WEFT_US + sim_random_below(100 * WEFT_US), act, NULL);
	weft_timer_set_background(&play.timer, true);
}

/* A plain thread that runs graphs and waits: alone, with a pool, or with the loop. */
static void
be_caller(void *arg)
{
	struct round *round = &play.rounds[RUNS - 1];

	(void)arg;
	for (int i = 0; i < ROUNDS && !weft__load(&play.stop, WEFT__RELAXED); i++) {
		bool there = sim_random_below(2);
		weft_dag_run_opts opts = { .loop = there ? play.host.loop : NULL };

		if (sim_random_below(2))
			opts.cpu = play.pool;
		if (!make_run(round, there ? play.dag : play.plain, &opts))
			continue;
		check_end(round, weft_dag_run_wait(round->run, draw_deadline()));
		weft_dag_run_free(round->run);
		pause_briefly();
	}
}

void
dag_play(enum dag_spoil spoil)
{
	const weft_pool_opts opts = {
		.threads_max = 1 + (uint32_t)sim_random_below(3),
		.idle_ns = 3 * WEFT_US + sim_random_below(200 * WEFT_US),
	};
	uint64_t caller;

	memset(&play, 0, sizeof(play));
	play.spoil = spoil;
	play.count = 2 + (int)sim_random_below(NODES - 2);
	for (int i = 0; i < play.count; i++)
		draw_part(i);
	if (spoil)
		make_exact();
	play.dag = make_dag(false);
	play.plain = make_dag(true);
	while (!(play.pool = weft_pool_new(&opts)))
		continue;
	host_make(&play.host);
	host_run(&play.host);
	host_call(&play.host, begin_rounds, NULL);
	caller = thread_start("caller", be_caller, NULL);
	pause_ns(sim_random_below(5 * WEFT_MS));
	sim_heal();
	if (sim_random_below(2))
		await_count(&play.done, RUNS - 1);
	weft__store(&play.stop, 1, WEFT__RELAXED);
	host_stop(&play.host);
	thread_join(caller);
	for (int i = 0; i < RUNS; i++)
		once_check(&play.rounds[i].once);
	host_free(&play.host);
	sim_check(weft_pool_free(play.pool) == 0);
	sim_check(weft_dag_free(play.dag) == 0);
	sim_check(weft_dag_free(play.plain) == 0);
}
