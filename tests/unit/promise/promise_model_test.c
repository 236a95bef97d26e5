/* promise_model_test.c - random graphs of promises, compared with a model.
 *
 * A graph is a list of nodes.  Each node is made from earlier ones: new, then, or a
 * combination of several.  Random actions follow: resolve, reject, follow, drop.  The model is
 * the same list without the library's mechanisms: no queues, no reference counts.  It derives
 * how each node ends from the nodes that it was made from.  Where the outcome depends on the
 * order of events, the test gives the real outcome to the model, and checks that it is
 * possible.
 *
 *   1. When the graph has ended, each node has settled as the model predicts.
 *   2. Each handler was called exactly once if it fits the outcome, else never.
 *   3. Each value has been dropped exactly once when the last node was dropped.
 *   4. The same graphs detect a model with a planted mistake.
 */
#include "unit/promise/promised.h"

#define NODES  40
#define VALUES 64
#define GRAPHS 3000

enum node_kind { NEW, THEN, ALL, ALL_SETTLED, ANY, RACE };

/* How a node ends, as far as the model knows. */
struct ending {
	weft_outcome outcome;
	int number;   /* of the value or reason, or the error code */
	bool is_list; /* then the items are not compared */
	bool known;
};

struct node {
	enum node_kind kind;
	weft_promise *promise; /* NULL: it was dropped */
	int before[3], count;  /* the nodes that it is made from */
	bool handles_value, handles_error, fails;
	int number; /* what its handler returns, or what it was settled with */
	int calls;  /* of its handler */
	bool saw_error;
	/* For a new node: */
	bool settled, rejected;
	int follows; /* a node, or -1 */
	bool used;   /* other nodes are made from it */
	struct ending ending;
};

static struct node nodes[NODES];
static int node_count;
static struct token values[VALUES];
static int value_count;
static uint64_t chance;

/* The mistake that the model makes on purpose. */
static enum { NOTHING, HANDLES_ALL, ANY_IS_ALL } mistake;
static bool found;

#define EXPECT(cond)                               \
	do {                                       \
		if (!(cond) && mistake != NOTHING) \
			found = true;              \
		else                               \
			CHECK(cond);               \
	} while (0)

static int
below(int limit)
{
	return (int)(test_random(&chance) % (uint64_t)limit);
}

static weft_value
fresh_value(int number)
{
	CHECK(value_count < VALUES);
	return shared(&values[value_count++], number);
}

/* --- handlers --------------------------------------------------------------- */

static int
handle(struct node *node, weft_value *out, bool error)
{
	node->calls++;
	node->saw_error = error;
	if (node->fails && node->number % 2)
		return weft_fail(WEFT_EPROTO, "by chance");
	*out = fresh_value(node->number);
	return node->fails ? WEFT_EPERM : 0;
}

static int
on_value(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	return handle(arg, out, false);
}

static int
on_error(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	return handle(arg, out, true);
}

/* --- making ----------------------------------------------------------------- */

/* One of the first `limit` nodes whose promise is still held.  The first node always is. */
static int
pick(int limit)
{
	int which = below(limit);

	while (!nodes[which].promise)
		which--;
	return which;
}

/* The same, to make another node from it. */
static weft_promise *
use(int *out)
{
	*out = pick(node_count);
	nodes[*out].used = true;
	return hold(nodes[*out].promise);
}

static weft_promise *
make_many(struct node *node)
{
	weft_promise *list[3];

	node->count = 1 + below(3);
	for (int i = 0; i < node->count; i++)
		list[i] = use(&node->before[i]);
	switch (node->kind) {
	case ALL:
		return weft_promise_all(list, (size_t)node->count);
	case ALL_SETTLED:
		return weft_promise_all_settled(list, (size_t)node->count);
	case ANY:
		return weft_promise_any(list, (size_t)node->count);
	default:
		return weft_promise_race(list, (size_t)node->count);
	}
}

