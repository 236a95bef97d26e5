/* trace.c - a recording: events, as the threads that cause them write them.
 *
 * All memory is allocated when the recording begins, in chunks.  A thread takes a chunk when
 * it has something to write, and another when that one is full: so threads contend only there.
 * The details of a span are known at its end, so it is written as one event then.  Spans of a
 * track are therefore in the order of their ends, inner ones first.
 *
 *   1. A writer counts itself in (W) and then reads `now`, the active recording (R).  The
 *      thread that ends a recording clears `now` (E) and then checks for writers (L).  All
 *      four are sequentially consistent: either the writer sees that the recording has ended
 *      and writes nothing, or the end waits for the writer.
 *   2. A writer counts itself out (O, release), which the end acquires (L): so a reader sees
 *      all events.  After that no thread uses a pointer into the memory: a thread's chunk is
 *      valid only with the ID of the recording, which the thread compares after W, and IDs are
 *      not reused.
 *   3. A chunk belongs to one thread, so its events need no further ordering.
 *   4. Marks contain the recording's ID, too.  A mark of an earlier recording counts as none.
 *   5. Writers count themselves in one of several words, chosen by thread, so that threads
 *      rarely share one.  The words are static, because a writer that counts itself in does
 *      not know yet whether there is a recording.
 *   6. The lock serializes begin and end.
 */
#include "base/text.h"
#include "loop/core/loop.h"

#define BYTES_DEFAULT ((size_t)64 << 20)
#define STRIPES       16u

static struct {
	struct weft__lock lock;
	uint32_t last_id;
	weft__aptr now; /* the active recording, or 0 */
	struct {
		weft__a32 inside; /* number of writers */
		char pad[60];
	} stripes[STRIPES];
} tracer;

/* --- writing ------------------------------------------------------------- */

static weft__a32 *
stripe(const struct weft__thread *self)
{
	uintptr_t number = (uintptr_t)self >> 6;

	return &tracer.stripes[(number ^ number >> 8) % STRIPES].inside;
}

/* The active recording, which does not end before loop_trace_leave(); or NULL. */
static weft_trace *
loop_trace_enter(const struct weft__thread *self)
{
	uintptr_t now;

	(void)weft__add(stripe(self), 1, WEFT__SEQ_CST); /* W */
	now = weft__load(&tracer.now, WEFT__SEQ_CST);    /* R */
	if (now == 0)
		(void)weft__add(stripe(self), UINT32_MAX, WEFT__RELEASE); /* O */
	return (weft_trace *)now;
}

static void
loop_trace_leave(const struct weft__thread *self)
{
	uint32_t before = weft__add(stripe(self), UINT32_MAX, WEFT__RELEASE); /* O */

	weft__assert(before > 0); /* invariant 1 */
}

static struct weft__trace_chunk *
take_chunk(weft_trace *trace)
{
	struct weft__trace_chunk *chunk;
	uint32_t number = weft__load(&trace->chunk_count, WEFT__RELAXED);

	if (number < trace->chunk_max)
		number = weft__add(&trace->chunk_count, 1, WEFT__RELAXED);
	if (number >= trace->chunk_max)
		return NULL;
	chunk = &trace->chunks[number];
	chunk->count = 0;
	return chunk;
}

/* Room for `events` adjacent events.  NULL if there is none; then they count as dropped. */
static struct weft__trace_event *
loop_trace_reserve(weft_trace *trace, struct weft__thread *self, unsigned events)
{
	struct weft__trace_chunk *chunk = self->trace_id == trace->id ? self->trace_chunk : NULL;

	if (!chunk || chunk->count + events > WEFT__TRACE_EVENTS) {
		chunk = take_chunk(trace);
		if (!chunk) {
			(void)weft__add(&trace->dropped, 1, WEFT__RELAXED);
			return NULL;
		}
		self->trace_id = trace->id;
		self->trace_chunk = chunk;
	}
	chunk->count += events;
	weft__assert(chunk->count <= WEFT__TRACE_EVENTS); /* invariant 3 */
	return &chunk->events[chunk->count - events];
}

static void
loop_trace_put_text(struct weft__trace_event *slot, const char *text)
{
	struct weft__text out = weft__text_begin((char *)slot, WEFT__TRACE_TEXT);

	weft__text_add(&out, text);
}

bool
weft__trace_note(uint64_t mark, struct weft__trace_event event, const char *text)
{
	struct weft__thread *self = weft__thread_self();
	weft_trace *trace = mark ? loop_trace_enter(self) : NULL;
	struct weft__trace_event *slot = NULL;

	if (!trace)
		return false;
	event.track = (uint32_t)mark;
	if (mark >> 32 == trace->id && event.begin_ns >= trace->begin_ns)
		slot = loop_trace_reserve(trace, self, text ? 2 : 1);
	if (slot) {
		*slot = event;
		if (text)
			loop_trace_put_text(slot + 1, text);
	}
	loop_trace_leave(self);
	return slot != NULL;
}

