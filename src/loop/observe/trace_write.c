/* trace_write.c - a recording as a Chrome trace, piece by piece.
 *
 * The output is a JSON array of events: names of tracks ("M"), spans ("X"), instants ("i"),
 * and arrows, which are two events each ("s", "f").  They are written as they were recorded:
 * so events that one thread recorded on a track are in the order of their ends.
 *
 *   1. Both events of an arrow are written together, when its target is met: so each arrow has
 *      both ends.
 *   2. Each end of an arrow is in a span of its track.
 *   3. Memory: one piece, and one word for each post and threadlet.
 */
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"
#include "loop/core/loop.h"
#include "loop/observe/trace_text.h"

#define ROOM_MIN    ((size_t)4096) /* enough for the text of any event */

#define EVENT_BEGIN ",\n{\"ph\":\""

/* --- pieces of text ------------------------------------------------------ */

static void
add_bytes(struct weft__trace_text *out, const char *bytes, size_t size)
{
	weft__assert(out->size + size <= WEFT__TRACE_PIECE);
	__builtin_memcpy(out->piece + out->size, bytes, size);
	out->size += size;
}

static void
trace_write_add(struct weft__trace_text *out, const char *text)
{
	add_bytes(out, text, __builtin_strlen(text));
}

static void
add_number(struct weft__trace_text *out, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	add_bytes(out, digits + at, sizeof(digits) - at);
}

/* Microseconds with three decimals. */
static void
add_us(struct weft__trace_text *out, uint64_t ns)
{
	char places[4] = { '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
		           (char)('0' + ns % 10) };

	add_number(out, ns / 1000);
	add_bytes(out, places, sizeof(places));
}

/* Add text escaped for a JSON string. */
static void
add_escaped(struct weft__trace_text *out, const char *text)
{
	char character[6];

	while (*text)
		add_bytes(out, character, weft__json_character(&text, character));
}

/* Add the symbol of a code address, as in dumps. */
static void
add_symbol(struct weft__trace_text *out, const void *code)
{
	size_t at = (uintptr_t)code / 16 % WEFT__TRACE_SYMBOLS;
	char *text = out->symbols[at].text;

	if (!text[0] || out->symbols[at].code != code) {
		struct weft__text symbol = weft__text_begin(text, WEFT__TRACE_SYMBOL);

		weft__os_add_symbol(&symbol, code);
		out->symbols[at].code = code;
	}
	add_escaped(out, text);
}

/* --- events -------------------------------------------------------------- */

/* Begin an event: its kind, track and time. */
static void
trace_write_begin(const weft_trace *trace, const char *kind, uint32_t track, uint64_t at_ns)
{
	struct weft__trace_text *out = trace->text;

	trace_write_add(out, EVENT_BEGIN);
	trace_write_add(out, kind);
	trace_write_add(out, "\",\"pid\":");
	add_number(out, trace->text->pid);
	trace_write_add(out, ",\"tid\":");
	add_number(out, track);
	trace_write_add(out, ",\"ts\":");
	add_us(out, at_ns - trace->begin_ns);
}

/* Begin a span, up to its name, which the caller adds. */
static void
begin_span(const weft_trace *trace, const struct weft__trace_event *event, const char *category)
{
	struct weft__trace_text *out = trace->text;

	trace_write_begin(trace, "X", event->track, event->begin_ns);
	trace_write_add(out, ",\"dur\":");
	add_us(out, event->end_ns - event->begin_ns);
	trace_write_add(out, ",\"cat\":\"");
	trace_write_add(out, category);
	trace_write_add(out, "\",\"name\":\"");
}

struct place {
	uint32_t track;
	uint64_t at_ns;
};

/* Invariants 1 and 2. */
static void
add_arrow(const weft_trace *trace, const char *name, struct place from, struct place to)
{
	struct weft__trace_text *out = trace->text;
	struct place ends[2] = { from, to };

	out->flows++;
	for (int i = 0; i < 2; i++) {
		trace_write_begin(trace, i == 0 ? "s" : "f", ends[i].track, ends[i].at_ns);
		trace_write_add(out, i == 0 ? ",\"id\":" : ",\"bp\":\"e\",\"id\":");
		add_number(out, out->flows);
		trace_write_add(out, ",\"cat\":\"flow\",\"name\":\"");
		trace_write_add(out, name);
		trace_write_add(out, "\"}");
	}
}

