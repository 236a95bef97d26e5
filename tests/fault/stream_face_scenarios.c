/* stream_face_scenarios.c - streams and listeners with callbacks.
 *
 * Whatever fails: a stream that was started and closed gets on_close once, and no callback
 * after that; the end of the data and the end of a listener are reported at most once, and
 * exactly once if nothing fails; every op ends.
 */
#include <string.h>
#include "fault.h"
#include "scenarios.h"
#include "stream_pair.h"

enum { PIECE = 3000, PIECES = 3, ALL = PIECE * PIECES };

struct face {
	weft_stream *stream; /* NULL: closed */
	size_t got;
	int end_left, close_left;
	int drains;
};

struct faces {
	struct world world;
	struct face here, there; /* the ends of a pair; `there` is also the client of a
	                          * connection */
	weft_listener *listener;
	int accept_left;
	struct job jobs[PIECES]; /* the writes */
	char bytes[ALL];
};

static struct faces faces;

static void
drive_faces(const int *left)
{
	int times = fault_hits() > 0 ? 2 : 2 * STEPS_MIN;

	for (; times > 0 && *left > 0; times--)
		drive(faces.world.loop, left);
}

static void
close_face(struct face *face)
{
	weft_stream *stream = face->stream;

	face->stream = NULL;
	weft_stream_close(stream);
}

static void
on_close(void *arg)
{
	struct face *face = arg;

	EXPECT(face->close_left == 1 && !face->stream);
	face->close_left = face->end_left = 0;
	weft_loop_break(faces.world.loop); /* nothing else is waited for */
}

static void
on_drain(weft_stream *stream, void *arg)
{
	struct face *face = arg;

	EXPECT(stream == face->stream);
	face->drains++;
}

/* Consumes a part at once, and the rest when it is presented again. */
static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct face *face = arg;
	size_t part = size > 100 ? (size_t)size / 2 + 50 : (size_t)size;

	EXPECT(stream == face->stream && face->end_left == 1);
	if (size <= 0) {
		EXPECT(size == 0 || fault_hits() > 0);
		face->end_left = 0;
		close_face(face);
		return;
	}
	EXPECT(face->got + part <= ALL);
	if (face->got + part <= ALL)
		EXPECT(memcmp(data, faces.bytes + face->got, part) == 0);
	face->got += part;
	EXPECT(weft_stream_skip(stream, part) == 0);
}

static const weft_stream_events events = { .on_data = on_data,
	                                   .on_drain = on_drain,
	                                   .on_close = on_close };

static bool
begin_face(struct face *face, weft_stream *stream)
{
	*face = (struct face){ .stream = stream };
	if (!went_well(weft_stream_start(stream, faces.world.loop, &events, face), 0)) {
		face->stream = NULL;
		weft_stream_close(stream);
		return false;
	}
	face->end_left = face->close_left = 1;
	return true;
}

/* The stream may be closed already. */
static void
end_face(struct face *face, bool rudely)
{
	weft_stream *stream = face->stream;

	face->stream = NULL;
	if (stream && rudely)
		weft_stream_reset(stream);
	else
		weft_stream_close(stream);
	drive_faces(&face->close_left);
	EXPECT(face->close_left == 0);
}

/* --- a pair --------------------------------------------------------------- */

static bool
send_pieces(const weft_span *spans)
{
	struct job *jobs = faces.jobs;
	bool high = false, well = true;
	int rc;

	for (int i = 0; i < PIECES; i++)
		init(&faces.world, &jobs[i]);
	for (int i = 0; i < PIECES && well; i++) {
		rc = weft_stream_write_op(faces.here.stream, &spans[i], 1, &jobs[i].op, WEFT_NEVER);
		high |= rc == 1;
		begin(&jobs[i], rc > 0 ? 0 : rc);
		well = went_well(jobs[i].result, 0);
	}
	EXPECT(high || fault_hits() > 0);
	return well;
}

