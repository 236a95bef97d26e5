/* dag_check.c - checking and freezing a template.
 *
 * Names become indices; sources and dependents become two arrays of indices.  An error text has
 * the names concerned.  A check that fails changes only what the next one computes again, so a
 * template that was refused can be completed and checked again.
 */
#include "dag/dag.h"

#define PATH_NAMES 24                  /* of a cycle, in the error text */
#define WORK_MAX   (UINT32_C(1) << 24) /* where counting stops */

struct check {
	weft_dag *dag;
	uint32_t edges;  /* from nodes and inputs */
	uint32_t *left;  /* sources that are not done yet, for each node */
	uint32_t *queue; /* nodes whose sources are done */
};

static const weft_dag_node *
set_of(const weft_dag *dag, uint32_t index)
{
	return &dag->nodes[index].more->set;
}

static bool
is_input(const weft_dag *dag, uint32_t index)
{
	return dag->nodes[index].flags & WEFT__DAG_INPUT;
}

/* --- names --------------------------------------------------------------- */

static uint32_t
count_inputs(const weft_dag_node *set)
{
	uint32_t count = 0;

	while (set->inputs && set->inputs[count])
		count++;
	return count;
}

static uint64_t
count_edges(const weft_dag *dag)
{
	uint64_t edges = 0;

	for (uint32_t i = 0; i < dag->count; i++)
		edges += count_inputs(set_of(dag, i));
	return edges;
}

/* All arrays in one allocation: sources, dependents, roots, and two for the check itself. */
static int
make_arrays(struct check *check)
{
	weft_dag *dag = check->dag;
	uint64_t edges = count_edges(dag), words = 2 * edges + 3ull * dag->count;
	uint32_t *memory;

	if (edges > UINT32_MAX / 4)
		return weft__fail(WEFT_EINVAL, "weft_dag_check: more than a billion edges");
	memory = weft__alloc_zero((words + 1) * sizeof(*memory));
	if (!memory)
		return weft__fail(WEFT_ENOMEM, "weft_dag_check: out of memory");
	weft__sys->release(dag->in);
	check->edges = (uint32_t)edges;
	dag->in = memory;
	dag->out = dag->in + edges;
	dag->roots = dag->out + edges;
	check->left = dag->roots + dag->count;
	check->queue = check->left + dag->count;
	return 0;
}

/* Check the type of source `k` of the node `index`. */
static int
check_type(const weft_dag *dag, uint32_t index, uint32_t k, uint32_t source)
{
	const weft_dag_node *set = set_of(dag, index);
	const weft_type *given = dag->nodes[source].more->type;
	const weft_type *wanted = set->input_types ? set->input_types[k] : NULL;

	if (set->map && k == 0) {
		if (given == &weft_type_list || (!given && is_input(dag, source)))
			return 0;
		return weft_fail(WEFT_EINVAL,
		                 "node %s runs for each item of %s, which is not a list", set->name,
		                 dag->nodes[source].more->name);
	}
	if (!wanted || wanted == given || (!given && is_input(dag, source)))
		return 0;
	return weft_fail(WEFT_EINVAL, "node %s expects its input %s to be %s, but it is %s",
	                 set->name, dag->nodes[source].more->name, wanted->name,
	                 given ? given->name : "no value");
}

static int
resolve_node(struct check *check, uint32_t index, uint32_t *at)
{
	weft_dag *dag = check->dag;
	struct weft__dag_node *node = &dag->nodes[index];
	const weft_dag_node *set = set_of(dag, index);

	node->in_at = *at;
	node->in_count = count_inputs(set);
	node->missing = 0;
	node->out_count = 0;
	for (uint32_t k = 0; k < node->in_count; k++) {
		int64_t source = weft__dag_find(dag, set->inputs[k]);
		int rc;

		if (source < 0)
			return weft_fail(WEFT_EINVAL, "node %s: there is no node or input named %s",
			                 set->name, set->inputs[k]);
		rc = check_type(dag, index, k, (uint32_t)source);
		if (rc < 0)
			return rc;
		dag->in[(*at)++] = (uint32_t)source;
		node->missing += !is_input(dag, (uint32_t)source);
	}
	return 0;
}

/* Collect the dependents of each node: count them, make room for them, store them. */
static void
turn_edges(struct check *check)
{
	weft_dag *dag = check->dag;
	uint32_t at = 0;

	for (uint32_t e = 0; e < check->edges; e++)
		dag->nodes[dag->in[e]].out_count++;
	for (uint32_t i = 0; i < dag->count; i++) {
		dag->nodes[i].out_at = at;
		at += dag->nodes[i].out_count;
		dag->nodes[i].out_count = 0;
	}
	for (uint32_t i = 0; i < dag->count; i++)
		for (uint32_t k = 0; k < dag->nodes[i].in_count; k++) {
			struct weft__dag_node *from = &dag->nodes[dag->in[dag->nodes[i].in_at + k]];

			dag->out[from->out_at + from->out_count++] = i;
		}
}

