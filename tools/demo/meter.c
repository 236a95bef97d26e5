/* meter.c - latencies in buckets no wider than 1/32 of their value.
 *
 * A slot is a quarter of a second.  It is cleared by the first call that reuses it, so no timer
 * is needed.
 */
#include "meter.h"
#include <string.h>
#include <weft/base.h>

void
meter_init(struct meter *meter)
{
	memset(meter, 0, sizeof(*meter));
	(void)pthread_mutex_init(&meter->lock, NULL);
}

static uint32_t
bucket_of(uint64_t us)
{
	uint32_t doublings, bucket;

	if (us < 64)
		return (uint32_t)us;
	doublings = 63 - (uint32_t)__builtin_clzll(us) - 5;
	bucket = 32 + doublings * 32 + (uint32_t)((us >> doublings) - 32);
	return bucket < METER_BUCKETS ? bucket : METER_BUCKETS - 1;
}

/* The middle of a bucket's range. */
static uint64_t
value_of(uint32_t bucket)
{
	uint32_t doublings = bucket / 32 - 1;
	uint64_t low;

	if (bucket < 64)
		return bucket;
	low = (uint64_t)(bucket % 32 + 32) << doublings;
	return low + (UINT64_C(1) << doublings) / 2;
}

void
meter_record(struct meter *meter, enum side side, uint64_t latency_ns)
{
	uint64_t number = weft_now() / METER_SLOT_NS, us = latency_ns / WEFT_US;
	struct meter_slot *slot = &meter->slots[side][number % METER_SLOTS];

	(void)pthread_mutex_lock(&meter->lock);
	if (slot->number != number) {
		memset(slot, 0, sizeof(*slot));
		slot->number = number;
	}
	slot->sum += us;
	slot->max = us > slot->max ? us : slot->max;
	slot->buckets[bucket_of(us)]++;
	(void)pthread_mutex_unlock(&meter->lock);
}

static uint64_t
quantile(const struct meter_slot *all, uint64_t count, uint32_t percent)
{
	uint64_t rank = (count * percent + 99) / 100, passed = 0;

	for (uint32_t i = 0; i < METER_BUCKETS; i++) {
		passed += all->buckets[i];
		if (passed >= rank && passed > 0)
			return value_of(i) < all->max ? value_of(i) : all->max;
	}
	return all->max;
}

static void
add_slot(struct meter_slot *all, const struct meter_slot *slot, uint64_t *count)
{
	all->sum += slot->sum;
	all->max = slot->max > all->max ? slot->max : all->max;
	for (uint32_t i = 0; i < METER_BUCKETS; i++) {
		all->buckets[i] += slot->buckets[i];
		*count += slot->buckets[i];
	}
}

void
meter_read(struct meter *meter, enum side side, struct quantiles *out)
{
	struct meter_slot all = { 0 };
	uint64_t number = weft_now() / METER_SLOT_NS, count = 0;

	(void)pthread_mutex_lock(&meter->lock);
	for (uint32_t i = 0; i < METER_SLOTS; i++) {
		const struct meter_slot *slot = &meter->slots[side][i];

		if (slot->number < number && slot->number + 4 >= number)
			add_slot(&all, slot, &count);
	}
	(void)pthread_mutex_unlock(&meter->lock);
	*out = (struct quantiles){ .count = count, .max = all.max };
	if (count == 0)
		return;
	out->mean = all.sum / count;
	out->p50 = quantile(&all, count, 50);
	out->p90 = quantile(&all, count, 90);
	out->p95 = quantile(&all, count, 95);
	out->p99 = quantile(&all, count, 99);
}

void
gauge_add(struct gauge *gauge)
{
	uint64_t now = __atomic_add_fetch(&gauge->now, 1, __ATOMIC_RELAXED);
	uint64_t most = meter_get(&gauge->most);

	while (now > most
	       && !__atomic_compare_exchange_n(&gauge->most, &most, now, true, __ATOMIC_RELAXED,
	                                       __ATOMIC_RELAXED))
		;
}

void
gauge_sub(struct gauge *gauge)
{
	__atomic_fetch_sub(&gauge->now, 1, __ATOMIC_RELAXED);
}

void
gauge_turn(struct gauge *gauge)
{
	uint64_t most = __atomic_exchange_n(&gauge->most, meter_get(&gauge->now), __ATOMIC_RELAXED);

	__atomic_store_n(&gauge->shown, most, __ATOMIC_RELAXED);
}
