/* late_test.c - data that has already arrived beats the deadline: in every call, for any number
 * of waiters, also if the loop is late.
 *
 * The rows name the calls that are tested.  EXCEPT names those that are not, with the reason.
 * scripts/tidy.py compares both with the headers: each function that has a deadline or suspends
 * is in one of them.
 */
#include <sys/resource.h>
#include <weft/dag.h>
#include <weft/debug.h>
#include "late/late.h"

#define EXCEPT(call, reason)

EXCEPT(weft_sleep, "the delay is what it waits for")
EXCEPT(weft_sleep_until, "the deadline is what it waits for")
EXCEPT(weft_op_sleep, "the deadline is what it waits for")
EXCEPT(weft_yield, "has no deadline")
EXCEPT(weft_loop_run_once, "the deadline ends a turn's wait, it is no timeout")
EXCEPT(weft_poller_wait, "asks the kernel itself, after the deadline")
EXCEPT(weft_listener_serve, "the deadline ends the serving, whatever arrives")
EXCEPT(weft_http_serve, "the deadline ends the serving, whatever arrives")
EXCEPT(weft_threadlet_list, "waits for a turn of another loop, on that loop's thread")
EXCEPT(weft_dump, "as weft_threadlet_list")
EXCEPT(weft_loop_wait_stopped, "the thread that stops takes the wait over: stop_wait_test")
EXCEPT(weft_loop_call, "waits as weft_event_wait, and then for the function")
EXCEPT(weft_runtime_wait_stopped, "as weft_loop_wait_stopped")
EXCEPT(weft_dag_run_wait, "a run ends by its own steps and turns: nothing arrives")
EXCEPT(weft_dag_run_op, "as weft_dag_run_wait")
EXCEPT(weft_child_open, "blocks the thread, and does not use its deadline")
EXCEPT(weft_file_open, "is done by the pool, as weft_work, or by the ring, as weft_op_recv")
EXCEPT(weft_file_read, "as weft_file_open")
EXCEPT(weft_file_write, "as weft_file_open")
EXCEPT(weft_file_sync, "as weft_file_open")
EXCEPT(weft_dns_resolve, "has a server of its own in dns_server_test")
EXCEPT(weft_dns_reverse, "as weft_dns_resolve")
EXCEPT(weft_http_reply, "writes as weft_stream_write")
EXCEPT(weft_http_reply_file, "writes as weft_stream_write and weft_stream_write_file")
EXCEPT(weft_http_begin, "writes as weft_stream_write")
EXCEPT(weft_http_upgrade, "writes as weft_stream_write")
EXCEPT(weft_http_write, "writes as weft_stream_write")
EXCEPT(weft_http_send_event, "writes as weft_stream_write")
EXCEPT(weft_http_finish, "reads the reply by the same way as weft_http_fetch")
EXCEPT(weft_tls_start, "its steps are reads and writes of the stream, and wait as these")
EXCEPT(weft_admin_authorize, "has no deadline")
EXCEPT(weft_admin_close, "has no deadline")
EXCEPT(weft_child_close, "has no deadline")
EXCEPT(weft_dgram_close, "has no deadline")
EXCEPT(weft_file_close, "has no deadline")
EXCEPT(weft_listener_close, "has no deadline")
EXCEPT(weft_redis_close, "has no deadline")
EXCEPT(weft_scope_close, "has no deadline but that of weft_scope_open")
EXCEPT(weft_stream_close, "has no deadline")

#define SOME 300u
#define MANY 3000u

/* Raise the descriptor limit.  A waiter has up to three descriptors.  Returns the possible
 * number of waiters. */
static uint32_t
allow_many(void)
{
	struct rlimit limit;

	OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max < 16384 ? limit.rlim_max : 16384;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	return limit.rlim_cur >= 4 * MANY ? MANY : (uint32_t)limit.rlim_cur / 4;
}

static bool
run_rows(const struct row *rows, uint32_t count, bool fed)
{
	bool good = true;

	for (const struct row *row = rows; row->call; row++) {
		uint32_t n = row->max && row->max < count ? row->max : count;

		if (!fed && row->has_no_end)
			continue;
		good &= late_run(row, n, fed, false);
		if (n <= SOME) /* more of them would test nothing else */
			good &= late_run(row, n, fed, true);
	}
	return good;
}

static void
run_all(uint32_t count, bool fed)
{
	bool good = run_rows(late_core_rows, count, fed);

	good &= run_rows(late_net_rows, count, fed);
	good &= run_rows(late_proto_rows, count, fed);
	CHECK(good); /* late_run() has printed the calls that failed */
}

TEST(call_that_gets_nothing_reports_a_timeout)
{
	run_all(1, false);
}

TEST(data_that_arrived_beats_the_deadline_of_one_waiter)
{
	run_all(1, true);
}

TEST(data_that_arrived_beats_the_deadline_of_300_waiters)
{
	run_all(SOME, true);
}

TEST(data_that_arrived_beats_the_deadline_of_3000_waiters)
{
	if (TEST_TSAN) /* takes minutes, and adds no threads */
		return;
	run_all(allow_many(), true);
}
