/* dag_group.c - steps that consist of other steps: items of a list, graphs, nodes added by a step.
 *
 * Each such step has a frame of its own below it.  The frame is kept until the run is freed,
 * because a late attempt may still read it.
 *
 * Values from outside of the frame are borrowed, not shared: they exist until its owner, the step
 * above it, has ended, which is after all steps in the frame.
 */
#include "dag/dag.h"

/* The source of an input of an added node: the index of one added before, or: */
#define FROM_OWNER (-1) /* the output of the step that added it */
#define FROM_INPUT (-2) /* and below: the inputs of that step */

struct weft__dag_added {
	weft_dag_run *run;
	uint32_t count, room;
	uint32_t edges, edges_room;
	struct weft__dag_node *nodes;
	int32_t *in;   /* of all nodes, one after the other */
	uint32_t *out; /* dependents; made when the frame is opened */
};

/* --- frames -------------------------------------------------------------- */

static struct weft__dag_frame *
make_frame(struct weft__dag_step *owner, const weft_dag *dag, uint32_t count)
{
	weft_dag_run *run = owner->frame->run;
	size_t steps = (size_t)count * sizeof(struct weft__dag_step);
	size_t times = run->frame.times ? (size_t)count * sizeof(struct weft__dag_times) : 0;
	struct weft__dag_frame *frame = weft__sys->alloc(sizeof(*frame) + steps + times);

	if (!frame)
		return NULL;
	*frame = (struct weft__dag_frame){ .run = run,
		                           .dag = dag,
		                           .owner = owner,
		                           .count = count,
		                           .begin_ns = run->observed ? weft_now() : 0,
		                           .deadline_ns = WEFT_NEVER };
	frame->steps = (struct weft__dag_step *)(void *)(frame + 1);
	if (times) {
		frame->times = (void *)(frame->steps + count);
		__builtin_memset(frame->times, 0, times);
	}
	return frame;
}

/* The run takes the frame.  Until the frame is started completely, its start counts as one of its
 * steps. */
static void
begin_frame(struct weft__dag_frame *frame)
{
	weft_dag_run *run = frame->run;

	(void)weft__add(&frame->left, 1, WEFT__RELAXED);
	frame->owner->below = frame;
	weft__lock_take(&run->lock);
	frame->next = run->frames;
	run->frames = frame;
	run->total += weft__load(&frame->left, WEFT__RELAXED) - 1;
	if (frame->deadline_ns != WEFT_NEVER) {
		frame->bounded = run->bounded;
		frame->bounded_link = &run->bounded;
		if (frame->bounded)
			frame->bounded->bounded_link = &frame->bounded;
		run->bounded = frame;
		weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_CHECK);
	}
	weft__lock_give(&run->lock);
}

void
weft__dag_unbound(struct weft__dag_frame *frame)
{
	if (frame->deadline_ns == WEFT_NEVER)
		return;
	*frame->bounded_link = frame->bounded;
	if (frame->bounded)
		frame->bounded->bounded_link = frame->bounded_link;
	frame->deadline_ns = WEFT_NEVER;
}

void
weft__dag_free_frame(struct weft__dag_frame *frame)
{
	for (uint32_t i = 0; i < frame->count; i++)
		if (!(frame->steps[i].node->flags & WEFT__DAG_INPUT))
			weft_value_drop(&frame->steps[i].out);
	if (!frame->given_on)
		weft_value_drop(&frame->given);
	weft__dag_drop_added(frame->added);
	weft__sys->release(frame->text);
	weft__sys->release(frame);
}

static void
dag_group_fail(struct weft__dag_worker *worker, struct weft__dag_step *step, int error)
{
	weft__dag_finish(worker, step, error, (weft_value){ 0 });
}

/* --- items --------------------------------------------------------------- */

/* The items of a step's first input; none if the input has no value.  False: it is not a list, or
 * is too long. */
