/* axioms_test.c - compares the memory model and the search with independent computations.
 *
 * Random programs of a few operations are explored, and the set of their outcomes is compared
 * with two others.  The first is computed here without threads or schedules: the axioms decide
 * for every assignment of stores to reads (rf) and every order of the stores (mo) whether it is
 * allowed.  The second comes from a search that skips no schedule; its programs also contain
 * system calls.
 *
 * The axioms use po, the program order; sw, from a release to the acquire that reads it or its
 * release sequence; hb = (po | sw)+; and eco, the order that rf and mo give to the accesses of
 * one atomic:
 *
 *   1. po, rf and, between seq_cst operations on one atomic, eco have no cycle.
 *   2. No access is before another one in hb and after it in eco.
 *   3. A read-modify-write comes directly after the store it reads, in mo.
 *
 * These are the axioms of C++20, except that rule 1 is stronger: C++20 forbids only a cycle in
 * that eco and a part of hb.
 */
#include "base/sys.h"
#include "explore.h"
#include "test.h"

enum { THREADS = 3, OPS = 3, EVENTS = THREADS * OPS, ALL = EVENTS + 2 };

enum { LOAD, STORE, EXCHANGE, CAS, CALL };

struct op {
	int kind;
	int order;
	int failed; /* order of a failed CAS */
	int atom;
	uint32_t value;
};

static struct op script[THREADS][OPS];
static int threads, ops;

/* --- outcomes ----------------------------------------------------------- */

enum { OUTCOMES_MAX = 4096 };

struct outcomes {
	uint32_t all[OUTCOMES_MAX];
	int count;
};

static void
outcome_add(struct outcomes *set, uint32_t outcome)
{
	for (int i = 0; i < set->count; i++)
		if (set->all[i] == outcome)
			return;
	if (set->count < OUTCOMES_MAX)
		set->all[set->count++] = outcome;
}

static bool
outcomes_equal(const struct outcomes *a, const struct outcomes *b)
{
	struct outcomes both = *a;

	for (int i = 0; i < b->count; i++)
		outcome_add(&both, b->all[i]);
	return a->count == b->count && both.count == a->count;
}

/* Append one more value to what a thread has read. */
static uint32_t
register_add(uint32_t reg, uint32_t value)
{
	return reg * 5 + value + 1;
}

static uint32_t
outcome_of(const uint32_t reg[THREADS], uint32_t x, uint32_t y)
{
	return reg[0] | reg[1] << 7 | reg[2] << 14 | x << 21 | y << 23;
}

/* --- by the axioms ------------------------------------------------------ */

static struct {
	struct outcomes *out;
	int events; /* the initial values of the two atomics follow as two more */
	int rf[ALL];
	int place[ALL];      /* position in mo */
	int list[2][EVENTS]; /* stores of each atom, to be ordered */
	int count[2];
	bool writes[ALL];
} axioms;

static const struct op *
event_op(int event)
{
	return &script[event / ops][event % ops];
}

static int
event_atom(int event)
{
	return event < axioms.events ? event_op(event)->atom : event - axioms.events;
}

static uint32_t
event_value(int event)
{
	return event < axioms.events ? event_op(event)->value : 0;
}

static bool
is_rmw(int event)
{
	return event < axioms.events && event_op(event)->kind >= EXCHANGE && axioms.writes[event];
}

/* A failed compare-exchange is a load with its own order. */
static int
event_order(int event)
{
	const struct op *op;

	if (event >= axioms.events)
		return WEFT__RELAXED;
	op = event_op(event);
	return op->kind == CAS && !axioms.writes[event] ? op->failed : op->order;
}

/* The position of an event in eco, among the events of its atomic. */
static int
event_rank(int event)
{
	return axioms.writes[event] ? 2 * axioms.place[event]
	                            : 2 * axioms.place[axioms.rf[event]] + 1;
}

static void
close_transitively(uint32_t relation[ALL])
{
	for (int k = 0; k < axioms.events + 2; k++)
		for (int i = 0; i < axioms.events + 2; i++)
			if (relation[i] & 1u << k)
				relation[i] |= relation[k];
}

static void
add_program_order(uint32_t relation[ALL])
{
	for (int a = 0; a < axioms.events; a++)
		for (int b = a + 1; b < axioms.events && b / ops == a / ops; b++)
			relation[a] |= 1u << b;
	for (int i = 0; i < 2; i++)
		relation[axioms.events + i] = (1u << axioms.events) - 1;
}

/* Rule 1. */
static bool
is_acyclic(void)
{
	uint32_t before[ALL] = { 0 };

	add_program_order(before);
	for (int a = 0; a < axioms.events; a++) {
		if (event_op(a)->kind != STORE)
			before[axioms.rf[a]] |= 1u << a;
		for (int b = 0; b < axioms.events; b++)
			if (event_order(a) == WEFT__SEQ_CST && event_order(b) == WEFT__SEQ_CST
			    && event_atom(a) == event_atom(b) && event_rank(a) < event_rank(b))
				before[a] |= 1u << b;
	}
	close_transitively(before);
	for (int a = 0; a < axioms.events; a++)
		if (before[a] & 1u << a)
			return false;
	return true;
}

