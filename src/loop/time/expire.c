/* expire.c - when a deadline that has passed may expire.
 *
 * A result that has already arrived beats a deadline, also where the loop is late: a call
 * reports a timeout only if nothing had arrived for it when its deadline passed.  A result can
 * take several steps to its call: the kernel reports a descriptor, a callback of the library
 * reads it, and finishes the op that the call waits for.  So no call checks by itself.
 * Instead the loop first delivers everything, by its ordinary phases, and deadlines expire
 * after that:
 *
 *   POLL  Each iteration polls the kernel, until one poll has fetched all that is ready.
 *   RUN   A few iterations run what these results lead to, without further polls.
 *
 *   1. A wheel entry with WEFT__ENTRY_DEADLINE expires only if it was due by `ns` and armed
 *      before `seq`.  `ns` is the time at which the last completed delivery began, and `seq` the
 *      wheel's count of starts at the first poll of that delivery: so the loop polled the kernel
 *      after the deadline had passed, and after the call had begun to wait.
 *   2. The wheel's run stays in order: a deadline that may not expire yet holds back the
 *      entries behind it.  All of the run was armed before the poll, so all of it can expire
 *      when the delivery is complete.
 *   3. A delivery ends, even if the kernel always has more: there are only as many polls as it
 *      takes to report each descriptor once, and the iterations of RUN are limited.
 *   4. A sleep that ended by its timeout counts as a delivery of nothing: a loop that is not
 *      late needs no further poll.
 *   5. Many deadlines cost no more than one: no poll is made for a single deadline.
 */
#include "loop/core/loop.h"

enum { IDLE, POLL, RUN };

#define STEPS_MAX 3u  /* iterations that a result can take to its call, after the poll */
#define TURNS_MAX 64u /* iterations of RUN, where the queues exceed an iteration's budget */
#define POLL_MIN  16u /* descriptors that a poll reports at least, if it leaves some */

static void
begin_run(struct weft__expiry *expiry)
{
	expiry->stage = RUN;
	expiry->steps = STEPS_MAX;
	expiry->turns = TURNS_MAX;
}

static void
complete(struct weft__expiry *expiry)
{
	expiry->ns = expiry->next_ns;
	expiry->seq = expiry->next_seq;
	expiry->stage = IDLE;
}

static void
expire_begin(weft_loop *loop)
{
	struct weft__expiry *expiry = &loop->expiry;
	const struct weft__backend *backend = &loop->backend;

	expiry->next_ns = weft__loop_time(loop);
	expiry->next_seq = loop->wheel.seq;
	if (!weft__backend_is_used(backend)) {
		begin_run(expiry);
		if (!weft__loop_has_work(loop))
			complete(expiry);
		return;
	}
	expiry->stage = POLL;
	expiry->polled = false;
	expiry->polls = 2 + (backend->fds.in_use + backend->requests) / POLL_MIN;
}

bool
weft__deadline_may_expire(weft_loop *loop, const struct weft__wheel_entry *entry)
{
	const struct weft__expiry *expiry = &loop->expiry;

	if (expiry->stage == IDLE && (entry->due_ns > expiry->ns || entry->seq >= expiry->seq))
		expire_begin(loop);
	return entry->due_ns <= expiry->ns && entry->seq < expiry->seq;
}

bool
weft__expiry_wants_poll(const weft_loop *loop)
{
	return loop->expiry.stage == POLL;
}

void
weft__expiry_polled(weft_loop *loop)
{
	struct weft__expiry *expiry = &loop->expiry;

	if (expiry->stage != POLL || expiry->polled)
		return;
	expiry->polled = true;
	expiry->next_seq = loop->wheel.seq;
}

void
weft__expiry_slept(weft_loop *loop, uint64_t until_ns)
{
	struct weft__expiry *expiry = &loop->expiry;

	if (expiry->stage != IDLE || weft__loop_has_work(loop))
		return;
	expiry->ns = until_ns;
	expiry->seq = loop->wheel.seq;
}

/* Everything that was ready at the first poll has been fetched and delivered. */
static bool
has_fetched_all(weft_loop *loop)
{
	struct weft__expiry *expiry = &loop->expiry;
	const struct weft__backend *backend = &loop->backend;

	if (!weft__backend_is_used(backend))
		return true;
	if (expiry->polled && !backend->more && backend->events_count == 0)
		return true;
	return expiry->polls-- == 0;
}

void
weft__expiry_step(weft_loop *loop)
{
	struct weft__expiry *expiry = &loop->expiry;

	if (expiry->stage == POLL) {
		if (!has_fetched_all(loop))
			return;
		begin_run(expiry);
	}
	if (!weft__loop_has_work(loop) || expiry->turns-- == 0) {
		complete(expiry);
		return;
	}
	if (loop->backend.done.first || loop->posts.first || loop->first.first)
		return; /* the budget was used up: this is still the same step */
	if (expiry->steps-- == 0)
		complete(expiry);
}