/* Add the call that a post has caused, and the arrow from the post. */
static void
add_call(const weft_trace *trace, const struct weft__trace_event *event, const char *category)
{
	struct weft__trace_text *out = trace->text;
	const struct weft__trace_event *post = weft__trace_find_post(out, event->key,
	                                                             event->begin_ns);

	begin_span(trace, event, category);
	add_symbol(out, event->what);
	trace_write_add(out, "\"}");
	if (post)
		add_arrow(trace, category, (struct place){ post->track, post->begin_ns },
		          (struct place){ event->track, event->begin_ns });
}

/* --- names --------------------------------------------------------------- */

static const char *
trace_write_text_of(const struct weft__trace_event *event)
{
	return (const char *)(event + 1);
}

static void
add_name(struct weft__trace_text *out, const struct weft__trace_event *name)
{
	if (trace_write_text_of(name)[0] || !name->what)
		add_escaped(out, trace_write_text_of(name));
	else
		add_symbol(out, name->what);
}

static void
name_track(const weft_trace *trace, const struct weft__trace_event *event)
{
	struct weft__trace_text *out = trace->text;
	bool named = trace_write_text_of(event)[0] || event->what;

	trace_write_begin(trace, "M", event->track, trace->begin_ns);
	trace_write_add(out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
	if (event->track & WEFT__TRACK_THREAD) {
		add_name(out, event);
		trace_write_add(out, " ");
		add_number(out, event->track & WEFT__TRACK_MASK);
	} else {
		trace_write_add(out, event->track & WEFT__TRACK_THREADLET ? "threadlet " : "loop ");
		add_number(out, event->key);
		trace_write_add(out, named ? " (" : "");
		add_name(out, event);
		trace_write_add(out, named ? ")" : "");
	}
	trace_write_add(out, "\"}}");
}

/* --- kinds --------------------------------------------------------------- */

static void
add_loop_span(const weft_trace *trace, const struct weft__trace_event *event)
{
	static const char *const phases[] = {
		[WEFT_PHASE_TIMERS] = "timers",
		[WEFT_PHASE_INBOX] = "inbox",
		[WEFT_PHASE_THREADLETS] = "threadlets",
		[WEFT_PHASE_WAIT] = "wait",
		[WEFT_PHASE_DONE] = "done",
		[WEFT_PHASE_IMMEDIATES] = "immediates",
		[WEFT_PHASE_CLOSING] = "closing",
		[WEFT_PHASE_MICROTASKS] = "microtasks",
	};
	struct weft__trace_text *out = trace->text;

	begin_span(trace, event, "loop");
	if (event->kind == WEFT__TRACE_PHASE) {
		trace_write_add(out, phases[event->number]);
		trace_write_add(out, "\",\"args\":{\"calls\":");
		add_number(out, event->key);
		trace_write_add(out, "}}");
	} else if (event->kind == WEFT__TRACE_TURN) {
		trace_write_add(out, "turn\",\"args\":{\"number\":");
		add_number(out, event->key);
		trace_write_add(out, "}}");
	} else {
		trace_write_add(out, "wait\"}");
	}
}

static void
add_threadlet(const weft_trace *trace, const struct weft__trace_event *event)
{
	const struct weft__trace_event *name = weft__trace_name_of(trace, event->key);
	struct weft__trace_text *out = trace->text;

	begin_span(trace, event, "threadlet");
	if (event->kind == WEFT__TRACE_WAITED) {
		trace_write_add(out, event->what);
		trace_write_add(out, "\"}");
		return;
	}
	if (name)
		add_name(out, name);
	trace_write_add(out, "\",\"args\":{\"threadlet\":");
	add_number(out, name ? name->key : 0);
	trace_write_add(out, ",\"until\":\"");
	trace_write_add(out, event->what);
	trace_write_add(out, "\"}}");
}

static void
add_moment(const weft_trace *trace, const struct weft__trace_event *event)
{
	trace_write_begin(trace, "i", event->track, event->begin_ns);
	trace_write_add(trace->text, ",\"s\":\"t\",\"cat\":\"threadlet\",\"name\":\"");
	trace_write_add(trace->text, event->kind == WEFT__TRACE_BEGAN ? "begin\"}" : "end\"}");
}

static void
add_step(const weft_trace *trace, const struct weft__trace_event *event)
{
	begin_span(trace, event, "dag");
	add_escaped(trace->text, trace_write_text_of(event));
	trace_write_add(trace->text, event->number ? "\",\"args\":{\"failed\":1}}" : "\"}");
}

static void
add_event(const weft_trace *trace, const struct weft__trace_event *event)
{
	switch (event->kind) {
	case WEFT__TRACE_NAME:
		name_track(trace, event);
		break;
	case WEFT__TRACE_POST:
	case WEFT__TRACE_QUEUED:
		begin_span(trace, event, "post");
		trace_write_add(trace->text, event->kind == WEFT__TRACE_POST ? "post " : "queue ");
		add_symbol(trace->text, event->what);
		trace_write_add(trace->text, "\"}");
		break;
	case WEFT__TRACE_RAN:
		add_call(trace, event, "post");
		break;
	case WEFT__TRACE_WORK:
		add_call(trace, event, "work");
		break;
	case WEFT__TRACE_RUN:
	case WEFT__TRACE_WAITED:
		add_threadlet(trace, event);
		break;
	case WEFT__TRACE_BEGAN:
	case WEFT__TRACE_ENDED:
		add_moment(trace, event);
		break;
	case WEFT__TRACE_STEP:
		add_step(trace, event);
		break;
	case WEFT__TRACE_EDGE:
		add_arrow(trace, "edge", (struct place){ (uint32_t)event->key, event->begin_ns },
		          (struct place){ event->track, event->end_ns });
		break;
	default:
		add_loop_span(trace, event);
	}
}

/* --- the call ------------------------------------------------------------ */

static void
add_metadata(const weft_trace *trace, const char *name)
{
	struct weft__trace_text *out = trace->text;

	trace_write_add(out, "{\"ph\":\"M\",\"pid\":");
	add_number(out, trace->text->pid);
	trace_write_add(out, ",\"tid\":0,\"ts\":0,\"name\":\"");
	trace_write_add(out, name);
	trace_write_add(out, "\",\"args\":{\"");
}

static void
add_head(const weft_trace *trace)
{
	char buf[64];
	struct weft__text name = weft__text_begin(buf, sizeof(buf));

	weft__os_add_program(&name);
	trace_write_add(trace->text, "[\n");
	add_metadata(trace, "process_name");
	trace_write_add(trace->text, "name\":\"");
	add_escaped(trace->text, buf);
	trace_write_add(trace->text, "\"}}");
	trace->text->begun = true;
}

static void
add_tail(const weft_trace *trace)
{
	trace_write_add(trace->text, ",\n");
	add_metadata(trace, "dropped_events");
	trace_write_add(trace->text, "count\":");
	add_number(trace->text, weft__load(&trace->dropped, WEFT__RELAXED));
	trace_write_add(trace->text, "}}\n]\n");
	trace->text->ended = true;
}

/* Write as much as there is room for. */
static void
trace_write_fill(const weft_trace *trace)
{
	struct weft__trace_text *text = trace->text;

	while (text->size + ROOM_MIN <= WEFT__TRACE_PIECE && !text->ended) {
		const struct weft__trace_chunk *chunk = &trace->chunks[text->chunk];

		if (!text->begun) {
			add_head(trace);
		} else if (text->chunk == weft__trace_chunks(trace)) {
			add_tail(trace);
		} else if (text->event >= chunk->count) {
			text->chunk++;
			text->event = 0;
		} else {
			add_event(trace, &chunk->events[text->event]);
			text->event += weft__trace_slots(&chunk->events[text->event]);
		}
	}
}

int
weft_trace_read(weft_trace *trace, const char **out, size_t *size)
{
	int rc = 0;

	if (!trace || !out || !size)
		return weft__misuse(WEFT_EINVAL, "weft_trace_read: trace, out or size is NULL");
	if (trace->forks != weft__load(&weft__program.forks, WEFT__RELAXED))
		return weft__fail(WEFT_EWRONGLOOP,
		                  "weft_trace_read: the recording was made by a parent process");
	if (weft__trace_is_on(trace))
		return weft__fail(
			WEFT_EBUSY,
			"weft_trace_read: the recording is active; call weft_trace_end() first");
	if (!trace->text)
		rc = weft__trace_prepare(trace);
	if (rc < 0)
		return rc;
	trace->text->size = 0;
	trace_write_fill(trace);
	if (trace->text->size == 0)
		return 0;
	*out = trace->text->piece;
	*size = trace->text->size;
	return 1;
}