static weft_promise *
make_chained(struct node *node)
{
	weft_promise *before = use(&node->before[0]);

	node->count = 1;
	node->handles_value = below(3) > 0;
	node->handles_error = below(3) > 0;
	node->fails = below(4) == 0;
	return weft_promise_then(before, node->handles_value ? on_value : NULL,
	                         node->handles_error ? on_error : NULL, node);
}

static void
add_node(weft_loop *loop)
{
	struct node *node = &nodes[node_count];
	int kind = node_count < 3 ? 0 : below(12);

	*node = (struct node){ .follows = -1, .number = 100 + node_count };
	node->kind = kind < 3 ? NEW : kind < 8 ? THEN : (enum node_kind)(ALL + kind - 8);
	node->promise = node->kind == NEW    ? weft_promise_new(loop)
	                : node->kind == THEN ? make_chained(node)
	                                     : make_many(node);
	CHECK(node->promise != NULL);
	node_count++;
}

/* Settle a new node, or let it follow an earlier one, so that there are no cycles. */
static void
settle_node(struct node *node)
{
	int rc, which = below(3);
	bool late = node->settled || node->follows >= 0;
	int self = (int)(node - nodes);

	if (which == 0 && self > 0) {
		int other = pick(self);

		rc = weft_promise_resolve(node->promise,
		                          weft_value_promise(hold(nodes[other].promise)));
		if (!late) {
			node->follows = other;
			nodes[other].used = true;
		}
	} else {
		weft_value value = fresh_value(node->number);

		rc = which == 1 ? weft_promise_resolve(node->promise, value)
		                : weft_promise_reject(node->promise, value);
		if (!late) {
			node->settled = true;
			node->rejected = which != 1;
		}
	}
	CHECK_EQ(rc, late ? WEFT_EALREADY : 0);
}

/* Keep a node that is not new and that others were made from: the check of those needs its
 * outcome. */
static void
let_go(struct node *node)
{
	if (node == nodes || (node->kind != NEW && node->used))
		return;
	node->promise = weft_promise_unref(node->promise);
}

static void
do_something(void)
{
	struct node *node = &nodes[pick(node_count)];

	if (below(4) == 0)
		let_go(node);
	else if (node->kind == NEW && value_count < VALUES - NODES)
		settle_node(node);
}

/* --- the model -------------------------------------------------------------- */

static struct ending model_of(int index);

static struct ending
model_settled(weft_outcome outcome, int number)
{
	return (struct ending){ .outcome = outcome, .number = number, .known = true };
}

static struct ending
model_new(const struct node *node)
{
	if (node->follows >= 0)
		return model_of(node->follows);
	if (node->settled)
		return model_settled(node->rejected ? WEFT_REJECTED : WEFT_FULFILLED, node->number);
	return model_settled(WEFT_REJECTED, WEFT_ECLOSED);
}

static struct ending
model_handler(const struct node *node)
{
	if (!node->fails)
		return model_settled(WEFT_FULFILLED, node->number);
	return model_settled(WEFT_REJECTED, node->number % 2 ? WEFT_EPROTO : node->number);
}

static struct ending
model_chained(const struct node *node)
{
	struct ending before = model_of(node->before[0]);

	if (mistake == HANDLES_ALL && node->handles_value)
		return model_handler(node);
	return (before.outcome == WEFT_FULFILLED ? node->handles_value : node->handles_error)
	               ? model_handler(node)
	               : before;
}

/* For several nodes: a node that can decide the outcome, or else the list. */
static struct ending
model_many(const struct node *node)
{
	weft_outcome decides = node->kind == ANY && mistake != ANY_IS_ALL ? WEFT_FULFILLED
	                                                                  : WEFT_REJECTED;
	struct ending first = model_of(node->before[0]);

	for (int i = 0; node->kind != ALL_SETTLED && i < node->count; i++) {
		struct ending one = model_of(node->before[i]);

		if (node->kind == RACE || one.outcome == decides) {
			one.known = false; /* the order decides which of them */
			return one;
		}
	}
	first.outcome = node->kind == ANY ? WEFT_REJECTED : WEFT_FULFILLED;
	first.is_list = true;
	first.known = true;
	return first;
}

