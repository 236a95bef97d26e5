/* listener_serve_test.c - options of weft_listener_serve(): threadlets of peers, and on_end. */
#include <string.h>
#include <weft/debug.h>
#include "threadlet/threadlet.h"
#include "unit/threadlet/sched.h"

#define STACK_BYTES ((size_t)128 << 10)

struct place {
	weft_listener *listener;
	char address[WEFT_ADDR_TEXT_MAX];
	weft_listener_serve_opts opts;
	weft_threadlet serving;
	weft_event over;  /* the peers may end */
	int ends, why[2]; /* calls of on_end */
	int peers;        /* peers that are served now */
	int waited;       /* what the wait of the last peer returned */
	int result;       /* of weft_listener_serve(); 1: none yet */
};

static void
open_place(struct place *place)
{
	weft_addr addr;

	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &place->listener));
	OK(weft_listener_local(place->listener, &addr));
	CHECK(weft_addr_format(&addr, place->address, sizeof(place->address)) > 0);
	place->result = 1;
}

static void
on_end(int why, void *arg)
{
	struct place *place = arg;

	CHECK(weft_self() == place->serving);
	CHECK(place->ends < 2);
	CHECK_EQ(place->peers, 1);
	place->why[place->ends++] = why;
}

/* Greets, and stays until the place is over. */
static int
stay(weft_stream *peer, void *arg)
{
	struct place *place = arg;

	place->peers++;
	CHECK_EQ(weft_stream_write(peer, "!", 1, WEFT_NEVER), 1);
	place->waited = weft_event_wait(&place->over, WEFT_NEVER);
	weft_stream_close(peer);
	place->peers--;
	return 0;
}

static int
serve(void *arg)
{
	struct place *place = arg;

	place->result = weft_listener_serve(place->listener, &place->opts, stay, place, WEFT_NEVER);
	CHECK_EQ(place->peers, 0);
	return 0;
}

static weft_stream *
begin(struct place *place)
{
	weft_stream *stream;
	char byte;

	open_place(place);
	place->serving = weft_go(serve, place);
	CHECK(place->serving > 0);
	OK(weft_stream_connect(place->address, NULL, &stream, WEFT_NEVER));
	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), 1);
	return stream;
}

/* --- on_end ------------------------------------------------------------------ */

static void
yield_often(void)
{
	for (int i = 0; i < 20; i++)
		OK(weft_yield());
}

/* The peer ends only now, and with it the service. */
static void
finish(struct place *place, weft_stream *stream)
{
	char byte;

	yield_often();
	CHECK_EQ(place->peers, 1);
	CHECK_EQ(place->result, 1);
	OK(weft_event_set(&place->over));
	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), 0);
	weft_stream_close(stream);
	yield_often();
	OK(place->waited);
}

static int
close_then_cancel(void *arg)
{
	struct place *place = arg;
	weft_stream *stream = begin(place);

	weft_listener_close(place->listener);
	yield_often();
	CHECK_EQ(place->ends, 1);
	CHECK_EQ(place->why[0], WEFT_ESHUTDOWN);
	OK(weft_interrupt(place->serving)); /* is ignored */
	yield_often();
	CHECK_EQ(place->ends, 1);
	OK(weft_cancel(place->serving));
	yield_often();
	CHECK_EQ(place->ends, 2);
	CHECK_EQ(place->why[1], WEFT_ECANCELED);
	finish(place, stream);
	CHECK_EQ(place->result, WEFT_ESHUTDOWN);
	return 0;
}

TEST(on_end_reports_the_end_of_accepting_and_a_later_cancellation)
{
	struct place place = { .opts = { .on_end = on_end } };

	run_threadlet(close_then_cancel, &place);
	CHECK_EQ(place.ends, 2);
}

static int
cancel_serving(void *arg)
{
	struct place *place = arg;
	weft_stream *stream = begin(place);

	OK(weft_cancel(place->serving));
	yield_often();
	CHECK_EQ(place->ends, 1);
	CHECK_EQ(place->why[0], WEFT_ECANCELED);
	finish(place, stream);
	CHECK_EQ(place->result, WEFT_ECANCELED);
	weft_listener_close(place->listener);
	return 0;
}

TEST(cancellation_of_a_service_with_on_end_spares_the_peers)
{
	struct place place = { .opts = { .on_end = on_end } };

	run_threadlet(cancel_serving, &place);
	CHECK_EQ(place.ends, 1);
}

/* --- threadlets of peers ------------------------------------------------------- */

static const weft_threadlet_info *
find_named(const weft_threadlet_info *infos, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(infos[i].name, name) == 0)
			return &infos[i];
	return NULL;
}

static int
list_peers(void *arg)
{
	struct place *place = arg;
	weft_stream *stream = begin(place);
	weft_threadlet_info infos[8];
	const weft_threadlet_info *peer;
	uint64_t cursor = 0;
	int count = weft__threadlet_list(weft_loop_current(), &cursor, infos, 8, WEFT_NEVER);

	peer = find_named(infos, count, place->opts.name ? place->opts.name : "peer");
	CHECK(peer != NULL);
	if (place->opts.stack_bytes)
		CHECK_EQ(peer->stack_bytes, place->opts.stack_bytes);
	OK(weft_event_set(&place->over));
	weft_stream_close(stream);
	weft_listener_close(place->listener);
	return 0;
}

TEST(threadlets_of_peers_have_the_given_name_and_stack_size)
{
	struct place named = { .opts = { .name = "client", .stack_bytes = STACK_BYTES } };
	struct place unnamed = { .ends = 0 };

	run_threadlet(list_peers, &named);
	CHECK_EQ(named.result, WEFT_ESHUTDOWN);
	run_threadlet(list_peers, &unnamed);
	CHECK_EQ(unnamed.result, WEFT_ESHUTDOWN);
}
