/* dag_build.c - building a template.
 *
 * Names are found through a hash table of indices, which runs use as well.  Names and lists of the
 * caller are copied.  Types, subgraphs and the arguments of functions are borrowed.
 */
#include "dag/dag.h"

/* --- memory -------------------------------------------------------------- */

static char *
copy_text(const char *text)
{
	size_t size = __builtin_strlen(text) + 1;
	char *copy = weft__sys->alloc(size);

	if (copy)
		__builtin_memcpy(copy, text, size);
	return copy;
}

static uint32_t
hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ h >> 15;
}

/* The table entry of `name`, or the free one where it belongs. */
static uint32_t *
name_entry(const weft_dag *dag, const char *name)
{
	uint32_t at = hash(name) & (dag->names_room - 1);

	while (dag->names[at]
	       && __builtin_strcmp(dag->nodes[dag->names[at] - 1].more->name, name) != 0)
		at = (at + 1) & (dag->names_room - 1);
	return &dag->names[at];
}

int64_t
weft__dag_find(const weft_dag *dag, const char *name)
{
	return dag->names_room > 0 ? (int64_t)*name_entry(dag, name) - 1 : -1;
}

/* Make room for one more name, and keep a quarter of the table free. */
static int
reserve_name(weft_dag *dag)
{
	uint32_t room = dag->names_room, *old = dag->names, *names;

	if ((uint64_t)(dag->count + 1) * 4 <= (uint64_t)room * 3)
		return 0;
	room = room ? room * 2 : 16;
	names = weft__alloc_zero(room * sizeof(*names));
	if (!names)
		return WEFT_ENOMEM;
	dag->names = names;
	dag->names_room = room;
	for (uint32_t i = 0; i < dag->count; i++)
		*name_entry(dag, dag->nodes[i].more->name) = i + 1;
	weft__sys->release(old);
	return 0;
}

static int
reserve_node(weft_dag *dag)
{
	uint32_t room = dag->room ? dag->room * 2 : 8;
	struct weft__dag_node *nodes;

	if (dag->count < dag->room)
		return 0;
	if (dag->count >= INT32_MAX / 2)
		return WEFT_ENOMEM;
	nodes = weft__sys->alloc(room * sizeof(*nodes));
	if (!nodes)
		return WEFT_ENOMEM;
	if (dag->nodes)
		__builtin_memcpy(nodes, dag->nodes, dag->count * sizeof(*nodes));
	weft__sys->release(dag->nodes);
	dag->nodes = nodes;
	dag->room = room;
	return 0;
}

/* --- one node ------------------------------------------------------------ */

static size_t
count_names(const char *const *names)
{
	size_t count = 0;

	while (names && names[count])
		count++;
	return count;
}

/* Both lists in one allocation; the names follow the pointers. */
static int
copy_inputs(weft_dag_node *set, const weft_dag_node *from)
{
	size_t count = count_names(from->inputs), bytes = 0;
	const weft_type **types;
	const char **names;
	char *text;

	for (size_t i = 0; i < count; i++)
		bytes += __builtin_strlen(from->inputs[i]) + 1;
	names = weft__sys->alloc((count + 1) * sizeof(*names) + count * sizeof(*types) + bytes);
	if (!names)
		return WEFT_ENOMEM;
	types = (const weft_type **)(names + count + 1);
	text = (char *)(types + count);
	for (size_t i = 0; i < count; i++) {
		size_t size = __builtin_strlen(from->inputs[i]) + 1;

		names[i] = __builtin_memcpy(text, from->inputs[i], size);
		types[i] = from->input_types ? from->input_types[i] : NULL;
		text += size;
	}
	names[count] = NULL;
	set->inputs = names;
	set->input_types = types;
	return 0;
}

static bool
can_share(const weft_value *value)
{
	weft_value other;
	bool can = weft_value_share(value, &other) == 0;

	if (can)
		weft_value_drop(&other);
	return can;
}

static const char *
what_is_wrong(const weft_dag_node *node)
{
	if (!node->fn == !node->subgraph)
		return "needs either a function or a subgraph, not both";
	if ((unsigned)node->place > WEFT_DAG_BLOCKING)
		return "has an invalid place";
	if (node->map && !(node->inputs && node->inputs[0]))
		return "runs for each item of its first input, and has no input";
	if (node->retries > UINT16_MAX)
		return "has more than 65,535 retries";
	if (node->fallback.type && !node->optional)
		return "has a fallback but is not optional";
	if (node->fallback.type && weft__dag_type_of(node) != node->fallback.type)
		return "has a fallback that is not of the node's output type";
	if (!can_share(&node->fallback))
		return "has a fallback that cannot be shared";
	return NULL;
}

