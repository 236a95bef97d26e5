/* loop_scenarios.c - a loop and the threads around it: posts, a full inbox, start to end.
 *
 *   1. An accepted post runs exactly once, in order per thread; a refused one never runs.
 *   2. Nothing runs after a wait for the stop has returned.
 */
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { THREADS = 3, POSTS = 80 };

/* --- posts against a stop --------------------------------------------- */

struct poster {
	struct host *host;
	uint32_t source;
	struct parcel {
		weft_node node;
		struct poster *poster;
		uint64_t number;
	} parcels[POSTS];
	uint32_t refused;
};

static struct {
	struct host host;
	struct order order;
	struct poster posters[THREADS];
	bool ended; /* a wait for the stop has returned */
	weft__a32 executed;
} mail;

static void
take_parcel(void *arg)
{
	const struct parcel *parcel = arg;

	if (mail.ended)
		sim_fail("runs after the end");
	order_take(&mail.order, parcel->poster->source, parcel->number);
	count_up(&mail.executed);
}

/* Post in one of two ways; returns the result. */
static int
post(struct poster *poster, struct parcel *parcel, uint32_t how)
{
	uint64_t *given = &mail.order.given[poster->source];
	int rc;

	*parcel = (struct parcel){ .poster = poster, .number = *given };
	parcel->node.fn = take_parcel;
	parcel->node.arg = parcel;
	if (how == 0)
		rc = weft_loop_post(poster->host->loop, take_parcel, parcel);
	else
		rc = weft_loop_post_node(poster->host->loop, &parcel->node);
	*given += rc == 0;
	return rc;
}

static void
post_all(void *arg)
{
	struct poster *poster = arg;

	for (int i = 0; i < POSTS; i++) {
		int rc = post(poster, &poster->parcels[i], (uint32_t)sim_random_below(2));

		sim_check(rc == 0 || rc == WEFT_EAGAIN || rc == WEFT_ESHUTDOWN);
		if (poster->refused)
			sim_check(rc == WEFT_ESHUTDOWN);
		poster->refused += rc == WEFT_ESHUTDOWN;
		if (sim_random_below(4) == 0)
			pause_briefly();
	}
}

static void
stop_soon(void *arg)
{
	struct host *host = arg;

	pause_ns(sim_random_below(200) * WEFT_US);
	weft_loop_shutdown(host->loop);
}

static void
reset_mail(void)
{
	memset(&mail, 0, sizeof(mail));
	for (uint32_t i = 0; i < THREADS; i++)
		mail.posters[i] = (struct poster){ .host = &mail.host, .source = i };
}

static void
run_posts(void *arg)
{
	uint64_t threads[THREADS + 1];

	(void)arg;
	reset_mail();
	host_make(&mail.host);
	if (sim_random_below(2))
		host_run(&mail.host);
	for (int i = 0; i < THREADS; i++)
		threads[i] = thread_start("poster", post_all, &mail.posters[i]);
	threads[THREADS] = thread_start("stopper", stop_soon, &mail.host);
	if (sim_random_below(2))
		pause_ns(sim_random_below(100) * WEFT_US);
	/* If it was stopped before it ran and has accepted nothing, it has already stopped. */
	if (weft_loop_state(mail.host.loop) == WEFT_IDLE
	    || weft_loop_state(mail.host.loop) == WEFT_STOPPING)
		(void)weft_loop_run(mail.host.loop);
	host_stop(&mail.host);
	mail.ended = true;
	for (int i = 0; i <= THREADS; i++)
		thread_join(threads[i]);
	order_check(&mail.order);
	sim_heal();
	host_free(&mail.host);
}

const struct sim_scenario sim_scenario_posts = { .name = "loop_posts", .run = run_posts };

/* --- a small inbox ---------------------------------------------------- */

static void
insist(void *arg)
{
	struct poster *poster = arg;

	for (int i = 0; i < POSTS; i++) {
		uint32_t how = (uint32_t)sim_random_below(2);
		uint64_t pause = WEFT_US;
		int rc;

		while ((rc = post(poster, &poster->parcels[i], how)) == WEFT_EAGAIN) {
			pause_ns(sim_random_below(pause));
			pause *= 2;
		}
		sim_check(rc == 0);
	}
}

/* Fill an idle loop: it accepts no more than it has room for. */
static void
fill_idle(void *arg)
{
	struct poster *poster = &mail.posters[0];
	uint32_t given = 0, inbox_max = *(uint32_t *)arg;
	int rc = 0;

	while (given < POSTS && (rc = post(poster, &poster->parcels[given], 0)) == 0)
		given++;
	sim_check((rc == 0 || rc == WEFT_EAGAIN) && given <= inbox_max);
}

