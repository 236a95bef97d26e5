/* chan.c - channels.
 *
 *   1. Receivers wait only while nothing is buffered, senders only while the buffer is full.
 *      So a sender hands a value directly to a waiting receiver, and a receiver gives the room
 *      that it makes directly to a waiting sender.
 *   2. Values leave in the order in which they, or their waiting senders, came.
 *   3. Closing wakes all waiters: senders have not sent, receivers find nothing.
 *   4. The waitable of a shared channel with a buffer has a lock for each direction.  Queues
 *      and `closed` change only inside the waitable, so they do not change while one lock is
 *      held.  While nothing waits, a value enters the buffer under the senders' lock alone, and
 *      leaves it under the receivers' lock alone.
 *   5. Only the holder of the senders' lock adds values, only the holder of the receivers'
 *      lock removes them.  A value is stored before it is counted in (I: release, acquired
 *      by the receiver), and its place is free before it is counted out (O: release,
 *      acquired by the sender).
 *   6. A caller that finds such a channel empty, or full, spins for a moment before it
 *      suspends, if its loop has nothing else to run: a wake by another thread takes longer
 *      than that thread needs to fill or empty the buffer.  One long spin finds many values;
 *      many short ones would pull the other direction's cache line over for each value.
 *   7. The length of a spin adapts to the machine.  If nearly the whole buffer has moved, the
 *      other direction has probably stalled and waited for this one: spin shorter.  If less than
 *      half of the buffer has moved, the check came too soon: spin longer.
 */
#include "threadlet/chan.h"

#define BYTES_MAX  ((size_t)1 << 40) /* of a whole channel */
#define CHECKS     2                 /* in one spin */
#define PAUSES     64u               /* before each check, at first: about 800 ns */
#define PAUSES_MIN 8u
#define PAUSES_MAX 256u
#define WORD       sizeof(uint64_t)
#define ALIGNMENT  ((uintptr_t) _Alignof(weft_chan))

static inline void
chan_copy(void *to, const void *from, size_t size)
{
	weft__will_get(from, size);
	weft__will_put(to, size);
	if (__builtin_expect(size == WORD, 1))
		__builtin_memcpy(to, from, WORD); /* one load and one store */
	else
		__builtin_memcpy(to, from, size);
}

/* The number of buffered values; inside the waitable. */
static inline size_t
count_of(const weft_chan *chan)
{
	return (size_t)(weft__count_get(&chan->in.count) - weft__count_get(&chan->out.count));
}

/* Count one value in this direction, which continues at `next`: I, O. */
static inline void
advance(weft_chan *chan, struct weft__chan_direction *direction, char *next)
{
	weft__put(direction->at, next == chan->end ? chan->values : next);
	weft__store(&direction->count, weft__count_get(&direction->count) + 1, WEFT__RELEASE);
}

static inline void
chan_put(weft_chan *chan, const void *value, size_t size)
{
	char *at = weft__get(chan->in.at);

	chan_copy(at, value, size);
	advance(chan, &chan->in, at + size);
}

static inline void
chan_take(weft_chan *chan, void *out, size_t size)
{
	char *at = weft__get(chan->out.at);

	chan_copy(out, at, size);
	advance(chan, &chan->out, at + size);
}

static inline __attribute__((always_inline)) int
send_now(weft_chan *chan, const void *value, struct weft__wait **wake)
{
	*wake = NULL;
	if (weft__get(chan->closed))
		return WEFT_ECLOSED;
	if (weft__get(chan->receivers.first) && (*wake = weft__wait_claim(&chan->receivers))) {
		chan_copy((*wake)->value, value, chan->value_bytes);
		return 0;
	}
	if (count_of(chan) == chan->capacity)
		return WEFT_EAGAIN;
	chan_put(chan, value, chan->value_bytes);
	return 0;
}

static inline __attribute__((always_inline)) int
recv_now(weft_chan *chan, void *out, struct weft__wait **wake)
{
	*wake = weft__get(chan->senders.first) ? weft__wait_claim(&chan->senders) : NULL;
	if (count_of(chan) > 0) {
		chan_take(chan, out, chan->value_bytes);
		if (*wake)
			chan_put(chan, (*wake)->value, chan->value_bytes);
		return 0;
	}
	if (*wake) {
		chan_copy(out, (*wake)->value, chan->value_bytes);
		return 0;
	}
	return weft__get(chan->closed) ? WEFT_ECLOSED : WEFT_EAGAIN;
}