static struct ending
model_of(int index)
{
	struct node *node = &nodes[index];

	if (!node->ending.outcome)
		node->ending = node->kind == NEW    ? model_new(node)
		               : node->kind == THEN ? model_chained(node)
		                                    : model_many(node);
	return node->ending;
}

/* --- the comparison --------------------------------------------------------- */

static struct ending
seen(weft_promise *promise)
{
	weft_value value = { 0 };
	struct ending got = { .outcome = weft_promise_state(promise, &value) };

	got.is_list = value.type == &weft_type_list;
	if (!got.is_list)
		got.number = (int)number_of(&value);
	return got;
}

static bool
is_same(const struct ending *a, const struct ending *b)
{
	return a->outcome == b->outcome && a->is_list == b->is_list
	       && (a->is_list || a->number == b->number);
}

/* Where the order decides: the node ended like one of the nodes it was made from. */
static bool
is_possible(const struct node *node, const struct ending *got)
{
	for (int i = 0; i < node->count; i++)
		if (is_same(&nodes[node->before[i]].ending, got))
			return true;
	return false;
}

static bool
handler_fits(const struct node *node)
{
	weft_outcome before;

	if (node->kind != THEN)
		return false;
	before = nodes[node->before[0]].ending.outcome;
	return before == WEFT_FULFILLED ? node->handles_value : node->handles_error;
}

static void
check_node(int index)
{
	struct node *node = &nodes[index];
	struct ending want = model_of(index), got;

	EXPECT(node->calls == handler_fits(node));
	if (!node->promise)
		return;
	got = seen(node->promise);
	EXPECT(got.outcome != WEFT_PENDING);
	EXPECT(want.known ? is_same(&want, &got) : is_possible(node, &got));
	node->ending = got; /* nodes made from it depend on what really happened */
	node->ending.known = true;
}

/* --- a graph ---------------------------------------------------------------- */

static void
build(void *arg)
{
	int steps = NODES + below(NODES);

	for (int i = 0; i < steps; i++) {
		if (node_count < NODES && (node_count < 3 || below(2)))
			add_node(arg);
		else
			do_something();
	}
	for (int i = 0; i < node_count; i++) /* settle all that are still pending */
		if (nodes[i].kind == NEW && nodes[i].promise && !nodes[i].settled
		    && nodes[i].follows < 0)
			settle_node(&nodes[i]);
}

static void
run_graph(bool inside)
{
	weft_loop *loop = make();

	node_count = value_count = 0;
	if (inside)
		OK(weft_loop_post(loop, build, loop));
	else
		build(loop);
	OK(weft_loop_run(loop));
	for (int i = 0; i < node_count; i++)
		check_node(i);
	for (int i = node_count; i > 0; i--)
		(void)weft_promise_unref(nodes[i - 1].promise);
	stop_idle(loop);
	for (int i = 0; i < value_count; i++)
		CHECK_EQ(owners(&values[i]), 0);
}

TEST(random_graphs_of_promises_match_the_model)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < GRAPHS; i++) {
		chance = seed + (uint64_t)i;
		run_graph(i % 2);
	}
}

TEST(a_model_with_a_planted_mistake_is_detected)
{
	uint64_t seed = test_seed();

	for (int which = HANDLES_ALL; which <= ANY_IS_ALL; which++) {
		mistake = (unsigned)which;
		found = false;
		for (int i = 0; i < GRAPHS && !found; i++) {
			chance = seed + (uint64_t)i;
			run_graph(i % 2);
		}
		mistake = NOTHING;
		CHECK(found);
	}
}
