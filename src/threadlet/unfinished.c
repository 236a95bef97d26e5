/* unfinished.c - what still runs on a loop that should have stopped: names and code locations.
 *
 * A loop that still iterates lists its threadlets.  A loop that does not is blocked by one of
 * them, or by a callback: a signal to its thread finds out which (loop/observe/watchdog.c).
 */
#include "base/os.h"
#include "base/report.h"
#include "threadlet/threadlet.h"

#define ANSWER_NS      (200 * WEFT_MS) /* for a loop that iterates, each time */
#define TRIES          20
#define CALLBACK_TRIES 5
#define SHOWN_MAX      8
#define LOCATION_SIZE  160

static void
unfinished_add_location(struct weft__text *text, const void *const *frames)
{
	char location[LOCATION_SIZE];

	if (!frames[0])
		return;
	weft__text_add(text, ", in ");
	if (weft__find_caller(frames, 16, location, sizeof(location)))
		weft__text_add(text, location);
	else
		weft__os_add_symbol(text, frames[0]);
}

static void
unfinished_add_threadlet(struct weft__text *text, const weft_threadlet_info *info)
{
	weft__text_add(text, "; threadlet ");
	weft__add_name(text, info);
	weft__text_add(text, info->waits_for[0] ? " waits for " : " is ");
	weft__text_add(text, info->waits_for[0] ? info->waits_for : info->state);
	unfinished_add_location(text, info->frames);
}

static void
unfinished_add_holder(struct weft__text *text, const struct weft__holder *holder)
{
	if (holder->id) {
		weft__text_add(text, "; threadlet ");
		if (holder->name[0])
			weft__text_add(text, holder->name);
		else
			weft__os_add_symbol(text, holder->fn);
	} else {
		weft__text_add(text, "; a callback");
	}
	weft__text_add(text, " does not suspend");
	if (holder->frames[0]) { /* the innermost frame: where it computes */
		weft__text_add(text, ", in ");
		weft__os_add_symbol(text, holder->frames[0]);
	}
}

/* A thread that runs no threadlet may just lack a CPU.  It counts as being in a callback only
 * if that answer repeats for some time. */
static bool
unfinished_is_blocked(weft_loop *loop, int tries, struct weft__holder *holder)
{
	return weft__loop_holder(loop, holder) && (holder->id || tries >= CALLBACK_TRIES);
}

/* The first slice of a loop that iterates; 0 if there is none, and then the text says why. */
static int
unfinished_list(weft_loop *loop, struct weft__text *text, uint64_t *cursor,
                weft_threadlet_info *infos)
{
	struct weft__holder holder;

	for (int tries = 0; tries < TRIES; tries++) {
		int count = weft__threadlet_list(loop, cursor, infos, SHOWN_MAX,
		                                 weft_after(ANSWER_NS));

		if (count != WEFT_ETIMEDOUT)
			return count < 0 ? 0 : count;
		if (unfinished_is_blocked(loop, tries, &holder)) {
			unfinished_add_holder(text, &holder);
			return 0;
		}
	}
	weft__text_add(text, "; its thread does not answer");
	return 0;
}

void
weft__sched_add_unfinished(weft_loop *loop, struct weft__text *text)
{
	weft_threadlet_info infos[SHOWN_MAX];
	uint64_t cursor = 0;
	int count = unfinished_list(loop, text, &cursor, infos);
	int64_t more = 0;

	for (int i = 0; i < count; i++)
		unfinished_add_threadlet(text, &infos[i]);
	while (count > 0) {
		count = weft__threadlet_list(loop, &cursor, infos, SHOWN_MAX,
		                             weft_after(ANSWER_NS));
		more += count > 0 ? count : 0;
	}
	if (more == 0)
		return;
	weft__text_add(text, "; and ");
	weft__text_number(text, more);
	weft__text_add(text, " more");
}