static uint8_t
flags_of(const weft_dag_node *node)
{
	uint8_t flags = 0;

	if (node->map || node->subgraph)
		flags |= WEFT__DAG_GROUP;
	if (node->timeout_ns)
		flags |= WEFT__DAG_TIMED;
	if (flags || node->condition || node->optional || node->retries || node->limit)
		flags |= WEFT__DAG_SPECIAL;
	return flags;
}

const weft_type *
weft__dag_type_of(const weft_dag_node *node)
{
	return node->map && node->type ? &weft_type_list : node->type;
}

/* The fallback is taken last, when nothing can fail anymore. */
int
weft__dag_copy_node(struct weft__dag_node *to, struct weft__dag_more *more,
                    const weft_dag_node *from)
{
	const weft_value *fallback = &from->fallback;
	const char *wrong = what_is_wrong(from);

	/* A value that could not be made. */
	if (fallback->type == &weft_type_error && from->type != &weft_type_error)
		return weft_fail((int)fallback->as.integer,
		                 "node %s: the fallback could not be made: %s", from->name,
		                 weft_strerror((int)fallback->as.integer));
	if (wrong)
		return weft_fail(WEFT_EINVAL, "node %s %s", from->name, wrong);
	*more = (struct weft__dag_more){ .set = *from };
	more->set.limit = NULL;
	more->name = copy_text(from->name);
	if (!more->name || copy_inputs(&more->set, from) < 0
	    || (from->limit && !(more->set.limit = copy_text(from->limit)))) {
		more->set.fallback = (weft_value){ 0 };
		if (more->set.inputs == from->inputs)
			more->set.inputs = NULL;
		weft__dag_drop_node(more);
		return WEFT_ENOMEM;
	}
	more->set.name = more->name;
	more->type = weft__dag_type_of(from);
	*to = (struct weft__dag_node){ .fn = from->fn,
		                       .arg = from->arg,
		                       .flags = flags_of(from),
		                       .place = (uint8_t)from->place,
		                       .more = more };
	return 0;
}

void
weft__dag_drop_node(struct weft__dag_more *more)
{
	weft__sys->release(more->name);
	weft__sys->release((void *)(uintptr_t)more->set.inputs);
	weft__sys->release((void *)(uintptr_t)more->set.limit);
	weft_value_drop(&more->set.fallback);
}

/* --- the calls ----------------------------------------------------------- */

weft_dag *
weft_dag_new(const char *name)
{
	weft_dag *dag = weft__alloc_zero(sizeof(*dag));

	if (dag)
		dag->name = copy_text(name ? name : "dag");
	if (dag && dag->name)
		return dag;
	weft__sys->release(dag);
	(void)weft__fail(WEFT_ENOMEM, "weft_dag_new: out of memory");
	return NULL;
}

static int
check_name(const weft_dag *dag, const char *name)
{
	if (dag->checked)
		return weft__fail(WEFT_EBUSY,
		                  "weft_dag: the graph is already checked and cannot be changed");
	if (!name || !*name)
		return weft__fail(WEFT_EINVAL, "weft_dag: name is NULL or empty");
	if (weft__dag_find(dag, name) >= 0)
		return weft_fail(WEFT_EEXIST, "weft_dag: a node or input named %s already exists",
		                 name);
	return 0;
}

/* Make room for a node, and allocate its colder half.  Returns 0, or an error. */
static int
dag_build_make_room(weft_dag *dag, const char *name, struct weft__dag_more **out)
{
	int rc = check_name(dag, name);

	if (rc < 0)
		return rc;
	if (reserve_node(dag) < 0 || reserve_name(dag) < 0
	    || !(*out = weft__alloc_zero(sizeof(**out))))
		return weft__fail(WEFT_ENOMEM, "weft_dag: out of memory");
	return 0;
}

static int
put_in(weft_dag *dag, struct weft__dag_more *more)
{
	more->position = dag->count;
	dag->count++;
	*name_entry(dag, more->name) = dag->count;
	return (int)more->position;
}

int
weft_dag_add_input(weft_dag *dag, const char *name, const weft_type *type)
{
	struct weft__dag_more *more;
	int rc;

	if (!dag)
		return weft__misuse(WEFT_EINVAL, "weft_dag_add_input: dag is NULL");
	rc = dag_build_make_room(dag, name, &more);
	if (rc < 0)
		return rc;
	more->name = copy_text(name);
	if (!more->name) {
		weft__sys->release(more);
		return weft__fail(WEFT_ENOMEM, "weft_dag: out of memory");
	}
	more->type = type;
	dag->nodes[dag->count] = (struct weft__dag_node){ .flags = WEFT__DAG_INPUT, .more = more };
	dag->inputs++;
	return put_in(dag, more);
}

