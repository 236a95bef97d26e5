/* scenario_plants.c - tests the oracles of oracle.h.
 *
 * Each plant is a small scenario that itself does what the library must not do: it drops a
 * byte, reports a result twice, and so on.  An oracle that accepts it would accept a broken
 * library, too.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { SEEDS = 200 }; /* tried at most */

/* --- once ------------------------------------------------------------- */

static struct once once;
static uint32_t tells; /* how often the result is reported */

static void
on_slept(weft_op *op, int64_t result, void *arg)
{
	(void)op, (void)arg;
	result_check(OP_SLEEP, result, 0);
	for (uint32_t i = 0; i < tells; i++)
		once_end(&once);
}

/* Sleep once on a loop, and report the end `times` times. */
static void
sleep_once(uint32_t times)
{
	weft_loop_opts opts = WEFT_INIT;
	weft_loop *loop = loop_make(&opts);
	weft_op op;

	once = (struct once){ 0 };
	tells = times;
	sim_check(weft_op_init(&op, loop, on_slept, NULL) == 0);
	while (weft_op_sleep(&op, weft_after(WEFT_US)) == WEFT_ENOMEM)
		continue;
	once_begin(&once);
	sim_check(weft_loop_run(loop) == 0);
	sim_check(weft_loop_free(loop) == 0);
	once_check(&once);
}

static void
tell_twice(void *arg)
{
	(void)arg;
	sleep_once(2);
}

static void
tell_never(void *arg)
{
	(void)arg;
	sleep_once(0);
}

static void
begin_twice(void *arg)
{
	struct once twice = { 0 };

	(void)arg;
	once_begin(&twice);
	once_begin(&twice);
}

/* --- stream ----------------------------------------------------------- */

/* Send some bytes through a pair, and check them after `spoil` has changed them. */
static void
pass_bytes(size_t (*spoil)(unsigned char *buf, size_t size))
{
	struct stream stream = { .key = sim_random() };
	unsigned char buf[64];
	size_t size = 0;
	int ends[2];
	int64_t rc;

	while (sim_socketpair(ends) < 0)
		continue;
	stream_fill(&stream, buf, 40);
	while ((rc = weft__sys->send(ends[0], buf, 40, 0)) < 0)
		continue;
	stream_sent(&stream, (size_t)rc);
	while (size < stream.made) {
		(void)peer_wait(ends[1], POLLIN, WEFT_S);
		rc = weft__sys->recv(ends[1], buf + size, sizeof(buf) - size, 0);
		size += rc > 0 ? (size_t)rc : 0;
	}
	(void)weft__sys->close(ends[0]);
	(void)weft__sys->close(ends[1]);
	size = spoil(buf, size);
	stream_take(&stream, buf, size);
}

static size_t
drop_first(unsigned char *buf, size_t size)
{
	memmove(buf, buf + 1, size - 1);
	return size - 1;
}

static size_t
repeat_first(unsigned char *buf, size_t size)
{
	memmove(buf + 1, buf, size);
	return size + 1;
}

static size_t
append_one(unsigned char *buf, size_t size)
{
	for (; size < 41; size++)
		buf[size] = 0;
	return 41;
}

static size_t
change_one(unsigned char *buf, size_t size)
{
	buf[sim_random_below(size)] ^= 1;
	return size;
}

static void
lose_a_byte(void *arg)
{
	(void)arg;
	pass_bytes(drop_first);
}

static void
double_a_byte(void *arg)
{
	(void)arg;
	pass_bytes(repeat_first);
}

static void
invent_a_byte(void *arg)
{
	(void)arg;
	pass_bytes(append_one);
}

static void
change_a_byte(void *arg)
{
	(void)arg;
	pass_bytes(change_one);
}

/* --- order ------------------------------------------------------------ */

static struct order order;

static void
take_number(void *arg)
{
	order_take(&order, 0, (uint64_t)(uintptr_t)arg);
}

/* Post these numbers, and claim that two were given. */
static void
post_numbers(const uintptr_t *numbers, size_t count)
{
	weft_loop_opts opts = WEFT_INIT;
	weft_loop *loop = loop_make(&opts);

	order = (struct order){ .given = { 2 } };
	for (size_t i = 0; i < count; i++)
		while (weft_loop_post(loop, take_number, (void *)numbers[i]) == WEFT_EAGAIN)
			continue;
	sim_check(weft_loop_run(loop) == 0);
	sim_check(weft_loop_free(loop) == 0);
	order_check(&order);
}

static void
swap_posts(void *arg)
{
	(void)arg;
	post_numbers((const uintptr_t[]){ 1, 0 }, 2);
}