static void
add_synchronizes(uint32_t hb[ALL], int read)
{
	int order = event_order(read);
	int from = axioms.rf[read];

	if (order == WEFT__RELAXED || order == WEFT__RELEASE)
		return;
	for (;; from = axioms.rf[from]) {
		order = event_order(from);
		if (order != WEFT__RELAXED && order != WEFT__ACQUIRE)
			hb[from] |= 1u << read;
		if (!is_rmw(from))
			return;
	}
}

/* Rule 2. */
static bool
is_coherent(void)
{
	uint32_t hb[ALL] = { 0 };

	add_program_order(hb);
	for (int a = 0; a < axioms.events; a++)
		if (event_op(a)->kind != STORE)
			add_synchronizes(hb, a);
	close_transitively(hb);
	for (int a = 0; a < axioms.events + 2; a++)
		for (int b = 0; b < axioms.events; b++)
			if (hb[a] & 1u << b && event_atom(a) == event_atom(b)
			    && event_rank(b) < event_rank(a))
				return false;
	return true;
}

/* Check rule 3, then the others; if all hold, record the outcome. */
static void
judge(void)
{
	uint32_t reg[THREADS] = { 0 }, last[2] = { 0 };

	for (int a = 0; a < axioms.events; a++)
		if (is_rmw(a) && axioms.place[a] != axioms.place[axioms.rf[a]] + 1)
			return;
	if (!is_acyclic() || !is_coherent())
		return;
	for (int a = 0; a < axioms.events; a++) {
		uint32_t *r = &reg[a / ops];

		if (event_op(a)->kind == CAS)
			*r = register_add(*r, axioms.writes[a]);
		else if (event_op(a)->kind != STORE)
			*r = register_add(*r, event_value(axioms.rf[a]));
		if (axioms.writes[a] && axioms.place[a] == axioms.count[event_atom(a)])
			last[event_atom(a)] = event_value(a);
	}
	outcome_add(axioms.out, outcome_of(reg, last[0], last[1]));
}

/* Try every order of the stores: give position `next` to each store that has none. */
static void
order_stores(int atom, int next)
{
	if (atom == 2) {
		judge();
		return;
	}
	if (next > axioms.count[atom]) {
		order_stores(atom + 1, 1);
		return;
	}
	for (int i = 0; i < axioms.count[atom]; i++) {
		int event = axioms.list[atom][i];

		if (axioms.place[event] != 0)
			continue;
		axioms.place[event] = next;
		order_stores(atom, next + 1);
		axioms.place[event] = 0;
	}
}

/* Each read has its source: find out which events write, and try all orders of the stores. */
static void
find_stores(void)
{
	memset(axioms.count, 0, sizeof axioms.count);
	memset(axioms.place, 0, sizeof axioms.place);
	for (int a = 0; a < axioms.events; a++) {
		int kind = event_op(a)->kind;

		axioms.writes[a] = kind == STORE || kind == EXCHANGE
		                   || (kind == CAS && event_value(axioms.rf[a]) == 1);
		if (axioms.writes[a])
			axioms.list[event_atom(a)][axioms.count[event_atom(a)]++] = a;
	}
	for (int a = 0; a < axioms.events; a++)
		if (event_op(a)->kind != STORE && !axioms.writes[axioms.rf[a]])
			return;
	order_stores(0, 1);
}

static void
choose_reads(int event)
{
	if (event == axioms.events) {
		find_stores();
		return;
	}
	if (event_op(event)->kind == STORE) {
		choose_reads(event + 1);
		return;
	}
	for (int from = 0; from < axioms.events + 2; from++)
		if (from != event && event_atom(from) == event_atom(event)
		    && (from >= axioms.events || event_op(from)->kind != LOAD)) {
			axioms.rf[event] = from;
			choose_reads(event + 1);
		}
}

static void
allowed_outcomes(struct outcomes *out)
{
	out->count = 0;
	axioms.out = out;
	axioms.events = threads * ops;
	axioms.writes[axioms.events] = axioms.writes[axioms.events + 1] = true;
	choose_reads(0);
}

/* --- by exploring ------------------------------------------------------- */

struct program {
	weft__a32 x;
	weft__a32 y;
	uint32_t reg[THREADS];
};

static struct outcomes explored, *explored_out = &explored;

/* A macro, so that each step has its own place in the source: a load that is repeated at one
 * place counts as a spin. */
