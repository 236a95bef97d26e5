/* switch_test.c - a context switch keeps what a call keeps, and debugging tools can follow it.
 *
 * The same tests run plain, under ASan, UBSan and TSan, under valgrind, and on 64-bit ARM under
 * qemu.  switch_words_test.c checks each register and control word.
 */
#include <execinfo.h>
#include <fenv.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/switch/switch.h"
#include "test.h"

#define STACK_BYTES ((size_t)256 * 1024)

struct flow {
	struct weft__context self;
	struct weft__context *back; /* the context that resumes it */
	void *stack;
	void (*body)(struct flow *flow);
	uint64_t in;
	uint64_t out;
	bool ended;
};

static struct weft__context home;

static struct weft__context *
flow_main(void *arg)
{
	struct flow *flow = arg;

	flow->body(flow);
	flow->ended = true;
	return flow->back;
}

static void
flow_start(struct flow *flow, void (*body)(struct flow *flow))
{
	weft__context_init(&home);
	*flow = (struct flow){ .back = &home, .body = body };
	flow->stack = malloc(STACK_BYTES);
	CHECK(flow->stack != NULL);
	weft__context_make(&flow->self, flow->stack, STACK_BYTES, flow_main, flow);
}

static void
flow_resume(struct flow *flow)
{
	weft__switch(flow->back, &flow->self);
}

static void
flow_suspend(struct flow *flow)
{
	weft__switch(&flow->self, flow->back);
}

static void
flow_fini(struct flow *flow)
{
	weft__context_fini(&flow->self);
	free(flow->stack);
}

static void
body_adds(struct flow *flow)
{
	uint64_t sum = 0;

	while (flow->in != UINT64_MAX) {
		sum += flow->in;
		flow->out = sum;
		flow_suspend(flow);
	}
}

TEST(switch_keeps_values_over_100000_round_trips)
{
	struct flow flow;
	uint64_t sum = 0;

	flow_start(&flow, body_adds);
	for (uint64_t i = 0; i < 100000; i++) {
		flow.in = i * i;
		flow_resume(&flow);
		sum += i * i;
		if (flow.out != sum)
			break;
	}
	CHECK_EQ(flow.out, sum);
	flow.in = UINT64_MAX;
	flow_resume(&flow);
	CHECK(flow.ended);
	flow_fini(&flow);
}

/* One third, rounded by the current mode.  Volatile, so that the compiler does not fold it. */
static double
third(void)
{
	volatile double one = 1.0, three = 3.0;

	return one / three;
}

static double third_there;

static void
body_rounds_up(struct flow *flow)
{
	flow->out = (uint64_t)fegetround();
	fesetround(FE_UPWARD);
	flow_suspend(flow);
	flow->out = (uint64_t)fegetround();
	third_there = third();
}

/* False under valgrind, which keeps the mode but always rounds to nearest. */
static bool
rounding_works(void)
{
	double down, up;

	fesetround(FE_DOWNWARD);
	down = third();
	fesetround(FE_UPWARD);
	up = third();
	fesetround(FE_TONEAREST);
	return down < up;
}

TEST(switch_keeps_the_rounding_mode_of_each_context)
{
	struct flow flow;
	double nearest = third();

	flow_start(&flow, body_rounds_up);
	flow_resume(&flow);
	CHECK_EQ(flow.out, FE_TONEAREST); /* inherited from the context that made it */
	CHECK_EQ(fegetround(), FE_TONEAREST);
	CHECK(third() == nearest);

	fesetround(FE_DOWNWARD);
	flow_resume(&flow);
	CHECK_EQ(flow.out, FE_UPWARD);
	CHECK_EQ(fegetround(), FE_DOWNWARD);
	CHECK(third() < third_there || !rounding_works());
	fesetround(FE_TONEAREST);
	flow_fini(&flow);
}

TEST(new_context_inherits_the_rounding_mode_of_its_maker)
{
	struct flow flow;

	fesetround(FE_TOWARDZERO);
	flow_start(&flow, body_rounds_up);
	fesetround(FE_TONEAREST);
	flow_resume(&flow);
	CHECK_EQ(flow.out, FE_TOWARDZERO);
	CHECK_EQ(fegetround(), FE_TONEAREST);
	flow_resume(&flow);
	flow_fini(&flow);
}

/* The stack pointer at the call is a multiple of 16, so the frame address is one, too (x86-64:
 * after the return address and the saved rbp have been pushed). */
