/* rest.c - what still runs on a loop that should have stopped, by name and place.
 *
 * A loop that turns shows its threadlets.  One that does not is held by one of them, or by a
 * callback: its thread is asked what it runs (loop/watchdog.c).
 */
#include "base/os.h"
#include "base/report.h"
#include "threadlet/threadlet.h"

#define ANSWER_NS  (200 * WEFT_MS) /* for a loop that turns */
#define SHOWN_MAX  8
#define PLACE_SIZE 160

static void
rest_add_place(struct weft__text *text, const void *const *frames)
{
	char place[PLACE_SIZE];

	if (!frames[0])
		return;
	weft__text_add(text, ", in ");
	if (weft__find_caller(frames, 16, place, sizeof(place)))
		weft__text_add(text, place);
	else
		weft__os_add_symbol(text, frames[0]);
}

static void
rest_add_threadlet(struct weft__text *text, const weft_threadlet_info *info)
{
	weft__text_add(text, "; threadlet ");
	weft__add_name(text, info);
	weft__text_add(text, info->waits_for[0] ? " waits for " : " is ");
	weft__text_add(text,
	               info->waits_for[0] ? info->waits_for : info->state);
	rest_add_place(text, info->frames);
}

static void
rest_add_holder(struct weft__text *text, weft_loop *loop)
{
	struct weft__holder holder;

	if (!weft__loop_holder(loop, &holder)) {
		weft__text_add(text, "; its thread does not answer");
		return;
	}
	weft__text_add(text, "; ");
	if (holder.id) {
		weft__text_add(text, "threadlet ");
		if (holder.name[0])
			weft__text_add(text, holder.name);
		else
			weft__os_add_symbol(text, holder.fn);
	} else {
		weft__text_add(text, "a callback");
	}
	weft__text_add(text, " does not suspend");
	if (holder.frames[0]) { /* where it computes, not what it called */
		weft__text_add(text, ", in ");
		weft__os_add_symbol(text, holder.frames[0]);
	}
}

void
weft__crew_add_rest(weft_loop *loop, struct weft__text *text)
{
	weft_threadlet_info infos[SHOWN_MAX];
	uint64_t cursor = 0, until_ns = weft_in(ANSWER_NS);
	int count = weft_threadlet_list(loop, &cursor, infos, SHOWN_MAX,
	                                until_ns);
	int64_t more = 0;

	if (count == WEFT_ETIMEDOUT)
		rest_add_holder(text, loop);
	for (int i = 0; i < count; i++)
		rest_add_threadlet(text, &infos[i]);
	while (count > 0) {
		count = weft_threadlet_list(loop, &cursor, infos, SHOWN_MAX,
		                            until_ns);
		more += count > 0 ? count : 0;
	}
	if (more == 0)
		return;
	weft__text_add(text, "; and ");
	weft__text_number(text, more);
	weft__text_add(text, " more");
}