int
weft__chan_send(weft_chan *chan, const void *value, struct weft__wait **wake)
{
	return send_now(chan, value, wake);
}

int
weft__chan_recv(weft_chan *chan, void *out, struct weft__wait **wake)
{
	return recv_now(chan, out, wake);
}

/* Outside of the waitable. */
static inline int
chan_finish(int rc, struct weft__wait *wake, struct weft__threadlet *self)
{
	if (wake)
		weft__waitable_wake(wake->waiter, 0);
	(void)weft__maybe_yield(self);
	return rc;
}

/* Is the count of this direction ahead of the other's by `by`?  Loads the other count only
 * if the last value seen does not already say no.  Callers inside the waitable do not update
 * that value, so it may be any number of values behind. */
static bool
is_ahead(struct weft__chan_direction *direction, const struct weft__chan_direction *other,
         uint64_t by)
{
	uint64_t count = weft__count_get(&direction->count);

	if ((int64_t)(count - weft__get(direction->other)) < (int64_t)by)
		return false;
	weft__put(direction->other, weft__load(&other->count, WEFT__ACQUIRE)); /* I, O */
	return count - weft__get(direction->other) == by;
}

/* Invariant 4: under one lock.  Returns false if both are needed. */
static bool
send_with_one_lock(weft_chan *chan, const void *value)
{
	bool can;

	weft__waitable_lock(&chan->in.lock);
	can = !weft__get(chan->closed) && !weft__get(chan->receivers.first)
	      && !is_ahead(&chan->in, &chan->out, chan->capacity);
	if (can)
		chan_put(chan, value, chan->value_bytes);
	weft__lock_give(&chan->in.lock);
	return can;
}

static bool
recv_with_one_lock(weft_chan *chan, void *out)
{
	bool can;

	weft__waitable_lock(&chan->out.lock);
	can = !weft__get(chan->senders.first) && !is_ahead(&chan->out, &chan->in, 0);
	if (can)
		chan_take(chan, out, chan->value_bytes);
	weft__lock_give(&chan->out.lock);
	return can;
}

/* Invariant 7. */
static void
adapt_pauses(struct weft__chan_direction *direction, size_t capacity, uint64_t moved)
{
	uint32_t pauses = weft__count_get(&direction->pauses);

	if (moved >= capacity - capacity / 8)
		pauses -= pauses / 4;
	else if (moved < capacity / 2)
		pauses += pauses / 4;
	if (pauses >= PAUSES_MIN && pauses <= PAUSES_MAX)
		weft__count_set(&direction->pauses, pauses);
}

/* Invariant 6.  Returns whether the other direction has moved meanwhile. */
static bool
spin_for_move(struct weft__chan_direction *direction, const struct weft__chan_direction *other,
              size_t capacity)
{
	uint32_t pauses = weft__count_get(&direction->pauses);
	uint64_t moved = 0, count;

	if (!weft__waitable_may_spin(&direction->backoff))
		return false;
	count = weft__load(&other->count, WEFT__RELAXED);
	for (int i = 0; i < CHECKS && !moved; i++) {
		for (uint32_t k = 0; k < pauses; k++)
			weft__pause();
		moved = weft__load(&other->count, WEFT__RELAXED) - count;
	}
	weft__spin_update(&direction->backoff, moved > 0, WEFT__WAITABLE_SKIPS_MAX);
	if (moved > 0)
		adapt_pauses(direction, capacity, moved);
	return moved > 0;
}

/* Under one lock, at once or after a spin.  A spin counts as a wait: see waitable.h. */
static bool
send_or_spin(weft_chan *chan, const void *value, uint64_t deadline_ns)
{
	if (send_with_one_lock(chan, value)) {
		(void)weft__maybe_yield(weft__self());
		return true;
	}
	if (deadline_ns == WEFT_NOWAIT || !spin_for_move(&chan->in, &chan->out, chan->capacity)
	    || !send_with_one_lock(chan, value))
		return false;
	(void)weft__yield(weft__self());
	return true;
}

