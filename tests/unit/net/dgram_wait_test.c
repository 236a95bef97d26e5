/* dgram_wait_test.c - threadlets that wait to receive datagrams. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "unit/net/letters.h"

static weft_dgram *dgram; /* the receiver */
static weft_addr at;      /* its address */

static void
open_it(void)
{
	dgram = open_at(LOOPBACK);
	at = local_of(dgram);
}

/* Sends from a temporary socket. */
static void
send_it(const char *text)
{
	weft_dgram *from = open_at(LOOPBACK);

	CHECK_EQ(send_text(from, &at, text), 1);
	weft_dgram_close(from);
}

/* --- receiving ---------------------------------------------------------- */

static int
recv_and_close(void *arg)
{
	struct got got;

	CHECK_EQ(recv_text(dgram, &got, weft_after(HOUR)), 1);
	CHECK_STR(got.text, arg);
	note(MARK('r'));
	weft_dgram_close(dgram);
	return 0;
}

static int
send_later(void *arg)
{
	OK(weft_yield());
	note(MARK('s'));
	send_it(arg);
	return 0;
}

TEST(threadlet_waits_for_a_message)
{
	static char text[] = "at last";
	weft_loop *loop = make();

	open_it();
	go_on(loop, recv_and_close, text);
	go_on(loop, send_later, text);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "sr");
	OK(weft_loop_free(loop));
}

static int
echo_many(void *arg)
{
	struct got got;

	(void)arg;
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), 1);
		got.message.size = strlen(got.text);
		CHECK_EQ(weft_dgram_send(dgram, &got.message, 1, WEFT_NEVER), 1);
	}
	return 0;
}

static int
request_many(void *arg)
{
	weft_dgram *peer = open_to(NULL, &at);
	char text[16];
	struct got got;

	(void)arg;
	for (int i = 0; i < 200; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		CHECK_EQ(send_text(peer, NULL, text), 1);
		CHECK_EQ(recv_text(peer, &got, WEFT_NEVER), 1);
		CHECK_STR(got.text, text);
	}
	weft_dgram_close(peer);
	return 0;
}

TEST(messages_go_back_and_forth)
{
	weft_loop *loop = make();

	open_it();
	go_on(loop, echo_many, NULL);
	go_on(loop, request_many, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY); /* the socket still belongs to the loop */
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

TEST(message_exchange_does_not_allocate_or_arm_per_message)
{
	const char *backend = getenv("WEFT_BACKEND"); /* poll(2) arms for each wait */
	weft_loop *loop = make();

	open_it();
	count_calls();
	go_on(loop, echo_many, NULL);
	go_on(loop, request_many, NULL);
	OK(weft_loop_run(loop));
	CHECK(counted(&calls.allocs) < 60); /* not 400, one per message */
	if (!TEST_PORTABLE && (!backend || strcmp(backend, "poll") != 0))
		CHECK(counted(&calls.arms) < 60);
	count_no_more();
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

static int
recv_in_vain(void *arg)
{
	struct got got;
	uint64_t deadline_ns = weft_after(WEFT_MS);

	(void)arg;
	CHECK_EQ(recv_text(dgram, &got, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(recv_text(dgram, &got, deadline_ns), WEFT_ETIMEDOUT);
	CHECK(weft_now() >= deadline_ns);
	send_it("early");
	CHECK_EQ(recv_text(dgram, &got, deadline_ns), 1); /* a message that has arrived counts */
	CHECK_STR(got.text, "early");
	OK(weft_cancel(weft_self()));
	send_it("not for you");
	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(recv_text(dgram, &got, WEFT_NOWAIT), 1);
	weft_dgram_close(dgram);
	return 0;
}

TEST(receive_ends_at_its_deadline_unless_a_message_has_arrived)
{
	open_it();
	run_threadlet(recv_in_vain, NULL);
}

/* Receives until the error in `arg`, and notes a character. */
static int
recv_until(void *arg)
{
	struct got got;

	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), *(int *)arg);
	note(MARK('e'));
	return 0;
}

static int
cancel_it(void *arg)
{
	OK(weft_yield());
	OK(weft_cancel(*(weft_threadlet *)arg));
	return 0;
}

TEST(receive_can_be_canceled)
{
	weft_loop *loop = make();
	int want = WEFT_ECANCELED;
	weft_threadlet id;

	open_it();
	id = go_on(loop, recv_until, &want);
	go_on(loop, cancel_it, &id);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "e");
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

static int
recv_second(void *arg)
{
	struct got got;

	(void)arg;
	OK(weft_yield());
	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), WEFT_EBUSY);
	CHECK_EQ(recv_text(dgram, &got, WEFT_NOWAIT), WEFT_EBUSY);
	weft_dgram_close(dgram);
	return 0;
}

