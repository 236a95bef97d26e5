/* trace_index.c - which events of a recording belong together.
 *
 * Posts are sorted by (key, time).  A run belongs to the last post with its key that began
 * before the run did: the thread that runs a post reads the clock before it releases the
 * post's memory, so the key is reused only after that.
 */
#include "base/os.h"
#include "loop/core/loop.h"
#include "loop/observe/trace_text.h"

uint32_t
weft__trace_chunks(const weft_trace *trace)
{
	uint32_t count = weft__load(&trace->chunk_count, WEFT__RELAXED);

	return count < trace->chunk_max ? count : trace->chunk_max;
}

uint32_t
weft__trace_slots(const struct weft__trace_event *event)
{
	return event->kind == WEFT__TRACE_NAME || event->kind == WEFT__TRACE_STEP ? 2 : 1;
}

static bool
is_post(const struct weft__trace_event *event)
{
	return event->kind == WEFT__TRACE_POST || event->kind == WEFT__TRACE_QUEUED;
}

/* Track numbers that have wrapped to 0 have no name. */
static void
note_name(const weft_trace *trace, const struct weft__trace_event *event)
{
	uint32_t number = event->track & WEFT__TRACK_MASK;

	if (trace->text->names && event->kind == WEFT__TRACE_NAME
	    && event->track & WEFT__TRACK_THREADLET && number > 0)
		trace->text->names[number - 1] = event;
}

/* Count the posts; once the arrays are allocated, fill them with posts and names. */
static void
scan_events(const weft_trace *trace)
{
	struct weft__trace_text *text = trace->text;

	text->post_count = 0;
	for (uint32_t c = 0; c < weft__trace_chunks(trace); c++) {
		const struct weft__trace_chunk *chunk = &trace->chunks[c];
		const struct weft__trace_event *event = chunk->events;

		for (; event < chunk->events + chunk->count; event += weft__trace_slots(event)) {
			if (is_post(event)) {
				if (text->posts)
					text->posts[text->post_count] = event;
				text->post_count++;
			}
			note_name(trace, event);
		}
	}
}

static bool
is_before(const struct weft__trace_event *a, const struct weft__trace_event *b)
{
	return a->key < b->key || (a->key == b->key && a->begin_ns < b->begin_ns);
}

/* Sift the entry at `at` of a heap down; the greatest is first. */
static void
sink(const struct weft__trace_event **heap, size_t at, size_t count)
{
	const struct weft__trace_event *entry = heap[at];
	size_t below;

	while ((below = 2 * at + 1) < count) {
		if (below + 1 < count && is_before(heap[below], heap[below + 1]))
			below++;
		if (!is_before(entry, heap[below]))
			break;
		heap[at] = heap[below];
		at = below;
	}
	heap[at] = entry;
}

static void
sort(const struct weft__trace_event **posts, size_t count)
{
	for (size_t i = count / 2; i > 0; i--)
		sink(posts, i - 1, count);
	while (count > 1) {
		const struct weft__trace_event *last = posts[--count];

		posts[count] = posts[0];
		posts[0] = last;
		sink(posts, 0, count);
	}
}

int
weft__trace_prepare(weft_trace *trace)
{
	struct weft__trace_text *text = weft__alloc_zero(sizeof(*text));
	size_t names = weft__load(&trace->threadlets, WEFT__RELAXED);

	if (!text)
		return weft__fail(WEFT_ENOMEM, "weft_trace_read: out of memory");
	trace->text = text;
	text->pid = weft__os_pid();
	scan_events(trace);
	text->posts = weft__alloc_zero((text->post_count + 1) * sizeof(*text->posts));
	text->names = weft__alloc_zero((names + 1) * sizeof(*text->names));
	if (!text->posts || !text->names) {
		weft__trace_drop_text(trace);
		return weft__fail(WEFT_ENOMEM, "weft_trace_read: out of memory");
	}
	scan_events(trace);
	sort(text->posts, text->post_count);
	return 0;
}

void
weft__trace_drop_text(weft_trace *trace)
{
	if (!trace->text)
		return;
	weft__sys->release(trace->text->posts);
	weft__sys->release(trace->text->names);
	weft__sys->release(trace->text);
	trace->text = NULL;
}

const struct weft__trace_event *
weft__trace_find_post(const struct weft__trace_text *text, uint64_t key, uint64_t at_ns)
{
	size_t low = 0, high = text->post_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct weft__trace_event *post = text->posts[middle];

		if (post->key < key || (post->key == key && post->begin_ns <= at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && text->posts[low - 1]->key == key ? text->posts[low - 1] : NULL;
}

const struct weft__trace_event *
weft__trace_name_of(const weft_trace *trace, uint64_t track)
{
	size_t number = track & WEFT__TRACK_MASK;

	return number - 1 < weft__load(&trace->threadlets, WEFT__RELAXED)
	               ? trace->text->names[number - 1]
	               : NULL;
}