static void
run_full(void *arg)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP };
	uint64_t threads[THREADS];
	uint32_t all = 0;

	(void)arg;
	reset_mail();
	opts.inbox_max = 2 + (uint32_t)sim_random_below(30);
	opts.budget = 1 + (uint32_t)sim_random_below(8);
	mail.host = (struct host){ .loop = loop_make(&opts) };
	/* In its own thread: a thread keeps the room that it has taken until it ends. */
	thread_join(thread_start("filler", fill_idle, &opts.inbox_max));
	host_run(&mail.host);
	while (count_of(&mail.executed) < mail.order.given[0])
		pause_ns(WEFT_US);
	for (int i = 0; i < THREADS; i++)
		threads[i] = thread_start("poster", insist, &mail.posters[i]);
	pause_ns(sim_random_below(2000) * WEFT_US);
	sim_heal();
	for (int i = 0; i < THREADS; i++)
		thread_join(threads[i]);
	for (int i = 0; i < ORDER_SOURCES; i++)
		all += (uint32_t)mail.order.given[i];
	await_count(&mail.executed, all);
	order_check(&mail.order);
	host_end(&mail.host);
}

const struct sim_scenario sim_scenario_full = { .name = "loop_full", .run = run_full };

/* --- start, leave, run, stop, free ------------------------------------ */

static struct {
	weft_loop *loop;
	weft__a32 accepted, executed;
	bool all_stop; /* false: only one thread stops the loop */
	bool ended;
} life;

static void
live(void *arg)
{
	(void)arg;
	if (life.ended)
		sim_fail("runs after the end");
	count_up(&life.executed);
}

static void
live_and_leave(void *arg)
{
	live(arg);
	weft_loop_break(NULL);
}

static void
post_to_life(weft_fn fn)
{
	int rc = weft_loop_post(life.loop, fn, NULL);

	sim_check(rc == 0 || rc == WEFT_EAGAIN || rc == WEFT_ESHUTDOWN);
	if (rc == 0)
		count_up(&life.accepted);
}

static void
act_on_life(uint64_t what)
{
	int rc;

	switch (what) {
	case 0:
	case 1:
		rc = weft_loop_start(life.loop);
		sim_check(rc == 0 || rc == WEFT_EBUSY || rc == WEFT_EALREADY || rc == WEFT_EAGAIN);
		break;
	case 2:
		rc = weft_loop_run(life.loop);
		sim_check(rc == 0 || rc == WEFT_EBUSY || rc == WEFT_EALREADY);
		break;
	case 3:
		rc = weft_loop_run_once(life.loop, WEFT_NOWAIT);
		sim_check((rc >= 0 && rc <= 1) || rc == WEFT_EBUSY || rc == WEFT_EALREADY);
		break;
	case 4:
	case 5:
		weft_loop_break(life.loop);
		break;
	case 6:
		weft_loop_wake(life.loop);
		break;
	case 7:
		rc = weft_loop_wait_stopped(life.loop, weft_after(20 * WEFT_US));
		sim_check(rc == 0 || rc == WEFT_ETIMEDOUT);
		break;
	case 8:
		sim_check(weft_loop_free(life.loop) == WEFT_EBUSY);
		break;
	case 9:
		(void)weft_loop_unref(weft_loop_ref(life.loop));
		break;
	default:
		post_to_life(what % 2 ? live : live_and_leave);
		break;
	}
}

static void
lead_life(void *arg)
{
	(void)arg;
	for (int i = 0; i < 60; i++)
		act_on_life(sim_random_below(16));
	if (life.all_stop && sim_random_below(2))
		weft_loop_shutdown(life.loop);
}

/* The only thread that stops the loop may still be inside the call when the loop is freed. */
static void
stop_life(void *arg)
{
	(void)arg;
	weft_loop_shutdown(life.loop);
}

/* An idle loop that has accepted posts stops when it is run. */
static void
end_life(void)
{
	uint64_t since_ns = sim_time();

	while (weft_loop_wait_stopped(life.loop, weft_after(WEFT_MS)) != 0) {
		int rc = weft_loop_run(life.loop);

		sim_check(rc == 0 || rc == WEFT_EBUSY || rc == WEFT_EALREADY);
		if (sim_time() - since_ns > LIVE_NS)
			sim_fail("not live: it has not stopped");
	}
	life.ended = true;
	sim_check(count_of(&life.executed) == count_of(&life.accepted));
}

static void
run_life(void *arg)
{
	weft_loop_opts opts = WEFT_INIT;
	uint64_t threads[THREADS], stopper;

	(void)arg;
	memset(&life, 0, sizeof(life));
	life.loop = weft_loop_ref(loop_make(&opts));
	life.all_stop = sim_random_below(2);
	for (int i = 0; i < THREADS; i++)
		threads[i] = thread_start("life", lead_life, NULL);
	pause_ns(sim_random_below(300) * WEFT_US);
	for (int i = 0; i < 60; i++) {
		weft_loop_break(life.loop); /* a thread that runs it may wait for this */
		pause_ns(20 * WEFT_US);
	}
	sim_heal();
	stopper = thread_start("stopper", stop_life, NULL);
	while (weft_loop_state(life.loop) < WEFT_STOPPING)
		pause_briefly();
	for (int i = 0; i < THREADS; i++)
		thread_join(threads[i]);
	end_life();
	(void)weft_loop_unref(life.loop);
	if (life.all_stop)
		thread_join(stopper);
	sim_check(weft_loop_free(life.loop) == 0);
	if (!life.all_stop)
		thread_join(stopper);
}

const struct sim_scenario sim_scenario_life = { .name = "loop_life", .run = run_life };
