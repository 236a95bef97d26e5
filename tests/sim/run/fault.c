/* fault.c - faults drawn from the seed, numbered and recorded.
 *
 * Each class is on or off for a whole seed and, if on, has one of three rates.  The decision
 * about the n-th opportunity for a class at a call is a hash of (seed, class, call, n).  So a
 * fault has a key that identifies it when the seed is run again.  Leaving one fault out changes
 * others only where the program itself then behaves differently.
 *
 *   1. Every opportunity is counted, even while masked or healed: the ordinals number calls,
 *      not faults.
 *   2. A fault is recorded exactly when it is injected.
 *   3. With a list of keys, no other fault is injected.
 *
 * The call that requests a fault decides what the fault means.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/run/rng.h"
#include "sim/run/schedule.h"

#define ERRNOS_MAX 12
#define KEY_FAULT  UINT64_C(0x6661756c74) /* distinct from the keys of streams */

/* Per 65,536 opportunities: rare, usual, often; and in how many of 16 seeds the class is on. */
static const struct {
	const char *name;
	uint16_t rate[3];
	uint16_t seeds;
} classes[SIM_CLASSES] = {
	[SIM_SHORT] = { "SHORT", { 4096, 16384, 40000 }, 8 },
	[SIM_EINTR] = { "EINTR", { 1024, 4096, 16384 }, 7 },
	[SIM_EAGAIN] = { "EAGAIN", { 1024, 4096, 16384 }, 7 },
	[SIM_RESET] = { "RESET", { 32, 256, 1024 }, 5 },
	[SIM_REFUSE] = { "REFUSE", { 2048, 8192, 24576 }, 5 },
	[SIM_ERRNO] = { "ERRNO", { 256, 1024, 4096 }, 6 },
	[SIM_ALLOC] = { "ALLOC", { 256, 1024, 4096 }, 5 },
	[SIM_LATE] = { "LATE", { 2048, 8192, 32768 }, 7 },
	[SIM_SPURIOUS] = { "SPURIOUS", { 2048, 8192, 24576 }, 7 },
	[SIM_DELAY] = { "DELAY", { 2048, 8192, 24576 }, 7 },
	[SIM_BATCH] = { "BATCH", { 4096, 16384, 40000 }, 8 },
	[SIM_CLOCK] = { "CLOCK", { 16, 128, 1024 }, 5 },
	[SIM_THREAD] = { "THREAD", { 2048, 8192, 24576 }, 5 },
};

static struct {
	uint32_t on;  /* SIM_MASK()s */
	uint32_t hit; /* classes that were injected in this run */
	bool healed;
	uint16_t rate[SIM_CLASSES];
	uint64_t opportunities[SIM_CLASSES][SIM_CALL_COUNT];
	uint64_t count;
	const uint64_t *only; /* sorted copy of the caller's list, or NULL */
	uint64_t *only_room;
	size_t only_count;
	struct sim_fault *list;
	size_t list_max;
	struct sim_fault unlisted; /* used when the list is full */
} fault;

/* --- errors of each call ---------------------------------------------- */

static const struct {
	enum sim_call call;
	int error;
	int recoverable;
} errnos[] = {
#define WEFT_ERRNO(call, error, recoverable) { SIM_CALL_##call, error, recoverable },
#include "fault/errnos.def"
};

static struct {
	int error[ERRNOS_MAX]; /* recoverable, except EINTR and EAGAIN */
	int count;
	bool eintr;
} by_call[SIM_CALL_COUNT];

static void
sort_errnos(void)
{
	memset(by_call, 0, sizeof(by_call));
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		int call = (int)errnos[i].call;

		if (!errnos[i].recoverable || errnos[i].error == EAGAIN)
			continue;
		if (errnos[i].error == EINTR) {
			by_call[call].eintr = true;
			continue;
		}
		assert(by_call[call].count < ERRNOS_MAX);
		by_call[call].error[by_call[call].count++] = errnos[i].error;
	}
}

/* --- the decision ----------------------------------------------------- */

static int
compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
copy_only(const struct sim_opts *opts)
{
	fault.only = NULL;
	if (!opts->only)
		return;
	fault.only_count = opts->only_count;
	fault.only_room = realloc(fault.only_room, (opts->only_count + 1) * sizeof(uint64_t));
	if (!fault.only_room)
		abort();
	memcpy(fault.only_room, opts->only, opts->only_count * sizeof(uint64_t));
	qsort(fault.only_room, opts->only_count, sizeof(uint64_t), compare_keys);
	fault.only = fault.only_room;
}