static int
resolve(struct check *check)
{
	uint32_t at = 0;
	int rc = 0;

	for (uint32_t i = 0; i < check->dag->count && rc == 0; i++)
		rc = resolve_node(check, i, &at);
	if (rc == 0)
		turn_edges(check);
	return rc;
}

/* --- cycles -------------------------------------------------------------- */

/* A source of `index` that was never done. */
static uint32_t
stuck_source(const struct check *check, uint32_t index)
{
	const weft_dag *dag = check->dag;
	const struct weft__dag_node *node = &dag->nodes[index];
	uint32_t k = 0;

	while (is_input(dag, dag->in[node->in_at + k])
	       || check->left[dag->in[node->in_at + k]] == 0)
		k++;
	return dag->in[node->in_at + k];
}

/* Walking back from a node that is stuck meets some node a second time, which is therefore part
 * of a cycle.  `queue` is no longer needed and holds the marks. */
static uint32_t
one_in_cycle(const struct check *check)
{
	uint32_t at = 0;

	while (check->left[at] == 0)
		at++;
	for (uint32_t i = 0; i < check->dag->count; i++)
		check->queue[i] = 0;
	while (!check->queue[at]) {
		check->queue[at] = 1;
		at = stuck_source(check, at);
	}
	return at;
}

/* Report a cycle.  The path is collected against the edges, and printed along them. */
static int
report_cycle(const struct check *check)
{
	const weft_dag *dag = check->dag;
	uint32_t first = one_in_cycle(check), at = first, length = 0;
	uint32_t path[PATH_NAMES];
	char buffer[900];
	struct weft__text text = weft__text_begin(buffer, sizeof(buffer));

	do {
		if (length < PATH_NAMES)
			path[length] = at;
		length++;
		at = stuck_source(check, at);
	} while (at != first);
	weft__text_add(&text, dag->nodes[first].more->name);
	if (length > PATH_NAMES)
		weft__text_add(&text, " -> ...");
	for (uint32_t i = length < PATH_NAMES ? length : PATH_NAMES; i-- > 0;) {
		weft__text_add(&text, " -> ");
		weft__text_add(&text, dag->nodes[path[i]].more->name);
	}
	return weft_fail(WEFT_EINVAL, "%s: the nodes form a cycle: %s", dag->name, buffer);
}

/* Remove nodes all of whose sources are removed, until there is no such node.  Nodes that are left
 * are in cycles, or depend on one. */
static int
find_cycles(struct check *check)
{
	weft_dag *dag = check->dag;
	uint32_t done = 0, known = 0;

	for (uint32_t i = 0; i < dag->count; i++) {
		check->left[i] = dag->nodes[i].missing;
		if (!is_input(dag, i) && check->left[i] == 0)
			check->queue[known++] = i;
	}
	for (; done < known; done++) {
		const struct weft__dag_node *node = &dag->nodes[check->queue[done]];

		for (uint32_t k = 0; k < node->out_count; k++) {
			uint32_t to = dag->out[node->out_at + k];

			if (--check->left[to] == 0)
				check->queue[known++] = to;
		}
	}
	return known + dag->inputs == dag->count ? 0 : report_cycle(check);
}

/* --- other requirements of a node ---------------------------------------- */

static int
check_sub(weft_dag *dag, const weft_dag_node *set)
{
	const weft_dag *sub = set->subgraph;
	uint32_t k = 0;

	if (!sub->checked)
		return weft_fail(WEFT_EINVAL,
		                 "node %s: call weft_dag_check() for its graph %s first", set->name,
		                 sub->name);
	if (count_inputs(set) != sub->inputs)
		return weft_fail(WEFT_EINVAL, "node %s has %u inputs, but its graph %s expects %u",
		                 set->name, count_inputs(set), sub->name, sub->inputs);
	for (uint32_t i = 0; i < sub->count; i++) {
		int64_t from;
		const weft_type *given, *wanted = sub->nodes[i].more->type;

		if (!is_input(sub, i))
			continue;
		from = weft__dag_find(dag, set->inputs[k]);
		given = dag->nodes[from].more->type;
		if (wanted && given && wanted != given && !(set->map && k == 0))
			return weft_fail(
				WEFT_EINVAL,
				"node %s passes input %s as %s to its graph, which expects %s",
				set->name, set->inputs[k], given->name, wanted->name);
		k++;
	}
	if (set->type && (sub->sink == sub->count || sub->nodes[sub->sink].more->type != set->type))
		return weft_fail(
			WEFT_EINVAL,
			"node %s: its graph %s needs exactly one node without dependents, of "
			"type %s",
			set->name, sub->name, set->type->name);
	if (sub->nesting + 1 > WEFT__DAG_NESTING)
		return weft_fail(WEFT_EINVAL, "node %s: graphs are nested more than 64 deep",
		                 set->name);
	if (dag->nesting < sub->nesting + 1)
		dag->nesting = sub->nesting + 1;
	dag->needs_loop |= sub->needs_loop;
	dag->has_limits |= sub->has_limits;
	return 0;
}