#define STEP(i)                                                                                \
	do {                                                                                   \
		const struct op *op = &script[thread][i];                                      \
		weft__a32 *atom = op->atom ? &p->y : &p->x;                                    \
		uint32_t seen = 1, *reg = &p->reg[thread];                                     \
                                                                                               \
		if (i >= ops)                                                                  \
			break;                                                                 \
		if (op->kind == LOAD)                                                          \
			*reg = register_add(*reg, weft__load(atom, op->order));                \
		else if (op->kind == STORE)                                                    \
			weft__store(atom, op->value, op->order);                               \
		else if (op->kind == EXCHANGE)                                                 \
			*reg = register_add(*reg, weft__exchange(atom, op->value, op->order)); \
		else if (op->kind == CALL)                                                     \
			weft__sys->unpark(atom);                                               \
		else                                                                           \
			*reg = register_add(*reg, weft__cas_else(atom, &seen, op->value,       \
			                                         op->order, op->failed));      \
	} while (0)

static void
program_thread(void *arg)
{
	struct program *p = arg;
	int thread = explore_thread();

	STEP(0);
	STEP(1);
	STEP(2);
}

static void
program_check(void *arg)
{
	const struct program *p = arg;

	outcome_add(explored_out, outcome_of(p->reg, p->x.raw, p->y.raw));
}

static uint64_t
explore_outcomes(struct outcomes *out, int preemptions)
{
	struct explore_result result;
	struct explore_model model = {
		.name = "random",
		.state_size = sizeof(struct program),
		.threads = threads,
		.thread = { program_thread, program_thread, program_thread },
		.check = program_check,
		.preemptions = preemptions,
	};

	out->count = 0;
	explored_out = out;
	CHECK_EQ(explore_run(&model, &result), 0);
	CHECK(result.complete);
	return result.executions + result.redundant;
}

/* --- programs ----------------------------------------------------------- */

static const int load_orders[] = { WEFT__RELAXED, WEFT__ACQUIRE, WEFT__SEQ_CST };
static const int store_orders[] = { WEFT__RELAXED, WEFT__RELEASE, WEFT__SEQ_CST };

/* Two of three programs are mostly seq_cst, because its rules rarely matter in other programs. */
static void
script_make(uint64_t *seed, int number, bool calls)
{
	for (int i = 0; i < threads * ops; i++) {
		uint64_t bits = test_random(seed);
		struct op *op = &script[i / ops][i % ops];
		static const int kinds[] = { LOAD, LOAD, LOAD, STORE, STORE, STORE, EXCHANGE, CAS };

		op->kind = kinds[bits % 8];
		if (calls && (bits >> 40) % 4 == 0)
			op->kind = CALL;
		op->atom = bits >> 8 & 1;
		op->value = (uint32_t)(1 + (bits >> 16) % 3);
		op->order = op->kind == LOAD    ? load_orders[(bits >> 24) % 3]
		            : op->kind == STORE ? store_orders[(bits >> 24) % 3]
		                                : WEFT__ACQ_REL;
		if (number % 3 == 0 || (number % 3 == 1 && (bits >> 32) % 4))
			op->order = WEFT__SEQ_CST;
		op->failed = load_orders[(bits >> 44) % 3];
	}
}

static void
script_print(void)
{
	for (int i = 0; i < threads * ops; i++)
		printf("T%d: kind %d order %d failed %d atom %d value %u\n", i / ops,
		       event_op(i)->kind, event_op(i)->order, event_op(i)->failed,
		       event_op(i)->atom, event_op(i)->value);
}

static void
compare_with_axioms(int thread_count, int op_count, int programs)
{
	static struct outcomes allowed;
	uint64_t seed = 4711, executions = 0, outcomes = 0;

	threads = thread_count;
	ops = op_count;
	for (int n = 0; n < programs; n++) {
		script_make(&seed, n, false);
		allowed_outcomes(&allowed);
		executions += explore_outcomes(&explored, 0);
		outcomes += (uint64_t)allowed.count;
		if (!outcomes_equal(&allowed, &explored))
			script_print();
		CHECK_EQ(explored.count, allowed.count);
		CHECK(outcomes_equal(&allowed, &explored));
	}
	printf("%d programs, %llu outcomes, %llu executions\n", programs,
	       (unsigned long long)outcomes, (unsigned long long)executions);
	CHECK(outcomes > (uint64_t)programs);
}

TEST(axioms_and_explorer_agree_on_programs_of_two_threads)
{
	compare_with_axioms(2, 3, 2000);
}

TEST(axioms_and_explorer_agree_on_programs_of_three_threads)
{
	compare_with_axioms(3, 2, 1000);
}

TEST(axioms_and_explorer_agree_on_longer_programs)
{
	compare_with_axioms(3, 3, 60);
}

TEST(axioms_search_finds_every_outcome_of_a_search_of_all_schedules)
{
	static struct outcomes all;
	uint64_t seed = 99, few = 0, many = 0;

	threads = 2;
	ops = 3;
	for (int n = 0; n < 2000; n++) {
		if (n == 1600) {
			threads = 3;
			ops = 2;
		}
		script_make(&seed, n, n % 2);
		few += explore_outcomes(&explored, 0);
		many += explore_outcomes(&all, 1000);
		CHECK(outcomes_equal(&explored, &all));
	}
	printf("%llu executions instead of %llu\n", (unsigned long long)few,
	       (unsigned long long)many);
	CHECK(few < many);
}