/* Wait for the writes, if all were accepted, and for both ends to close. */
static void
await_pieces(bool well)
{
	struct job *jobs = faces.jobs;

	for (int i = 0; i < PIECES && well; i++)
		well = went_well(await(&faces.world, &jobs[i]), PIECE);
	well = well && went_well(faces.here.stream != NULL, true) /* an error may have closed it */
	       && went_well(weft_stream_shutdown(faces.here.stream, WEFT_NOWAIT), 0);
	if (well && fault_hits() == 0)
		drive_faces(&faces.there.close_left);
	EXPECT(fault_hits() > 0 || (faces.there.got == ALL && faces.here.drains == 1));
	end_face(&faces.there, true);
}

static void
play_pair(void)
{
	weft_stream *a, *b;
	weft_span spans[PIECES];
	bool well;

	if (!went_well(open_stream_pair(&a, &b), 0))
		return;
	for (int i = 0; i < PIECES; i++)
		spans[i] = (weft_span){ faces.bytes + i * PIECE, PIECE };
	if (!begin_face(&faces.here, a)) {
		weft_stream_close(b);
		return;
	}
	(void)went_well(weft_stream_set(a, "sndbuf", 2000), 0);
	(void)went_well(weft_stream_set(a, "low_water", 100), 0);
	(void)went_well(weft_stream_set(a, "high_water", 500), 0);
	well = send_pieces(spans);
	if (begin_face(&faces.there, b))
		await_pieces(well);
	end_face(&faces.here, true);
	for (int i = 0; i < PIECES; i++)
		(void)await(&faces.world, &faces.jobs[i]);
}

/* --- a connection --------------------------------------------------------- */

static void
on_peer(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	weft_span word = { faces.bytes, 50 };

	(void)arg;
	EXPECT(faces.accept_left == 1);
	if (!peer) {
		EXPECT(error == WEFT_ESHUTDOWN || fault_hits() > 0);
		faces.accept_left = 0;
		weft_loop_break(faces.world.loop);
		if (faces.listener) {
			faces.listener = NULL;
			weft_listener_close(listener);
		}
		return;
	}
	(void)went_well(weft_stream_write_some(peer, &word, 1), 50);
	weft_stream_close(peer);
}

static void
connect_there(const char *address)
{
	weft_stream *stream = NULL;
	struct job job;

	init(&faces.world, &job);
	begin(&job,
	      weft_stream_connect_op(address, NULL, &stream, &job.op, weft_after(50 * WAIT_NS)));
	if (went_well(await(&faces.world, &job), 0) && begin_face(&faces.there, stream)) {
		drive_faces(&faces.there.close_left);
		EXPECT(faces.there.got == 50 || fault_hits() > 0);
		end_face(&faces.there, false);
	}
}

static void
play_connection(void)
{
	char address[WEFT_ADDR_TEXT_MAX];
	weft_listener *listener;
	weft_addr addr;

	if (!went_well(weft_listener_open("tcp://127.0.0.1:0", NULL, &faces.listener), 0))
		return;
	EXPECT(weft_listener_local(faces.listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, address, sizeof(address)) > 0);
	if (went_well(weft_listener_start(faces.listener, faces.world.loop, on_peer, NULL), 0)) {
		faces.accept_left = 1;
		connect_there(address);
	}
	listener = faces.listener;
	faces.listener = NULL;
	weft_listener_close(listener);
	drive_faces(&faces.accept_left);
	EXPECT(faces.accept_left == 0);
}

void
run_stream_events(const char *backend)
{
	faces = (struct faces){ .accept_left = 0 };
	for (int i = 0; i < ALL; i++)
		faces.bytes[i] = (char)(i * 7 % 251);
	if (!make_world(&faces.world, backend, 0))
		return;
	play_pair();
	play_connection();
	check_works(&faces.world);
	end_world(&faces.world);
}