TEST(second_receive_on_a_socket_is_refused)
{
	weft_loop *loop = make();
	int want = WEFT_ESHUTDOWN;

	open_it();
	go_on(loop, recv_until, &want);
	go_on(loop, recv_second, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "e");
	OK(weft_loop_free(loop));
}

static int
recv_elsewhere(void *arg)
{
	struct got got;

	(void)arg;
	CHECK_MISUSE(recv_text(dgram, &got, WEFT_NEVER), WEFT_EWRONGLOOP);
	return 0;
}

TEST(socket_belongs_to_the_first_loop_that_waits_on_it)
{
	weft_loop *loop = make();
	int want = WEFT_EINTR;
	weft_threadlet id;

	open_it();
	id = go_on(loop, recv_until, &want);
	turns(loop, 2);
	OK(weft_interrupt(id));
	OK(weft_loop_run(loop));
	run_threadlet(recv_elsewhere, NULL);
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

static int
refuse_it(void *arg)
{
	(void)arg;
	OK(weft_yield());
	CHECK_EQ(send_text(dgram, NULL, "x"), 1);
	return 0;
}

TEST(connection_refused_ends_a_receive)
{
	weft_addr none = nowhere();
	weft_loop *loop = make();
	int want = WEFT_ECONNREFUSED;

	dgram = open_to(NULL, &none);
	go_on(loop, recv_until, &want);
	go_on(loop, refuse_it, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "e");
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

/* --- interrupts --------------------------------------------------------- */

static int
interrupt_it(void *arg)
{
	OK(weft_yield());
	OK(weft_interrupt(*(weft_threadlet *)arg));
	OK(weft_interrupt(*(weft_threadlet *)arg)); /* merged with the first */
	return 0;
}

static int
recv_interrupted(void *arg)
{
	struct got got;

	(void)arg;
	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), WEFT_EINTR);
	CHECK_EQ(recv_text(dgram, &got, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_interrupt(weft_self())); /* applies to the next call that waits */
	CHECK_EQ(recv_text(dgram, &got, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	send_it("x");
	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), WEFT_EINTR);
	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), 1);
	CHECK_EQ(recv_text(dgram, &got, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	return 0;
}

TEST(interrupt_ends_the_current_or_the_next_wait_once)
{
	weft_loop *loop = make();
	weft_threadlet id;

	open_it();
	id = go_on(loop, recv_interrupted, NULL);
	go_on(loop, interrupt_it, &id);
	OK(weft_loop_run(loop));
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

#define STORM 300

static weft__a32 seen;
static weft_threadlet interrupted;

/* Sends an interrupt once the previous one was seen.  Every second time it first waits until
 * the loop sleeps. */
static void *
interrupt_often(void *arg)
{
	for (uint32_t i = 0; i < STORM; i++) {
		if (i % 2)
			watch_for(arg, WEFT_SLEEPING);
		OK(weft_interrupt(interrupted));
		while (weft__load(&seen, WEFT__ACQUIRE) == i)
			sched_yield();
	}
	return NULL;
}

static int
count_interrupts(void *arg)
{
	struct got got;

	(void)arg;
	for (uint32_t i = 0; i < STORM; i++) {
		CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), WEFT_EINTR);
		weft__store(&seen, i + 1, WEFT__RELEASE);
	}
	return 0;
}