void
sim_fault_reset(uint32_t masked, const struct sim_opts *opts)
{
	sort_errnos();
	copy_only(opts);
	fault.on = fault.hit = 0;
	fault.healed = false;
	fault.count = 0;
	fault.list = opts->faults;
	fault.list_max = opts->faults ? opts->faults_max : 0;
	memset(fault.opportunities, 0, sizeof(fault.opportunities));
	for (int i = 0; i < SIM_CLASSES; i++) {
		if (sim_below(SIM_DRAW_SETUP, 16) < classes[i].seeds)
			fault.on |= SIM_MASK(i);
		fault.rate[i] = classes[i].rate[sim_below(SIM_DRAW_SETUP, 3)];
	}
	fault.on &= ~masked;
}

uint64_t
sim_fault_count(void)
{
	return fault.count;
}

bool
sim_has_failed(enum sim_class fault_class)
{
	return fault.hit & SIM_MASK(fault_class);
}

void
sim_heal(void)
{
	fault.healed = true;
}

void
sim_spare(uint32_t masks)
{
	fault.on &= ~masks;
}

static struct sim_fault *
record(enum sim_class fault_class, enum sim_call call, uint64_t key, uint64_t bits)
{
	struct sim_fault *entry = fault.count < fault.list_max ? &fault.list[fault.count]
	                                                       : &fault.unlisted;

	fault.count++;
	fault.hit |= SIM_MASK(fault_class);
	*entry = (struct sim_fault){
		.key = key,
		.time_ns = sim_clock.now_ns,
		.bits = bits,
		.call = sim_call_names[call],
		.fault_class = classes[fault_class].name,
		.thread = sim_thread_id(),
	};
	sim_trace(SIM_CALL_fault, fault_class, call, (int64_t)(key & 0xffffffff));
	return entry;
}

struct sim_fault *
sim_fault(enum sim_class fault_class, enum sim_call call)
{
	uint64_t ordinal = fault.opportunities[fault_class][call]++;
	uint64_t name = ((uint64_t)fault_class << 16) | (uint64_t)call;
	uint64_t key = (name << 40) | ordinal, bits;

	if (fault.healed || !(fault.on & ~sim_thread_masked() & SIM_MASK(fault_class)))
		return NULL;
	bits = sim_draw_at(KEY_FAULT + name, ordinal);
	if ((bits & 0xffff) >= fault.rate[fault_class])
		return NULL;
	if (fault.only && !bsearch(&key, fault.only, fault.only_count, sizeof(key), compare_keys))
		return NULL;
	return record(fault_class, call, key, bits >> 16);
}

/* --- helpers for most callers ----------------------------------------- */

int
sim_fault_eintr(enum sim_call call)
{
	struct sim_fault *hit = by_call[call].eintr ? sim_fault(SIM_EINTR, call) : NULL;

	if (!hit)
		return 0;
	hit->what = -EINTR;
	return -EINTR;
}

int
sim_fault_errno(enum sim_call call)
{
	struct sim_fault *hit = by_call[call].count ? sim_fault(SIM_ERRNO, call) : NULL;

	if (!hit)
		return 0;
	hit->what = -by_call[call].error[hit->bits % (uint64_t)by_call[call].count];
	return (int)hit->what;
}

size_t
sim_fault_short(enum sim_call call, size_t size)
{
	struct sim_fault *hit = size > 1 ? sim_fault(SIM_SHORT, call) : NULL;

	if (!hit)
		return size;
	size = hit->bits & 1 ? 1 : 1 + (size_t)((hit->bits >> 1) % (size - 1));
	hit->what = (int64_t)size;
	return size;
}

uint64_t
sim_fault_delay_ns(struct sim_fault *hit, uint64_t most_ns)
{
	uint64_t scale = 0, ns;

	while (scale < 43 && most_ns >> (scale + 1))
		scale++;
	scale = hit->bits % (scale + 1); /* each power of two equally likely */
	ns = 1 + (hit->bits >> 5) % (UINT64_C(1) << scale);
	ns = ns < most_ns ? ns : most_ns;
	hit->what = (int64_t)ns;
	return ns;
}

const char *
sim_class_name(enum sim_class fault_class)
{
	return classes[fault_class].name;
}