static int
dag_build_add(weft_dag *dag, const weft_dag_node *node)
{
	struct weft__dag_more *more;
	int rc = dag_build_make_room(dag, node->name, &more);

	if (rc < 0)
		return rc;
	rc = weft__dag_copy_node(&dag->nodes[dag->count], more, node);
	if (rc < 0) {
		weft__sys->release(more);
		return rc == WEFT_ENOMEM ? weft__fail(rc, "weft_dag: out of memory") : rc;
	}
	return put_in(dag, more);
}

int
weft_dag_add(weft_dag *dag, const weft_dag_node *node)
{
	int rc;

	if (!dag || !node)
		return weft__misuse(WEFT_EINVAL, "weft_dag_add: dag or node is NULL");
	rc = dag_build_add(dag, node);
	if (rc < 0) { /* the fallback is taken in any case */
		weft_value fallback = node->fallback;

		weft_value_drop(&fallback);
	}
	return rc;
}

struct weft__dag_limit *
weft__dag_find_limit(const weft_dag *dag, const char *name)
{
	struct weft__dag_limit *limit = dag->limits;

	while (limit && __builtin_strcmp(limit->name, name) != 0)
		limit = limit->next;
	return limit;
}

int
weft_dag_set_limit(weft_dag *dag, const char *name, uint32_t max)
{
	struct weft__dag_limit *limit;

	if (!dag || !name || !*name || max == 0)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_dag_set_limit: dag or limit is NULL, limit is empty, or max is 0");
	if (dag->checked)
		return weft__fail(
			WEFT_EBUSY,
			"weft_dag_set_limit: the graph is already checked and cannot be changed");
	limit = weft__dag_find_limit(dag, name);
	if (!limit) {
		limit = weft__alloc_zero(sizeof(*limit));
		if (!limit || !(limit->name = copy_text(name))) {
			weft__sys->release(limit);
			return weft__fail(WEFT_ENOMEM, "weft_dag_set_limit: out of memory");
		}
		limit->next = dag->limits;
		dag->limits = limit;
	}
	limit->max = max;
	return 0;
}

/* --- the end ------------------------------------------------------------- */

static void
free_limits(weft_dag *dag)
{
	struct weft__dag_limit *limit;

	while ((limit = dag->limits)) {
		dag->limits = limit->next;
		weft__sys->release(limit->name);
		weft__sys->release(limit);
	}
}

int
weft_dag_free(weft_dag *dag)
{
	if (!dag)
		return 0;
	if (weft__load(&dag->users, WEFT__ACQUIRE) > 0) /* pairs with weft__dag_unref() */
		return weft__fail(WEFT_EBUSY,
		                  "weft_dag_free: a run or another graph still uses the graph");
	if (dag->checked)
		weft__dag_delist(dag);
	for (uint32_t i = 0; i < dag->count; i++) {
		struct weft__dag_more *more = dag->nodes[i].more;

		if (dag->checked && more->set.subgraph) {
			(void)weft__add(&more->set.subgraph->parents, UINT32_MAX, WEFT__RELAXED);
			weft__dag_unref(more->set.subgraph);
		}
		weft__dag_drop_node(more);
		weft__sys->release(more);
	}
	free_limits(dag);
	weft__sys->release(dag->nodes);
	weft__sys->release(dag->in);
	weft__sys->release(dag->names);
	weft__sys->release(dag->name);
	weft__sys->release(dag);
	return 0;
}

void
weft__dag_unref(weft_dag *dag)
{
	(void)weft__add(&dag->users, UINT32_MAX, WEFT__RELEASE);
}

int
weft_dag_stats(const weft_dag *dag, struct weft_dag_stats *out)
{
	if (!dag || !out)
		return weft__misuse(WEFT_EINVAL, "weft_dag_stats: dag or out is NULL");
	*out = (struct weft_dag_stats){
		.runs = weft__load(&dag->started, WEFT__RELAXED),
		.failed = weft__load(&dag->failed, WEFT__RELAXED),
		.retries = weft__load(&dag->retries, WEFT__RELAXED),
		.late = weft__load(&dag->late, WEFT__RELAXED),
		.users = weft__load(&dag->users, WEFT__RELAXED),
	};
	return 0;
}
