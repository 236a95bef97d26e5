/* valgrind_test.c - loops under valgrind, and which backend they choose there.
 *
 * The same program runs with and without valgrind.
 */
#include <weft/metrics.h>
#include "base/sys.h"
#include "base/valgrind.h"
#include "stream_pair.h"
#include "unit/threadlet/sched.h"

/* --- the choice --------------------------------------------------------- */

/* Check which backend a loop opens, and the reason. */
static void
check_choice(const char *backend, const char *reason)
{
	weft_loop_opts opts = WEFT_INIT;
	weft_loop *loop = make_with(&opts);
	struct pair pair = make_pair();
	struct watcher w = { .calls = 0 };
	struct weft_loop_stats stats;

	watch(loop, &w, pair.fd, WEFT_READABLE);
	weft_loop_stats(loop, &stats);
	CHECK_STR(stats.backend, backend);
	CHECK_STR(stats.backend_reason, reason);
	CHECK_EQ(weft_watch_stop(&w.watch), 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(a_loop_under_valgrind_chooses_epoll_and_reports_the_reason)
{
	bool really = weft__on_valgrind;

	if (TEST_PORTABLE) /* there is only one backend */
		return;
	(void)unsetenv("WEFT_BACKEND");
	weft__on_valgrind = true;
	check_choice("epoll", "io_uring: hangs under valgrind, so epoll");
	weft__on_valgrind = really;
}

TEST(valgrind_is_detected)
{
	const char *expected = getenv("EXPECT_VALGRIND");

	CHECK_EQ(weft__on_valgrind, expected != NULL);
}

/* --- two loops ---------------------------------------------------------- */

enum { ROUNDS = 20 };

static weft_stream *ends[2];
static weft__a32 done;

/* Send a byte, and receive the peer's. */
static int
exchange(void *arg)
{
	weft_stream *stream = arg;
	char c = 'x';

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(weft_stream_write(stream, &c, 1, WEFT_NEVER), 1);
		CHECK_EQ(weft_stream_read(stream, &c, 1, WEFT_NEVER), 1);
	}
	weft_stream_close(stream);
	(void)weft__add(&done, 1, WEFT__RELEASE);
	return 0;
}

TEST(two_loops_exchange_bytes)
{
	weft_loop *loops[2] = { make_started(), make_started() };

	OK(open_stream_pair(&ends[0], &ends[1]));
	for (int i = 0; i < 2; i++)
		(void)go_on(loops[i], exchange, ends[i]);
	while (weft__load(&done, WEFT__ACQUIRE) < 2)
		weft__sys->yield();
	for (int i = 0; i < 2; i++)
		stop_and_free(loops[i]);
}