static bool
recv_or_spin(weft_chan *chan, void *out, uint64_t deadline_ns)
{
	if (recv_with_one_lock(chan, out)) {
		(void)weft__maybe_yield(weft__self());
		return true;
	}
	if (deadline_ns == WEFT_NOWAIT || !spin_for_move(&chan->out, &chan->in, chan->capacity)
	    || !recv_with_one_lock(chan, out))
		return false;
	(void)weft__yield(weft__self());
	return true;
}

static inline bool
has_two_locks(const weft_chan *chan)
{
	return chan->pair.waitable.flags & WEFT__WAITABLE_PAIR;
}

__attribute__((noinline)) static int
send_shared(weft_chan *chan, const void *value, uint64_t deadline_ns)
{
	struct weft__wait *wake;
	int rc = weft__check_requests(deadline_ns);

	if (rc == 0 && has_two_locks(chan) && send_or_spin(chan, value, deadline_ns))
		return 0;
	if (rc == 0)
		rc = weft__waitable_enter(weft__chan_waitable(chan));
	if (rc < 0)
		return rc;
	rc = send_now(chan, value, &wake);
	if (rc == WEFT_EAGAIN)
		return weft__waitable_wait(
			weft__chan_waitable(chan),
			&(struct weft__waitable_wait){ "chan send", &chan->senders,
		                                       (void *)(uintptr_t)value, false },
			deadline_ns);
	weft__waitable_leave(weft__chan_waitable(chan));
	return chan_finish(rc, wake, weft__self());
}

__attribute__((noinline)) static int
recv_shared(weft_chan *chan, void *out, uint64_t deadline_ns)
{
	struct weft__wait *wake;
	int rc = weft__check_requests(deadline_ns);

	if (rc == 0 && has_two_locks(chan) && recv_or_spin(chan, out, deadline_ns))
		return 0;
	if (rc == 0)
		rc = weft__waitable_enter(weft__chan_waitable(chan));
	if (rc < 0)
		return rc;
	rc = recv_now(chan, out, &wake);
	if (rc == WEFT_EAGAIN)
		return weft__waitable_wait(
			weft__chan_waitable(chan),
			&(struct weft__waitable_wait){ "chan recv", &chan->receivers, out, false },
			deadline_ns);
	weft__waitable_leave(weft__chan_waitable(chan));
	return chan_finish(rc, wake, weft__self());
}

/* --- local channels ----------------------------------------------------- */

static inline int
wait_to_send(weft_chan *chan, const void *value, uint64_t deadline_ns, struct weft__threadlet *self)
{
	return weft__waitable_wait_here(&chan->senders, "chan send", (void *)(uintptr_t)value,
	                                deadline_ns, self);
}

static inline int
wait_to_recv(weft_chan *chan, void *out, uint64_t deadline_ns, struct weft__threadlet *self)
{
	return weft__waitable_wait_here(&chan->receivers, "chan recv", out, deadline_ns, self);
}

/* A threadlet waits in the other direction, or the channel is closed. */
__attribute__((noinline)) static int
send_here(weft_chan *chan, const void *value, uint64_t deadline_ns, struct weft__threadlet *self)
{
	struct weft__wait *wake;
	int rc = send_now(chan, value, &wake);

	return rc == WEFT_EAGAIN ? wait_to_send(chan, value, deadline_ns, self)
	                         : chan_finish(rc, wake, self);
}

__attribute__((noinline)) static int
recv_here(weft_chan *chan, void *out, uint64_t deadline_ns, struct weft__threadlet *self)
{
	struct weft__wait *wake;
	int rc = recv_now(chan, out, &wake);

	return rc == WEFT_EAGAIN ? wait_to_recv(chan, out, deadline_ns, self)
	                         : chan_finish(rc, wake, self);
}

/* Through the buffer, which has room, or a value.  Most values are pointers and numbers, which
 * are copied without a call.  The fast paths below handle only values of that size, so they need
 * not save registers for a call; values of other sizes go through these two functions. */
__attribute__((noinline)) static int
send_bytes(weft_chan *chan, const void *value, struct weft__threadlet *self)
{
	chan_put(chan, value, chan->value_bytes);
	return weft__maybe_yield(self);
}