static bool
items_of(const struct weft__dag_step *step, weft_list *out)
{
	const weft_value *value = weft__dag_source(step, 0);

	*out = (weft_list){ 0 };
	if (!value || !value->type)
		return true;
	if (value->type != &weft_type_list)
		return false;
	*out = *(const weft_list *)value->as.ptr;
	return out->count < UINT32_MAX / 2;
}

static void
open_items(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	struct weft__dag_frame *frame;
	weft_list list;
	uint32_t count;

	if (!items_of(step, &list)) {
		dag_group_fail(worker, step,
		               weft__fail(WEFT_EINVAL, "the first input is not a list"));
		return;
	}
	count = (uint32_t)list.count;
	frame = make_frame(step, step->frame->dag, count);
	if (!frame) {
		dag_group_fail(worker, step, weft__fail(WEFT_ENOMEM, "out of memory"));
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		frame->steps[i] = (struct weft__dag_step){ .frame = frame,
			                                   .node = step->node,
			                                   .item = i + 1 };
	weft__store(&frame->left, count, WEFT__RELAXED);
	begin_frame(frame);
	for (uint32_t i = 0; i < count; i++)
		weft__dag_ready(worker, &frame->steps[i]);
	weft__dag_count(worker, frame);
}

/* Collect the outputs of all items in a list. */
static int
gather(struct weft__dag_frame *frame, weft_value *out)
{
	weft_value *items;

	if (!frame->owner->node->more->set.type)
		return 0;
	items = weft__sys->alloc((frame->count + 1) * sizeof(*items));
	if (!items)
		return weft__fail(WEFT_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < frame->count; i++) {
		items[i] = frame->steps[i].out;
		frame->steps[i].out = (weft_value){ 0 };
	}
	*out = weft_value_list(items, frame->count);
	weft__sys->release(items);
	return out->type == &weft_type_list ? 0 : (int)out->as.integer;
}

/* --- graphs -------------------------------------------------------------- */

static void
open_sub(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	const weft_dag *dag = step->node->more->set.subgraph;
	struct weft__dag_frame *frame = make_frame(step, dag, dag->count);
	uint32_t k = 0;

	if (!frame) {
		dag_group_fail(worker, step, weft__fail(WEFT_ENOMEM, "out of memory"));
		return;
	}
	weft__dag_frame_init(frame, step->frame->run, dag);
	if (step->node->flags & WEFT__DAG_TIMED)
		frame->deadline_ns = weft_after(step->node->more->set.timeout_ns);
	for (uint32_t i = 0; i < dag->count; i++)
		if (dag->nodes[i].flags & WEFT__DAG_INPUT) {
			const weft_value *from = weft__dag_source(step, k++);

			if (from)
				frame->steps[i].out = *from;
		}
	begin_frame(frame);
	weft__dag_frame_start(worker, frame);
	weft__dag_count(worker, frame);
}

void
weft__dag_open_group(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	step->state = WEFT_DAG_STARTED;
	if (weft__dag_kind(step) == WEFT__DAG_ITEMS)
		open_items(worker, step);
	else
		open_sub(worker, step);
}

/* --- added nodes --------------------------------------------------------- */

static struct weft__dag_added *
make_added(weft_dag_run *run)
{
	struct weft__dag_added *added = weft__alloc_zero(sizeof(*added));

	if (added)
		added->run = run;
	return added;
}

/* An array of entries of `size` bytes, with room for `more` of them behind `count`. */
static void *
dag_group_grow(void *old, uint32_t count, uint32_t more, uint32_t *room, size_t size)
{
	uint32_t wanted = *room ? *room : 8;
	void *array;

	if (old && count + more <= *room)
		return old;
	while (wanted < count + more)
		wanted *= 2;
	array = weft__sys->alloc(wanted * size);
	if (!array)
		return NULL;
	if (count > 0)
		__builtin_memcpy(array, old, count * size);
	weft__sys->release(old);
	*room = wanted;
	return array;
}

static int
dag_group_reserve(struct weft__dag_added *added, uint32_t edges)
{
	void *nodes = dag_group_grow(added->nodes, added->count, 1, &added->room,
	                             sizeof(*added->nodes));
	void *in;

	if (!nodes)
		return WEFT_ENOMEM;
	added->nodes = nodes;
	in = dag_group_grow(added->in, added->edges, edges, &added->edges_room, sizeof(*added->in));
	if (!in)
		return WEFT_ENOMEM;
	added->in = in;
	return 0;
}

static int64_t
find_added(const struct weft__dag_added *added, const char *name)
{
	for (uint32_t i = 0; i < added->count; i++)
		if (__builtin_strcmp(added->nodes[i].more->name, name) == 0)
			return i;
	return -1;
}

/* Find the source of the input `name` of an added node.  Returns 0, or WEFT_EINVAL. */
static int
resolve(const weft_dag_step *step, const char *name, int32_t *out)
{
	const weft_dag_node *self = &step->step->node->more->set;
	int64_t index = find_added(step->added, name);

	*out = (int32_t)index;
	if (index >= 0)
		return 0;
	*out = FROM_OWNER;
	if (__builtin_strcmp(self->name, name) == 0)
		return 0;
	for (int32_t i = 0; self->inputs[i]; i++) {
		*out = FROM_INPUT - i;
		if (__builtin_strcmp(self->inputs[i], name) == 0
		    && !(i < 64 && (step->moved >> i & 1)))
			return 0;
	}
	return weft_fail(WEFT_EINVAL,
	                 "weft_dag_step_add: input %s is neither this node, nor one of its "
	                 "inputs that it has not taken, nor a node that it added before",
	                 name);
}

static uint32_t
depth_of(const struct weft__dag_frame *frame)
{
	uint32_t depth = 0;

	for (; frame->owner; frame = frame->owner->frame)
		depth++;
	return depth;
}

static const char *
what_is_wrong(const weft_dag_step *step, const weft_dag_node *node, uint32_t inputs)
{
	const weft_dag_run *run = step->worker->run;

	if (!run->loop
	    && (node->place == WEFT_DAG_LOOP || node->timeout_ns
	        || (node->retries && node->backoff_ns)
	        || (node->subgraph && node->subgraph->needs_loop)))
		return "needs a loop, but the run has none";
	if ((node->place == WEFT_DAG_BLOCKING
	     || (node->subgraph && node->subgraph->work[WEFT_DAG_BLOCKING]))
	    && !run->run_queues[WEFT_DAG_BLOCKING].pool)
		return "needs a blocking pool, but the run has none";
	if (node->subgraph && (!node->subgraph->checked || node->subgraph->inputs != inputs))
		return "has a subgraph that is not checked, or that has another number of "
		       "inputs";
	if (node->subgraph && node->type
	    && (node->subgraph->sink == node->subgraph->count
	        || node->subgraph->nodes[node->subgraph->sink].more->type != node->type))
		return "has a subgraph without exactly one last node of the node's type";
	if (depth_of(step->step->frame) >= 2 * WEFT__DAG_NESTING)
		return "is nested too deeply";
	return NULL;
}

static int
check_added(weft_dag_step *step, const weft_dag_node *node, uint32_t inputs)
{
	const char *wrong;

	if (!node->name || !*node->name)
		return weft__fail(WEFT_EINVAL, "weft_dag_step_add: node->name is NULL or empty");
	if (find_added(step->added, node->name) >= 0
	    || weft__dag_find(step->step->frame->dag, node->name) >= 0)
		return weft_fail(WEFT_EEXIST, "weft_dag_step_add: a node named %s already exists",
		                 node->name);
	if (node->limit && !weft__dag_find_limit(step->step->frame->dag, node->limit))
		return weft_fail(WEFT_EINVAL,
		                 "weft_dag_step_add: limit %s is not declared in the graph",
		                 node->limit);
	wrong = what_is_wrong(step, node, inputs);
	return wrong ? weft_fail(WEFT_EINVAL, "weft_dag_step_add: %s %s", node->name, wrong) : 0;
}

/* Copy the node behind the last one. */
static int
copy_added(weft_dag_step *step, const weft_dag_node *node, uint32_t inputs)
{
	struct weft__dag_added *added = step->added;
	struct weft__dag_node *to = &added->nodes[added->count];
	struct weft__dag_more *more;
	int rc = 0;

	for (uint32_t k = 0; k < inputs && rc == 0; k++)
		rc = resolve(step, node->inputs[k], &added->in[added->edges + k]);
	if (rc < 0)
		return rc;
	more = weft__sys->alloc(sizeof(*more));
	if (!more)
		return WEFT_ENOMEM;
	rc = weft__dag_copy_node(to, more, node);
	if (rc < 0) {
		weft__sys->release(more);
		return rc;
	}
	to->in_at = added->edges;
	to->in_count = inputs;
	to->level = weft__dag_level(step->step->frame->dag, node->priority);
	if (node->limit)
		more->limit = weft__dag_find_limit(step->step->frame->dag, node->limit);
	if (node->subgraph) {
		(void)weft__add(&node->subgraph->users, 1, WEFT__RELAXED);
		if (node->subgraph->has_limits && added->run->alone)
			added->run->alone = false; /* invariant 7 */
	}
	added->edges += inputs;
	added->count++;
	return 0;
}

static int
dag_group_add(weft_dag_step *step, const weft_dag_node *node)
{
	uint32_t inputs = 0;
	int rc;

	while (node->inputs && node->inputs[inputs])
		inputs++;
	if (!step->added)
		step->added = make_added(step->worker->run);
	if (!step->added || dag_group_reserve(step->added, inputs) < 0)
		return weft__fail(WEFT_ENOMEM, "weft_dag_step_add: out of memory");
	rc = check_added(step, node, inputs);
	if (rc == 0)
		rc = copy_added(step, node, inputs);
	return rc == WEFT_ENOMEM ? weft__fail(rc, "weft_dag_step_add: out of memory") : rc;
}

int
weft_dag_step_add(weft_dag_step *step, const weft_dag_node *node)
{
	int rc;

	if (!step || !node)
		return weft__misuse(WEFT_EINVAL, "weft_dag_step_add: step or node is NULL");
	rc = dag_group_add(step, node);
	if (rc < 0) {
		weft_value fallback = node->fallback;

		weft_value_drop(&fallback);
	}
	return rc;
}

void
weft__dag_drop_added(struct weft__dag_added *added)
{
	if (!added)
		return;
	for (uint32_t i = 0; i < added->count; i++) {
		struct weft__dag_more *more = added->nodes[i].more;

		if (more->set.subgraph)
			weft__dag_unref(more->set.subgraph);
		weft__dag_drop_node(more);
		weft__sys->release(more);
	}
	weft__sys->release(added->nodes);
	weft__sys->release(added->in);
	weft__sys->release(added->out);
	weft__sys->release(added);
}

/* Collect the dependents of each node, as in a template. */
static int
turn_edges(struct weft__dag_added *added)
{
	uint32_t at = 0;

	added->out = weft__sys->alloc((added->edges + 1) * sizeof(*added->out));
	if (!added->out)
		return WEFT_ENOMEM;
	for (uint32_t e = 0; e < added->edges; e++)
		if (added->in[e] >= 0)
			added->nodes[added->in[e]].out_count++;
	for (uint32_t i = 0; i < added->count; i++) {
		added->nodes[i].out_at = at;
		at += added->nodes[i].out_count;
		added->nodes[i].out_count = 0;
	}
	for (uint32_t i = 0; i < added->count; i++)
		for (uint32_t k = 0; k < added->nodes[i].in_count; k++) {
			int32_t from = added->in[added->nodes[i].in_at + k];
			struct weft__dag_node *node;

			if (from < 0)
				continue;
			node = &added->nodes[from];
			added->out[node->out_at + node->out_count++] = i;
			added->nodes[i].missing++;
		}
	return 0;
}

void
weft__dag_open_added(weft_dag_step *attempt)
{
	struct weft__dag_worker *worker = attempt->worker;
	struct weft__dag_step *step = attempt->step;
	struct weft__dag_added *added = attempt->added;
	struct weft__dag_frame *frame = turn_edges(added) == 0
	                                        ? make_frame(step, step->frame->dag, added->count)
	                                        : NULL;

	if (!frame) {
		weft__dag_drop_added(added);
		weft_value_drop(&attempt->out);
		dag_group_fail(worker, step, weft__fail(WEFT_ENOMEM, "out of memory"));
		return;
	}
	frame->added = added;
	frame->given = attempt->out;
	frame->out = added->out;
	for (uint32_t i = 0; i < added->count; i++)
		frame->steps[i] = (struct weft__dag_step){
			.missing = { added->nodes[i].missing },
			.frame = frame,
			.node = &added->nodes[i],
		};
	weft__store(&frame->left, added->count, WEFT__RELAXED);
	begin_frame(frame);
	for (uint32_t i = 0; i < added->count; i++)
		if (added->nodes[i].missing == 0)
			weft__dag_ready(worker, &frame->steps[i]);
	weft__dag_count(worker, frame);
}

struct weft__dag_step *
weft__dag_find_added(const weft_dag_run *run, const char *name)
{
	for (struct weft__dag_frame *f = run->frames; f; f = f->next) {
		int64_t index = f->added ? find_added(f->added, name) : -1;

		if (index >= 0)
			return &f->steps[index];
	}
	return NULL;
}

/* --- all groups ---------------------------------------------------------- */

weft_value *
weft__dag_group_source(const struct weft__dag_step *step, size_t index)
{
	struct weft__dag_frame *frame = step->frame;
	int32_t from;

	if (step->item) {
		const weft_value *list = weft__dag_source(frame->owner, 0);

		if (index > 0)
			return weft__dag_source(frame->owner, index);
		return &((weft_list *)list->as.ptr)->items[step->item - 1];
	}
	from = frame->added->in[step->node->in_at + index];
	if (from >= 0)
		return &frame->steps[from].out;
	if (from == FROM_OWNER)
		return &frame->given;
	return weft__dag_source(frame->owner, (size_t)(FROM_INPUT - from));
}

void
weft__dag_close_group(struct weft__dag_worker *worker, struct weft__dag_frame *frame)
{
	struct weft__dag_step *owner = frame->owner;
	int error = (int)weft__load(&frame->error, WEFT__RELAXED);
	weft_value out = { 0 };
	const weft_dag *sub;

	weft__lock_take(&frame->run->lock);
	weft__dag_unbound(frame);
	weft__lock_give(&frame->run->lock);
	if (frame->added) { /* late attempts may still read it here */
		frame->given_on = error == 0;
		if (error == 0)
			out = frame->given;
	} else if (error == 0 && weft__dag_kind(owner) == WEFT__DAG_ITEMS) {
		error = gather(frame, &out);
	} else if (error == 0) {
		sub = owner->node->more->set.subgraph;
		if (owner->node->more->set.type) {
			out = frame->steps[sub->sink].out;
			frame->steps[sub->sink].out = (weft_value){ 0 };
		}
	}
	if (frame->text)
		(void)weft_fail(error, "%s", frame->text);
	if (frame->run->traced)
		weft__dag_trace_group(frame);
	if (frame->begin_ns && !frame->added && !owner->item)
		weft__dag_measure(owner->node, weft_now() - frame->begin_ns, error < 0);
	weft__dag_finish(worker, owner, error, out);
}