static int
check_limit(const weft_dag *dag, struct weft__dag_more *more)
{
	more->limit = more->set.limit ? weft__dag_find_limit(dag, more->set.limit) : NULL;
	return more->set.limit && !more->limit ? weft_fail(
		       WEFT_EINVAL,
		       "node %s: limit %s is not declared; call weft_dag_set_limit() first",
		       more->name, more->set.limit)
	                                       : 0;
}

/* Insert a priority, highest first. */
static int
add_level(weft_dag *dag, int priority)
{
	uint32_t at = 0, i;

	while (at < dag->levels && dag->level[at] > priority)
		at++;
	if (at < dag->levels && dag->level[at] == priority)
		return 0;
	if (dag->levels == WEFT__DAG_LEVELS)
		return weft__fail(WEFT_EINVAL, "weft_dag_check: more than 16 different priorities");
	for (i = dag->levels; i > at; i--)
		dag->level[i] = dag->level[i - 1];
	dag->level[at] = priority;
	dag->levels++;
	return 0;
}

/* The level of that priority, or of the next lower one; else the lowest level.  Nodes that do
 * not come from this template may have other priorities. */
uint8_t
weft__dag_level(const weft_dag *dag, int priority)
{
	uint8_t at = 0;

	while (at + 1u < dag->levels && dag->level[at] > priority)
		at++;
	return at;
}

static int
check_node(weft_dag *dag, uint32_t index)
{
	struct weft__dag_node *node = &dag->nodes[index];
	const weft_dag_node *set = set_of(dag, index);
	int rc = check_limit(dag, node->more);

	if (rc == 0 && set->subgraph)
		rc = check_sub(dag, set);
	if (rc == 0)
		rc = add_level(dag, set->priority);
	for (uint32_t i = 0; rc == 0 && set->subgraph && i < set->subgraph->levels; i++)
		rc = add_level(dag, set->subgraph->level[i]);
	/* A group counts as enough work for all threads. */
	dag->work[node->place] += node->flags & WEFT__DAG_GROUP ? 64 : 1;
	for (int p = 0; p < 3 && set->subgraph; p++)
		if (dag->work[p] < WORK_MAX)
			dag->work[p] += set->subgraph->work[p];
	dag->needs_loop |= node->place == WEFT_DAG_LOOP || set->timeout_ns > 0
	                   || (set->retries > 0 && set->backoff_ns > 0);
	return rc;
}

static int
check_nodes(weft_dag *dag)
{
	int rc = 0;

	dag->levels = dag->nesting = dag->root_count = 0;
	dag->work[0] = dag->work[1] = dag->work[2] = 0;
	dag->needs_loop = false;
	dag->has_limits = dag->limits != NULL;
	dag->sink = dag->count;
	for (uint32_t i = 0; i < dag->count && rc == 0; i++)
		if (!is_input(dag, i))
			rc = check_node(dag, i);
	return rc;
}

/* --- the end ------------------------------------------------------------- */

static void
freeze(weft_dag *dag)
{
	uint32_t sinks = 0;

	for (uint32_t i = 0; i < dag->count; i++) {
		struct weft__dag_node *node = &dag->nodes[i];

		if (is_input(dag, i))
			continue;
		node->level = weft__dag_level(dag, node->more->set.priority);
		if (node->missing == 0)
			dag->roots[dag->root_count++] = i;
		if (node->out_count == 0) {
			dag->sink = sinks == 0 ? i : dag->count;
			sinks++;
		}
		if (node->more->set.subgraph) {
			(void)weft__add(&node->more->set.subgraph->users, 1, WEFT__RELAXED);
			(void)weft__add(&node->more->set.subgraph->parents, 1, WEFT__RELAXED);
		}
	}
	dag->checked = true;
	weft__dag_enlist(dag);
}

int
weft_dag_check(weft_dag *dag)
{
	struct check check = { .dag = dag };
	int rc;

	if (!dag)
		return weft__misuse(WEFT_EINVAL, "weft_dag_check: dag is NULL");
	if (dag->checked)
		return 0;
	rc = make_arrays(&check);
	if (rc == 0)
		rc = resolve(&check);
	if (rc == 0)
		rc = find_cycles(&check);
	if (rc == 0)
		rc = check_nodes(dag);
	if (rc == 0)
		freeze(dag);
	return rc;
}