__attribute__((noinline)) static int
recv_bytes(weft_chan *chan, void *out, struct weft__threadlet *self)
{
	chan_take(chan, out, chan->value_bytes);
	return weft__maybe_yield(self);
}

static inline bool
has_words(const weft_chan *chan)
{
	return chan->value_bytes == WORD;
}

int
weft_chan_send(weft_chan *chan, const void *value, uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__waitable_is_open(weft__chan_waitable(chan));

	if (!self)
		return send_shared(chan, value, deadline_ns);
	if (chan->closed || chan->receivers.first)
		return send_here(chan, value, deadline_ns, self);
	if (count_of(chan) == chan->capacity)
		return wait_to_send(chan, value, deadline_ns, self);
	if (!has_words(chan))
		return send_bytes(chan, value, self);
	chan_put(chan, value, WORD);
	return weft__maybe_yield(self);
}

int
weft_chan_recv(weft_chan *chan, void *out, uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__waitable_is_open(weft__chan_waitable(chan));

	if (!self)
		return recv_shared(chan, out, deadline_ns);
	if (chan->senders.first)
		return recv_here(chan, out, deadline_ns, self);
	if (count_of(chan) == 0)
		return chan->closed ? recv_here(chan, out, deadline_ns, self)
		                    : wait_to_recv(chan, out, deadline_ns, self);
	if (!has_words(chan))
		return recv_bytes(chan, out, self);
	chan_take(chan, out, WORD);
	return weft__maybe_yield(self);
}

/* --- creation, closing, references -------------------------------------- */

weft_chan *
weft_chan_new(size_t value_bytes, size_t capacity, uint32_t flags)
{
	weft_chan *chan;
	void *memory;

	if ((flags & ~WEFT_SHARED) || value_bytes > BYTES_MAX
	    || (value_bytes > 0 && capacity > BYTES_MAX / value_bytes)) {
		(void)weft__fail(WEFT_EINVAL,
		                 "weft_chan_new: value_bytes * capacity is too large, or flags has "
		                 "unknown bits");
		return NULL;
	}
	memory = weft__alloc_zero(sizeof(*chan) + value_bytes * capacity + ALIGNMENT);
	if (!memory) {
		(void)weft__fail(WEFT_ENOMEM, "weft_chan_new: out of memory");
		return NULL;
	}
	chan = (weft_chan *)(((uintptr_t)memory + ALIGNMENT - 1) & -ALIGNMENT);
	chan->memory = memory;
	chan->pair = (struct weft__waitable_pair){
		.waitable.flags = flags | (flags && capacity ? WEFT__WAITABLE_PAIR : 0),
		.first = &chan->in.lock,
		.second = &chan->out.lock,
	};
	chan->value_bytes = value_bytes;
	chan->capacity = capacity;
	chan->in.at = chan->out.at = chan->values;
	chan->end = chan->values + value_bytes * capacity;
	weft__count_set(&chan->in.pauses, PAUSES);
	weft__count_set(&chan->out.pauses, PAUSES);
	weft__store(&chan->refs, 1, WEFT__RELAXED);
	return chan;
}

void
weft_chan_close(weft_chan *chan)
{
	struct weft__wait *receivers, *senders;

	if (weft__waitable_enter(weft__chan_waitable(chan)) < 0)
		return;
	weft__put(chan->closed, true);
	receivers = weft__waitable_claim_all(&chan->receivers);
	senders = weft__waitable_claim_all(&chan->senders);
	weft__waitable_leave(weft__chan_waitable(chan));
	(void)weft__waitable_wake_all(receivers, WEFT_ECLOSED);
	(void)weft__waitable_wake_all(senders, WEFT_ECLOSED);
}

weft_chan *
weft_chan_ref(weft_chan *chan)
{
	(void)weft__add(&chan->refs, 1, WEFT__RELAXED);
	return chan;
}

/* The caller of send and recv has a reference until the call returns.  So at the last unref
 * nothing waits. */
weft_chan *
weft_chan_unref(weft_chan *chan)
{
	if (chan && weft__add(&chan->refs, UINT32_MAX, WEFT__ACQ_REL) == 1) {
		weft__assert(!chan->senders.first && !chan->receivers.first);
		weft__sys->release(chan->memory);
	}
	return NULL;
}