static void
repeat_a_post(void *arg)
{
	(void)arg;
	post_numbers((const uintptr_t[]){ 0, 0, 1 }, 3);
}

static void
lose_a_post(void *arg)
{
	(void)arg;
	post_numbers((const uintptr_t[]){ 0 }, 1);
}

/* --- time, owner, result, liveness ------------------------------------ */

static void
on_early(weft_timer *timer, void *arg)
{
	(void)timer;
	time_check(*(uint64_t *)arg);
}

static void
fire_early(void *arg)
{
	weft_loop_opts opts = WEFT_INIT;
	weft_loop *loop = loop_make(&opts);
	uint64_t due_ns = weft_after(WEFT_MS);
	weft_timer timer = { 0 };

	(void)arg;
	while (weft_timer_start(loop, &timer, due_ns / 2, 0, on_early, &due_ns) == WEFT_ENOMEM)
		continue;
	sim_check(weft_loop_run(loop) == 0);
	sim_check(weft_loop_free(loop) == 0);
}

static void
time_out_late(void *arg)
{
	uint64_t deadline_ns = weft_after(WEFT_MS);

	(void)arg;
	pause_ns(2 * WEFT_MS);
	late_check(WEFT_ETIMEDOUT, deadline_ns - 1, deadline_ns);
}

static void
reach_another(void *arg)
{
	(void)arg;
	owner_check(1, 2);
}

static void
tell_would_block(void *arg)
{
	(void)arg;
	result_check(OP_RECV, -EAGAIN, 10);
}

static void
tell_too_much(void *arg)
{
	(void)arg;
	result_check(OP_SEND, 11, 10);
}

static void
wait_for_nothing(void *arg)
{
	weft__a32 word = { 0 };

	(void)arg;
	sim_heal();
	await_count(&word, 1);
}

/* The simulator itself finds a leaked descriptor, thread or memory block. */
static void
leave_a_loop(void *arg)
{
	weft_loop_opts opts = WEFT_INIT;

	(void)arg;
	(void)loop_make(&opts);
}

static const struct {
	const char *name;
	void (*run)(void *arg);
	const char *found_as; /* part of the failure text */
} plants[] = {
	{ "tell_twice", tell_twice, "finished more often" },
	{ "tell_never", tell_never, "was started and has not" },
	{ "begin_twice", begin_twice, "begun while in flight" },
	{ "lose_a_byte", lose_a_byte, "a wrong byte at 0" },
	{ "double_a_byte", double_a_byte, "a wrong byte at 1" },
	{ "invent_a_byte", invent_a_byte, "bytes that nobody sent" },
	{ "change_a_byte", change_a_byte, "a wrong byte at" },
	{ "swap_posts", swap_posts, "number 1 of source 0 arrives as 0" },
	{ "repeat_a_post", repeat_a_post, "number 0 of source 0 arrives as 1" },
	{ "lose_a_post", lose_a_post, "source 0 gave 2, and 1" },
	{ "fire_early", fire_early, "ns early" },
	{ "time_out_late", time_out_late, "a timeout, though" },
	{ "reach_another", reach_another, "a callback of 1 reached 2" },
	{ "tell_would_block", tell_would_block, "kind 2 has result -11" },
	{ "tell_too_much", tell_too_much, "kind 3 has result 11" },
	{ "wait_for_nothing", wait_for_nothing, "not live" },
	{ "leave_a_loop", leave_a_loop, "leaves memory" },
};

bool
scenario_plant(const struct sim_scenario *scenario, const char *found_as)
{
	bool found = false;

	for (uint64_t seed = 1; seed <= SEEDS && !found; seed++) {
		struct sim_result result;

		sim_run(scenario, seed, NULL, &result);
		found = result.failed && strstr(result.text, found_as);
	}
	(void)printf("%s  %s\n", found ? "ok" : "NOT FOUND", scenario->name);
	return found;
}

int
scenario_plant_all(const struct spoiled *plays, size_t count, void (*run)(void *spoil),
                   uint32_t masked_faults)
{
	int missed = 0;

	for (size_t i = 0; i < count; i++) {
		struct sim_scenario scenario = {
			.name = plays[i].name,
			.run = run,
			.arg = (void *)(uintptr_t)&plays[i].spoil,
			.masked_faults = masked_faults,
		};

		missed += !scenario_plant(&scenario, plays[i].found_as);
	}
	return missed;
}

int
scenario_plants(void)
{
	int missed = 0;

	for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		struct sim_scenario scenario = { .name = plants[i].name,
			                         .run = plants[i].run,
			                         .masked_faults = SIM_MASK(SIM_CLOCK)
			                                          | SIM_MASK(SIM_SHORT) };

		missed += !scenario_plant(&scenario, plants[i].found_as);
	}
	return missed;
}
