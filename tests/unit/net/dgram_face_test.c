/* dgram_face_test.c - datagrams delivered by callback. */
#include <errno.h>
#include "unit/net/letters.h"

static struct reader {
	weft_dgram *dgram;
	weft_addr at;
	int calls, messages, errors, ends;
	int error; /* the last error */
	char last[64];
	void (*act)(struct reader *reader); /* called at the end of each callback; or NULL */
} reader;

static void
on_messages(weft_dgram *dgram, const weft_message *messages, int count, void *arg)
{
	struct reader *r = arg;

	CHECK(dgram == r->dgram);
	CHECK_EQ(r->ends, 0); /* no call follows the end */
	r->calls++;
	r->messages += count > 0 ? count : 0;
	CHECK((count > 0) == (messages != NULL));
	if (count < 0) {
		r->errors += count != WEFT_ESHUTDOWN;
		r->ends += count == WEFT_ESHUTDOWN;
		r->error = count;
	}
	for (int i = 0; i < count; i++) {
		CHECK(messages[i].size < sizeof(r->last));
		memcpy(r->last, messages[i].data, messages[i].size);
		r->last[messages[i].size] = '\0';
	}
	if (r->act)
		r->act(r);
}

static weft_loop *
start_it(void)
{
	weft_loop *loop = make();

	reader = (struct reader){ .dgram = open_at(LOOPBACK) };
	reader.at = local_of(reader.dgram);
	OK(weft_dgram_start(reader.dgram, loop, on_messages, &reader));
	return loop;
}

static void
send_some(int count)
{
	weft_dgram *from = open_at(LOOPBACK);
	char text[16];

	for (int i = 0; i < count; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		CHECK_EQ(send_text(from, &reader.at, text), 1);
	}
	weft_dgram_close(from);
}

/* Closes the socket and checks the last callback. */
static void
end_it(weft_loop *loop)
{
	int calls_before = reader.calls;

	reader.act = NULL;
	weft_dgram_close(reader.dgram);
	CHECK_EQ(reader.calls, calls_before); /* no callback runs inside weft_dgram_close() */
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.calls, calls_before + 1);
	CHECK_EQ(reader.ends, 1);
	OK(weft_loop_free(loop));
}

TEST(messages_are_delivered_in_batches)
{
	weft_loop *loop = start_it();

	turns(loop, 2);
	CHECK_EQ(reader.calls, 0);
	send_some(5);
	while (reader.messages < 5)
		turn(loop);
	CHECK_EQ(reader.calls, 1);
	CHECK_STR(reader.last, "4");
	send_some(100);
	while (reader.messages < 105)
		turn(loop);
	CHECK(reader.calls >= 4);
	CHECK_STR(reader.last, "99");
	turns(loop, 2);
	CHECK_EQ(reader.messages, 105);
	end_it(loop);
}

TEST(stopped_socket_delivers_no_messages_until_it_is_started)
{
	weft_loop *loop = start_it();
	struct got got;

	OK(weft_dgram_stop(reader.dgram));
	send_some(3);
	turns(loop, 3);
	CHECK_EQ(reader.calls, 0);
	OK(weft_loop_run(loop)); /* nothing keeps the loop alive */
	CHECK_EQ(recv_text(reader.dgram, &got, WEFT_NOWAIT), 1);
	CHECK_STR(got.text, "0");
	OK(weft_dgram_start(reader.dgram, NULL, on_messages, &reader));
	CHECK_EQ(recv_text(reader.dgram, &got, WEFT_NOWAIT), WEFT_EBUSY);
	while (reader.messages < 2)
		turn(loop);
	CHECK_STR(reader.last, "2");
	OK(weft_dgram_stop(reader.dgram));
	OK(weft_dgram_stop(reader.dgram));
	end_it(loop); /* the end is reported although the socket is stopped */
}

static void
stop_then_start(struct reader *r)
{
	OK(weft_dgram_stop(r->dgram));
	OK(weft_dgram_start(r->dgram, NULL, on_messages, r));
}

TEST(callback_may_stop_and_start_its_socket)
{
	weft_loop *loop = start_it();

	reader.act = stop_then_start;
	send_some(2);
	while (reader.messages < 2)
		turn(loop);
	send_some(2);
	while (reader.messages < 4)
		turn(loop);
	end_it(loop);
}