void
weft__trace_did(int kind, uint64_t key, const void *what, uint64_t begin_ns)
{
	(void)weft__trace_note(weft__trace_here(),
	                       (struct weft__trace_event){
				       .begin_ns = begin_ns,
				       .end_ns = weft__sys->now(),
				       .key = key,
				       .what = what,
				       .kind = (uint16_t)kind,
			       },
	                       NULL);
}

/* --- tracks -------------------------------------------------------------- */

static uint32_t
track_of(weft_trace *trace, const struct weft__trace_name *name)
{
	uint32_t number = (uint32_t)name->number;

	if (name->kind == WEFT__TRACK_THREAD)
		number = weft__add(&trace->threads, 1, WEFT__RELAXED) + 1;
	if (name->kind == WEFT__TRACK_THREADLET)
		number = weft__add(&trace->threadlets, 1, WEFT__RELAXED) + 1;
	return name->kind | (number & WEFT__TRACK_MASK);
}

uint64_t
weft__trace_mark(uint64_t mark, const struct weft__trace_name *name)
{
	struct weft__thread *self = weft__thread_self();
	struct weft__trace_event *slot;
	weft_trace *trace;

	if (mark && mark >> 32 == weft__tracing())
		return mark;
	trace = loop_trace_enter(self);
	if (!trace)
		return 0;
	if (mark && mark >> 32 == trace->id) { /* weft__tracing() was out of date */
		loop_trace_leave(self);
		return mark;
	}
	slot = loop_trace_reserve(trace, self, 2);
	mark = 0;
	if (slot) {
		*slot = (struct weft__trace_event){
			.key = name->number,
			.what = name->code,
			.track = track_of(trace, name),
			.kind = WEFT__TRACE_NAME,
		};
		loop_trace_put_text(slot + 1, name->text);
		mark = (uint64_t)trace->id << 32 | slot->track;
	}
	loop_trace_leave(self);
	return mark;
}

static uint64_t
mark_of_loop(weft_loop *loop)
{
	return loop->trace.mark = weft__trace_mark(
		       loop->trace.mark, &(struct weft__trace_name){ .kind = WEFT__TRACK_LOOP,
	                                                             .number = loop->inbox.id,
	                                                             .text = loop->name });
}

static uint64_t
mark_of_thread(struct weft__thread *self)
{
	return self->trace_mark = weft__trace_mark(
		       self->trace_mark,
		       &(struct weft__trace_name){ .kind = WEFT__TRACK_THREAD,
	                                           .text = self->name ? self->name : "thread" });
}

uint64_t
weft__trace_here(void)
{
	struct weft__thread *self = weft__thread_self();

	if (self->threadlet)
		return weft__loop_sched(self->loop)->trace_mark(self->threadlet);
	return self->loop ? mark_of_loop(self->loop) : mark_of_thread(self);
}

/* --- loops --------------------------------------------------------------- */

static void
note_since(weft_loop *loop, int kind, uint64_t begin_ns, uint64_t key)
{
	(void)weft__trace_note(mark_of_loop(loop),
	                       (struct weft__trace_event){ .begin_ns = begin_ns,
	                                                   .end_ns = loop->trace.at_ns,
	                                                   .key = key,
	                                                   .kind = (uint16_t)kind },
	                       NULL);
}

/* End the part of an iteration that is before its wait, or after it. */
static void
end_part(weft_loop *loop, uint64_t turn)
{
	if (loop->trace.did)
		note_since(loop, WEFT__TRACE_TURN, loop->trace.begin_ns, turn);
	loop->trace.did = false;
}

static void
begin_part(weft_loop *loop)
{
	loop->trace.at_ns = loop->trace.begin_ns = weft__sys->now();
}

void
weft__trace_turn(weft_loop *loop)
{
	if (loop->traced)
		end_part(loop, weft__count_get(&loop->counts.turns) - 1);
	loop->traced = weft__tracing() != 0 && mark_of_loop(loop);
	if (loop->traced)
		begin_part(loop);
}

void
weft__trace_phase(weft_loop *loop, int phase, uint32_t calls)
{
	uint64_t begin_ns = loop->trace.at_ns;

	loop->trace.at_ns = weft__sys->now();
	loop->trace.did = true;
	(void)weft__trace_note(mark_of_loop(loop),
	                       (struct weft__trace_event){ .begin_ns = begin_ns,
	                                                   .end_ns = loop->trace.at_ns,
	                                                   .key = calls,
	                                                   .kind = WEFT__TRACE_PHASE,
	                                                   .number = (uint16_t)phase },
	                       NULL);
}