TEST(any_thread_may_interrupt_a_receive)
{
	weft_loop *loop = make();
	pthread_t other;

	open_it();
	weft__store(&seen, 0, WEFT__RELAXED);
	interrupted = go_on(loop, count_interrupts, NULL);
	other = thread(interrupt_often, loop);
	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

/* --- closing ------------------------------------------------------------ */

static int
close_it(void *arg)
{
	(void)arg;
	OK(weft_yield());
	weft_dgram_close(dgram);
	note(MARK('c'));
	return 0;
}

static int
close_it_cancelled(void *arg)
{
	(void)arg;
	OK(weft_yield());
	OK(weft_cancel(weft_self()));
	weft_dgram_close(dgram);
	note(MARK('c'));
	return 0;
}

static void
close_in_callback(void *arg)
{
	(void)arg;
	weft_dgram_close(dgram);
	note(MARK('c'));
}

static int
post_close(void *arg)
{
	OK(weft_yield());
	OK(weft_loop_post(arg, close_in_callback, NULL));
	return 0;
}

TEST(close_ends_a_waiting_receive)
{
	weft_loop *loop = make();
	int want = WEFT_ESHUTDOWN;

	open_it();
	go_on(loop, recv_until, &want);
	go_on(loop, close_it, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ec");
	open_it();
	go_on(loop, recv_until, &want);
	go_on(loop, close_it_cancelled, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ecec");
	open_it();
	go_on(loop, recv_until, &want);
	go_on(loop, post_close, loop);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ececce");
	OK(weft_loop_free(loop));
}

TEST(descriptor_number_of_a_closed_socket_can_be_reused)
{
	weft_loop *loop = make();
	int want = WEFT_EINTR, fd;
	weft_threadlet id;
	struct probe p = { .name = 'p' };
	struct pair pair;

	open_it();
	fd = weft_dgram_fd(dgram);
	id = go_on(loop, recv_until, &want);
	go_on(loop, interrupt_it, &id);
	OK(weft_loop_run(loop));
	weft_dgram_close(dgram);
	pair = make_pair();
	CHECK_EQ(pair.fd, fd);
	start(loop, &p, POLL_READ, pair.fd);
	turns(loop, 2);
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_READABLE);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(borrowed_descriptor_stays_open_when_a_close_ends_a_receive)
{
	weft_dgram_opts opts = { .borrow = true };
	weft_loop *loop = make();
	int want = WEFT_ESHUTDOWN, fds[2];
	char text[16];

	OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	(void)snprintf(text, sizeof(text), "fd:%d", fds[0]);
	OK(weft_dgram_open(text, &opts, &dgram));
	go_on(loop, recv_until, &want);
	go_on(loop, close_it, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ec");
	put(fds[1], "x");
	take(fds[0]);
	OK(close(fds[0]));
	OK(close(fds[1]));
	OK(weft_loop_free(loop));
}

static int
recv_then_close(void *arg)
{
	struct got got;

	(void)arg;
	CHECK_EQ(recv_text(dgram, &got, WEFT_NEVER), WEFT_ECANCELED);
	weft_dgram_close(dgram);
	note(MARK('c'));
	return 0;
}

TEST(loop_stop_ends_a_waiting_receive)
{
	weft_loop *loop = make();

	open_it();
	go_on(loop, recv_then_close, NULL);
	turn(loop);
	stop_idle(loop);
	CHECK_STR(trace, "c");
}

TEST(socket_may_be_closed_after_its_loop_has_stopped)
{
	weft_loop *loop = make();
	int want = WEFT_ECANCELED;

	open_it();
	go_on(loop, recv_until, &want);
	turn(loop);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "e");
	CHECK_EQ(weft_dgram_fd(dgram), WEFT_ESHUTDOWN);
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}