static void
close_inside(struct reader *r)
{
	r->act = NULL;
	weft_dgram_close(r->dgram);
}

TEST(callback_may_close_its_socket)
{
	weft_loop *loop = start_it();

	reader.act = close_inside;
	send_some(2);
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.calls, 2);
	CHECK_EQ(reader.messages, 2);
	CHECK_EQ(reader.ends, 1);
	OK(weft_loop_free(loop));
}

static int
close_by_threadlet(void *arg)
{
	(void)arg;
	weft_dgram_close(reader.dgram);
	CHECK_EQ(reader.ends, 1); /* reported before the close returns */
	return 0;
}

TEST(threadlet_may_close_a_socket_that_has_a_callback)
{
	weft_loop *loop = start_it();

	go_on(loop, close_by_threadlet, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.calls, 1);
	OK(weft_loop_free(loop));
}

static void
check_told_of_stop(weft_loop *loop)
{
	weft_loop_shutdown(loop);
	if (weft_loop_state(loop) != WEFT_STOPPED)
		OK(weft_loop_run(loop));
	CHECK_EQ(reader.calls, 1);
	CHECK_EQ(reader.ends, 1);
}

TEST(callback_is_called_when_its_loop_stops)
{
	weft_loop *loop = start_it();

	check_told_of_stop(loop);
	CHECK_EQ(weft_dgram_start(reader.dgram, loop, on_messages, &reader), WEFT_ESHUTDOWN);
	weft_dgram_close(reader.dgram);
	OK(weft_loop_free(loop));
	loop = start_it();
	OK(weft_dgram_stop(reader.dgram));
	check_told_of_stop(loop);
	weft_dgram_close(reader.dgram);
	OK(weft_loop_free(loop));
	loop = start_it();
	reader.act = close_inside;
	check_told_of_stop(loop);
	OK(weft_loop_free(loop));
}

TEST(connection_refused_is_reported_and_does_not_end_delivery)
{
	weft_addr none = nowhere();
	weft_loop *loop = make();

	reader = (struct reader){ .dgram = open_to(NULL, &none) };
	OK(weft_dgram_start(reader.dgram, loop, on_messages, &reader));
	CHECK_EQ(send_text(reader.dgram, NULL, "x"), 1);
	while (reader.calls == 0)
		turn(loop);
	CHECK_EQ(reader.error, WEFT_ECONNREFUSED);
	turns(loop, 3);
	CHECK_EQ(reader.errors, 1);
	end_it(loop);
}

static int
recv_at_the_same_time(void *arg)
{
	struct got got;

	(void)arg;
	CHECK_EQ(recv_text(reader.dgram, &got, WEFT_NEVER), WEFT_ESHUTDOWN);
	return 0;
}

static int
start_at_the_same_time(void *arg)
{
	(void)arg;
	OK(weft_yield());
	CHECK_EQ(weft_dgram_start(reader.dgram, NULL, on_messages, &reader), WEFT_EBUSY);
	weft_dgram_close(reader.dgram);
	return 0;
}

TEST(start_is_refused_while_a_threadlet_receives)
{
	weft_loop *loop = make();

	reader = (struct reader){ .dgram = open_at(LOOPBACK) };
	go_on(loop, recv_at_the_same_time, NULL);
	go_on(loop, start_at_the_same_time, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.calls, 0);
	OK(weft_loop_free(loop));
}

TEST(socket_cannot_be_started_on_another_loop)
{
	weft_loop *loop = start_it(), *other = make();

	CHECK_MISUSE(weft_dgram_start(reader.dgram, other, on_messages, &reader), WEFT_EWRONGLOOP);
	OK(weft_loop_free(other));
	end_it(loop);
}

/* Both directions on one socket: a send in the callback does not disturb the delivery. */
static int answers;

static void
answer_it(struct reader *r)
{
	if (r->messages < 50 && send_text(r->dgram, &r->at, "again") == 1)
		answers++;
}

TEST(receive_callback_may_send)
{
	weft_loop *loop = start_it();

	answers = 0;
	reader.act = answer_it;
	send_some(1);
	while (reader.messages < 50)
		turn(loop);
	CHECK(answers >= 49);
	end_it(loop);
}
