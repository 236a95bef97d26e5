/* switch_words_test.c - a context switch keeps every word that a call keeps.
 *
 * Flows, each on its own stack, switch to each other in random order.  Each has random values
 * in the callee-saved registers and the control words, and checks them when it is resumed.  Now
 * and then a flow is abandoned and begins again, on a stack that ends at a random address and
 * with the control words of the flow that made it.  Then the same runs with planted bugs: one
 * switch for each word that does not restore it, and flows that begin wrongly.  The test must
 * detect each of them, and nothing else.
 *
 *   1. Flow 0 is the test's own stack.  It is resumed last, and only there is anything reported.
 *   2. Between switches the control words are those of the program.
 */
#include "base/switch/annotate.h"
#include "test.h"
#include "unit/switch/words.h"

#define FLOWS       8
#define STACK_BYTES 16384
#define STEPS       100000
#define NONE        SIZE_MAX

/* The stack changes without the sanitizers' knowledge. */
#define UNSEEN __attribute__((no_sanitize_address, no_sanitize_thread))

struct flow {
	void *sp;                    /* while suspended */
	uint64_t controls[CONTROLS]; /* of the flow that made it */
	uint32_t valgrind_id;
	_Alignas(64) char stack[STACK_BYTES];
};

static struct flow flows[FLOWS];
static struct plan {
	switch_fn *change;
	void *(*entry)(void *arg);
	bool maker_forgotten; /* planted bug: flows begin with the program's control words */
} plan;
static uint64_t chance;
static int steps, entries;
static uint64_t own[CONTROLS];

/* The first error. */
static struct {
	size_t word; /* NONE: no error yet */
	uint64_t got, want;
	int entered_badly; /* misaligned, or with other control words */
} found;

UNSEEN static size_t
draw(size_t below)
{
	return (size_t)(test_random(&chance) % below);
}

UNSEEN static void
draw_words(uint64_t *out)
{
	uint64_t *controls = out + WORDS - CONTROLS;

	for (size_t i = 0; i < WORDS; i++)
		out[i] = (test_random(&chance) & words[i].any) | words[i].ones;
	switch_words_set(controls);
	switch_words_get(controls); /* only the bits that this CPU has */
	switch_words_set(own);
}

UNSEEN static void
make(struct flow *flow)
{
	uint64_t drawn[WORDS];

	draw_words(drawn);
	for (size_t i = 0; i < CONTROLS; i++)
		flow->controls[i] = drawn[WORDS - CONTROLS + i];
	if (!plan.maker_forgotten)
		switch_words_set(flow->controls);
	flow->sp = weft__stack_make(flow->stack + STACK_BYTES - draw(64), plan.entry, flow,
	                            weft__modes());
	switch_words_set(own);
}

UNSEEN static void
compare(const uint64_t *got, const uint64_t *want)
{
	for (size_t i = 0; i < WORDS && found.word == NONE; i++) {
		if (got[i] == want[i])
			continue;
		found.word = i;
		found.got = got[i];
		found.want = want[i];
	}
}

UNSEEN static bool
is_over(void)
{
	return steps == 0 || found.word != NONE || found.entered_badly;
}

/* Chooses any other flow, or flow 0 at the end of the run. */
UNSEEN static struct flow *
choose(const struct flow *self)
{
	size_t mine = (size_t)(self - flows);

	if (is_over())
		return flows;
	steps--;
	return &flows[(mine + 1 + draw(FLOWS - 1)) % FLOWS];
}

UNSEEN static void
step(struct flow *self)
{
	struct flow *next = choose(self);
	uint64_t want[WORDS], got[WORDS];

	if (next != flows && draw(32) == 0)
		make(next);
	draw_words(want);
	for (size_t i = 0; i < WORDS; i++)
		got[i] = want[i];
	switch_words_call(plan.change, &self->sp, next->sp, got);
	compare(got, want);
}

UNSEEN void
switch_words_begin(void *arg, uintptr_t sp)
{
	struct flow *self = arg;
	uint64_t now[CONTROLS];

	switch_words_get(now);
	switch_words_set(own);
	entries++;
	if (sp % 16 != 0)
		found.entered_badly++;
	for (size_t i = 0; i < CONTROLS; i++)
		if (now[i] != self->controls[i])
			found.entered_badly++;
	for (;;)
		step(self);
}

UNSEEN static void
run(struct plan planned, int most)
{
	plan = planned;
	steps = most;
	entries = 0;
	memset(&found, 0, sizeof found);
	found.word = NONE;
	switch_words_get(own);
	for (size_t i = 1; i < FLOWS; i++) {
		flows[i].valgrind_id = weft__valgrind_make(flows[i].stack, STACK_BYTES);
		make(&flows[i]);
	}
	while (!is_over())
		step(flows);
	for (size_t i = 1; i < FLOWS; i++)
		weft__valgrind_fini(flows[i].valgrind_id);
}

TEST(switch_keeps_all_words_of_flows_in_random_order)
{
	chance = test_seed();
	run((struct plan){ weft__stack_switch, switch_words_entry, false }, STEPS);
	if (found.word != NONE)
		test_fail(__FILE__, __LINE__, "%s is %#llx, not %#llx", words[found.word].name,
		          (unsigned long long)found.got, (unsigned long long)found.want);
	CHECK_EQ(found.entered_badly, 0);
	CHECK(entries > STEPS / 100);
	CHECK_EQ(steps, 0);
}

TEST(switch_that_does_not_restore_a_word_is_detected_for_each_word)
{
	chance = test_seed();
	for (size_t i = 0; i < WORDS; i++) {
		run((struct plan){ switch_words_forget[i], switch_words_entry, false },
		    STEPS / 100);
		if (found.word != i)
			test_fail(__FILE__, __LINE__, "%s forgotten, found %s", words[i].name,
			          found.word == NONE ? "nothing" : words[found.word].name);
		CHECK_EQ(found.entered_badly, 0);
	}
	printf("%zu planted bugs, all found\n", WORDS);
}

TEST(new_flow_that_begins_wrongly_is_detected)
{
	chance = test_seed();
	run((struct plan){ weft__stack_switch, switch_words_entry_off, false }, STEPS / 100);
	CHECK_EQ(found.entered_badly, 1);
	CHECK_EQ(found.word, NONE);
	run((struct plan){ weft__stack_switch, switch_words_entry, true }, STEPS / 100);
	CHECK(found.entered_badly > 0);
	CHECK_EQ(found.word, NONE);
}