void
weft__trace_sleep(weft_loop *loop)
{
	end_part(loop, weft__count_get(&loop->counts.turns));
	begin_part(loop);
}

void
weft__trace_woke(weft_loop *loop)
{
	uint64_t begin_ns = loop->trace.begin_ns;

	begin_part(loop);
	note_since(loop, WEFT__TRACE_WAIT, begin_ns, 0);
}

void
weft__trace_rest(weft_loop *loop)
{
	end_part(loop, weft__count_get(&loop->counts.turns));
	loop->traced = 0;
}

/* --- recordings ---------------------------------------------------------- */

static weft_trace *
loop_trace_make(size_t bytes_max)
{
	/* A sixth is left for the index that trace_index.c builds. */
	size_t count = bytes_max / 6 * 5 / WEFT__TRACE_CHUNK;
	weft_trace *trace = weft__alloc_zero(sizeof(*trace));

	count = count < 1 ? 1 : count > UINT32_MAX / 2 ? UINT32_MAX / 2 : count;
	if (trace)
		trace->chunks = weft__sys->alloc(count * WEFT__TRACE_CHUNK);
	if (!trace || !trace->chunks) {
		weft__sys->release(trace);
		return NULL;
	}
	trace->chunk_max = (uint32_t)count;
	return trace;
}

int
weft_trace_begin(const weft_trace_opts *opts, weft_trace **out)
{
	size_t bytes_max = opts && opts->bytes_max ? opts->bytes_max : BYTES_DEFAULT;
	weft_trace *trace = NULL;
	bool busy;

	WEFT_STATIC_ASSERT(sizeof(struct weft__trace_chunk) <= WEFT__TRACE_CHUNK,
	                   "a chunk has its size");
	if (!out)
		return weft__misuse(WEFT_EINVAL, "weft_trace_begin: out is NULL");
	if (weft__watch_forks() < 0)
		return weft__fail(WEFT_ENOMEM, "weft_trace_begin: out of memory");
	weft__lock_take(&tracer.lock);
	busy = weft__load(&tracer.now, WEFT__RELAXED) != 0;
	if (!busy)
		trace = loop_trace_make(bytes_max);
	if (trace) {
		if (++tracer.last_id == 0)
			tracer.last_id = 1;
		trace->id = tracer.last_id;
		trace->forks = weft__load(&weft__program.forks, WEFT__RELAXED);
		trace->begin_ns = weft__sys->now();
		weft__store(&tracer.now, (uintptr_t)trace, WEFT__SEQ_CST);
		weft__count_set(&weft__program.tracing, trace->id);
		*out = trace;
	}
	weft__lock_give(&tracer.lock);
	if (busy)
		return weft__fail(WEFT_EBUSY, "weft_trace_begin: another recording is active");
	return trace ? 0 : weft__fail(WEFT_ENOMEM, "weft_trace_begin: out of memory");
}

/* Invariant 1. */
static void
wait_for_writers(void)
{
	for (unsigned i = 0; i < STRIPES; i++)
		while (weft__load(&tracer.stripes[i].inside, WEFT__SEQ_CST) > 0) /* L */
			weft__sys->yield();
}

static bool
is_on(const weft_trace *trace)
{
	return weft__load(&tracer.now, WEFT__RELAXED) == (uintptr_t)trace;
}

int
weft_trace_end(weft_trace *trace)
{
	if (!trace)
		return weft__misuse(WEFT_EINVAL, "weft_trace_end: trace is NULL");
	weft__lock_take(&tracer.lock);
	if (is_on(trace)) {
		weft__count_set(&weft__program.tracing, 0);
		weft__store(&tracer.now, 0, WEFT__SEQ_CST); /* E */
		wait_for_writers();
	}
	weft__lock_give(&tracer.lock);
	return 0;
}

/* The thread that ends the recording holds the lock until all writers are done. */
bool
weft__trace_is_on(const weft_trace *trace)
{
	bool on;

	weft__lock_take(&tracer.lock);
	on = is_on(trace);
	weft__lock_give(&tracer.lock);
	return on;
}

void
weft_trace_free(weft_trace *trace)
{
	if (!trace)
		return;
	(void)weft_trace_end(trace);
	weft__trace_drop_text(trace);
	weft__sys->release(trace->chunks);
	weft__sys->release(trace);
}

void
weft__trace_forked(void)
{
	tracer.lock = (struct weft__lock){ 0 };
	weft__count_set(&weft__program.tracing, 0);
	weft__store(&tracer.now, 0, WEFT__RELAXED);
	for (unsigned i = 0; i < STRIPES; i++)
		weft__store(&tracer.stripes[i].inside, 0, WEFT__RELAXED);
}