static __attribute__((noinline)) void
body_aligned(struct flow *flow)
{
	flow->out = (uintptr_t)__builtin_frame_address(0) & 15;
}

static struct weft__context *
first_aligned(void *arg)
{
	struct flow *flow = arg;

	flow->in = (uintptr_t)__builtin_frame_address(0) & 15;
	return flow_main(flow);
}

TEST(switch_enters_a_context_with_an_aligned_stack)
{
	struct flow flow;

	for (size_t cut = 0; cut < 32; cut++) {
		flow_start(&flow, body_aligned);
		weft__context_fini(&flow.self);
		weft__context_make(&flow.self, flow.stack, STACK_BYTES - cut, first_aligned, &flow);
		flow.out = 1;
		flow_resume(&flow);
		CHECK_EQ(flow.in, 0);
		CHECK_EQ(flow.out, 0);
		flow_fini(&flow);
	}
}

/* The words above the first frame look like return addresses.  Unwinding must end because the
 * entry is marked as the end, not because it finds a 0. */
#define FRAMES_MAX 64

static void *frames[FRAMES_MAX];

static void
body_backtrace(struct flow *flow)
{
	flow->out = (uint64_t)backtrace(frames, FRAMES_MAX);
}

TEST(unwinding_ends_at_the_entry_of_a_context)
{
	struct flow flow;
	uintptr_t entry = (uintptr_t)weft__stack_entry;
	uintptr_t last;

	flow_start(&flow, body_backtrace);
	weft__context_fini(&flow.self);
	for (size_t i = 0; i < STACK_BYTES / sizeof(void *); i++)
		((uintptr_t *)flow.stack)[i] = (uintptr_t)flow_resume;
	weft__context_make(&flow.self, flow.stack, STACK_BYTES - 512, flow_main, &flow);
	flow_resume(&flow);
	CHECK(flow.out >= 3);
	CHECK(flow.out < 16);
	last = (uintptr_t)frames[flow.out - 1];
	CHECK(last > entry);
	CHECK(last < entry + 32);
	flow_fini(&flow);
}

static void
body_passes_on(struct flow *flow)
{
	struct flow *next = (struct flow *)(uintptr_t)flow->in;

	flow_suspend(flow);
	if (next) {
		next->back = flow->back; /* the next one returns to the main context */
		flow->self.dead = 1;
		flow->ended = true;
		weft__switch(&flow->self, &next->self);
	}
}

TEST(switch_goes_between_contexts_without_returning_to_the_main_one)
{
	struct flow flows[8];

	for (int i = 7; i >= 0; i--) {
		flow_start(&flows[i], body_passes_on);
		flows[i].in = i < 7 ? (uintptr_t)&flows[i + 1] : 0;
		flow_resume(&flows[i]);
	}
	flow_resume(&flows[0]);
	for (int i = 0; i < 8; i++) {
		CHECK(flows[i].ended);
		flow_fini(&flows[i]);
	}
}

static void
body_abandoned(struct flow *flow)
{
	volatile char on_stack[512];

	memset((void *)on_stack, (int)flow->in, sizeof on_stack);
	flow_suspend(flow);
	flow->out = (uint64_t)on_stack[0];
	flow_suspend(flow);
	abort();
}

TEST(suspended_context_can_be_abandoned_and_its_stack_reused)
{
	struct flow flow;

	flow_start(&flow, body_abandoned);
	for (uint64_t i = 1; i < 100; i++) {
		flow.in = i;
		flow_resume(&flow);
		flow_resume(&flow);
		CHECK_EQ(flow.out, i);
		weft__context_fini(&flow.self);
		memset(flow.stack, 0, STACK_BYTES);
		weft__context_make(&flow.self, flow.stack, STACK_BYTES, flow_main, &flow);
	}
	flow_fini(&flow);
}

static void *
resume_elsewhere(void *arg)
{
	struct flow *flow = arg;
	struct weft__context here;

	weft__context_init(&here);
	flow->back = &here;
	flow->in = 5;
	flow_resume(flow);
	flow->in = UINT64_MAX;
	flow_resume(flow);
	return NULL;
}

TEST(suspended_context_continues_on_another_thread)
{
	struct flow flow;
	pthread_t thread;

	flow_start(&flow, body_adds);
	flow.in = 2;
	flow_resume(&flow);
	CHECK_EQ(pthread_create(&thread, NULL, resume_elsewhere, &flow), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(flow.out, 7);
	CHECK(flow.ended);
	flow_fini(&flow);
}
