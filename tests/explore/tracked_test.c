/* tracked_test.c - memory: frees, leaks, reuse, stack frames, races.
 *
 * Each test has a correct variant and one with a mistake, as in explore_test.c.
 */
#include "must.h"

/* --- memory ------------------------------------------------------------- */

struct node {
	weft__a32 refs;
	uint32_t value; /* plain */
	weft__aptr next;
};

static void
refs_setup(void *arg)
{
	struct world *w = arg;
	struct node *node = weft__sys->alloc(sizeof *node);

	weft__store(&node->refs, 2, WEFT__RELAXED);
	weft__put(node->value, 0);
	weft__store(&w->ptr, (uintptr_t)node, WEFT__RELAXED);
}

static void
refs_drop(void *arg)
{
	struct world *w = arg;
	struct node *node = (struct node *)weft__load(&w->ptr, WEFT__RELAXED);

	if (explore_thread() == 0)
		weft__put(node->value, 3);
	if (weft__add(&node->refs, (uint32_t)-1, WEFT__ACQ_REL) == 1)
		weft__sys->release(node);
	else if (planted)
		w->r[0] = weft__load(&node->refs, WEFT__RELAXED);
}

static const struct explore_model refs = {
	.name = "reference count",
	.state_size = sizeof(struct world),
	.threads = 2,
	.setup = refs_setup,
	.thread = { refs_drop, refs_drop },
};

TEST(tracked_use_that_is_not_ordered_before_the_release_is_a_failure)
{
	must_pass(refs);
	must_fail(refs, "not ordered after its use by T");
	planted = false;
	CHECK_EQ(explore_weaken(&refs), 0);
}

static void
use_released(void *arg)
{
	struct world *w = arg;
	struct node *node = (struct node *)weft__exchange(&w->ptr, 0, WEFT__ACQ_REL);

	if (node)
		weft__sys->release(node);
	if (node && planted)
		w->r[0] = weft__get(node->value);
}

TEST(tracked_use_after_release_is_reported_with_its_place)
{
	struct explore_model model = { .name = "use after free",
		                       .threads = 2,
		                       .setup = refs_setup,
		                       .thread = { use_released, use_released } };

	must_pass(model);
	must_fail(model, "use after free: T0 at tracked_test.c:");
}

static void
release_maybe(void *arg)
{
	struct world *w = arg;
	struct node *node;

	if (weft__add(&w->x, 1, WEFT__ACQ_REL) == (planted ? 2 : 1)) {
		node = (struct node *)weft__load(&w->ptr, WEFT__RELAXED);
		weft__sys->release(node);
	}
}

TEST(tracked_leak_is_a_failure)
{
	struct explore_model model = { .name = "leak",
		                       .threads = 2,
		                       .setup = refs_setup,
		                       .thread = { release_maybe, release_maybe } };

	must_pass(model);
	must_fail(model, "leak: block 2 of 16 bytes, allocated by main");
}

static void
release_twice(void *arg)
{
	struct world *w = arg;
	uintptr_t ptr = planted ? weft__load(&w->ptr, WEFT__ACQUIRE)
	                        : weft__exchange(&w->ptr, 0, WEFT__ACQUIRE);

	weft__sys->release((void *)ptr);
}

TEST(tracked_double_release_is_a_failure)
{
	struct explore_model model = { .name = "double release",
		                       .threads = 2,
		                       .setup = refs_setup,
		                       .thread = { release_twice, release_twice } };

	must_pass(model);
	must_fail(model, "released twice");
}

/* A stack of three nodes, by index.  The top may have been popped and pushed back while a
 * thread pops it.  A count beside the index detects that; without it a node is taken twice. */
struct indexed {
	weft__a64 top; /* index in the low 8 bits, the count above */
	weft__a32 next[4];
	uint32_t taken[2];
};

static uint64_t
top_make(uint64_t old, uint64_t index)
{
	return planted ? index : ((old >> 8) + 1) << 8 | index;
}

static void
indexed_push(struct indexed *s, uint32_t index)
{
	uint64_t top = weft__load(&s->top, WEFT__RELAXED);

	do
		weft__store(&s->next[index], (uint32_t)(top & 255), WEFT__RELAXED);
	while (!weft__cas(&s->top, &top, top_make(top, index), WEFT__RELEASE));
}

static uint32_t
indexed_pop(struct indexed *s)
{
	uint64_t top;
	uint32_t next;

	do { /* a failed compare-exchange does not acquire: load again */
		top = weft__load(&s->top, WEFT__ACQUIRE);
		if (!(top & 255))
			return 0;
		next = weft__load(&s->next[top & 255], WEFT__RELAXED);
	} while (!weft__cas(&s->top, &top, top_make(top, next), WEFT__ACQUIRE));
	return (uint32_t)(top & 255);
}

static void
aba_setup(void *arg)
{
	for (uint32_t i = 3; i > 0; i--)
		indexed_push(arg, i);
}

static void
aba_slow(void *arg)
{
	((struct indexed *)arg)->taken[0] = indexed_pop(arg);
}

static void
aba_fast(void *arg)
{
	struct indexed *s = arg;
	uint32_t first = indexed_pop(s);

	s->taken[1] = indexed_pop(s);
	indexed_push(s, first);
}

static void
aba_check(void *arg)
{
	struct indexed *s = arg;
	uint32_t mask = 0, index;

	mask |= 1u << s->taken[0];
	EXPLORE_CHECK(!(mask & 1u << s->taken[1]));
	mask |= 1u << s->taken[1];
	while ((index = indexed_pop(s)) != 0) {
		EXPLORE_CHECK(!(mask & 1u << index));
		mask |= 1u << index;
	}
	EXPLORE_CHECK(mask == 14);
}

TEST(tracked_aba_error_of_a_stack_is_found)
{
	struct explore_model model = { .name = "ABA",
		                       .state_size = sizeof(struct indexed),
		                       .threads = 2,
		                       .setup = aba_setup,
		                       .thread = { aba_slow, aba_fast },
		                       .check = aba_check };

	must_pass(model);
	must_fail(model, "mask");
}

static void
reuse_slow(void *arg)
{
	struct world *w = arg;
	uintptr_t seen = weft__load(&w->ptr, WEFT__ACQUIRE), old = seen;

	if (seen && weft__cas(&w->ptr, &seen, 0, WEFT__ACQ_REL)) {
		w->r[0] = weft__load(&w->x, WEFT__RELAXED);
		weft__sys->release((void *)old);
	}
}

static void
reuse_fast(void *arg)
{
	struct world *w = arg;
	uintptr_t old = weft__exchange(&w->ptr, 0, WEFT__ACQ_REL);
	struct node *node;

	weft__sys->release((void *)old);
	weft__store(&w->x, 1, WEFT__RELAXED);
	node = weft__sys->alloc(sizeof *node);
	if ((uintptr_t)node == old && old)
		w->r[1] = 1;
	weft__store(&w->ptr, (uintptr_t)node, WEFT__RELEASE);
}

static void
reuse_check(void *arg)
{
	struct world *w = arg;

	weft__sys->release((void *)weft__load(&w->ptr, WEFT__RELAXED));
	EXPLORE_CHECK(!planted || !w->r[1]);
}

TEST(tracked_released_memory_is_allocated_again_only_with_reuse)
{
	struct explore_model model = { .name = "reuse of memory",
		                       .threads = 2,
		                       .setup = refs_setup,
		                       .thread = { reuse_slow, reuse_fast },
		                       .check = reuse_check };

	CHECK(explored(model, true).failure == NULL);
	model.reuse = true;
	must_pass(model);
	must_fail(model, "planted");
}

/* Two threads make an object each.  One publishes its own, and the other uses the published
 * one, too. */
static void
use_first(void *arg)
{
	struct world *w = arg;
	struct node *node = weft__sys->alloc(sizeof *node);
	uintptr_t none = 0;
	int failed = planted ? WEFT__RELAXED : WEFT__ACQUIRE;

	weft__put(node->value, 3);
	if (!weft__cas_else(&w->ptr, &none, (uintptr_t)node, WEFT__RELEASE, failed)) {
		weft__sys->release(node);
		node = (struct node *)none;
	}
	EXPLORE_CHECK(weft__get(node->value) == 3);
}

static void
release_first(void *arg)
{
	struct world *w = arg;

	weft__sys->release((void *)weft__load(&w->ptr, WEFT__RELAXED));
}

TEST(tracked_failed_compare_exchange_must_acquire_the_object_it_found)
{
	struct explore_model model = { .name = "first user",
		                       .state_size = sizeof(struct world),
		                       .threads = 2,
		                       .thread = { use_first, use_first },
		                       .check = release_first };

	must_pass(model);
	must_fail(model, "race");
	planted = false;
	CHECK_EQ(explore_weaken(&model), 0); /* both orders are needed */
}

static void
frame_user(void *arg)
{
	struct world *w = arg;
	weft__a32 *there;

	while (!(there = (weft__a32 *)weft__load(&w->ptr, WEFT__ACQUIRE)))
		weft__sys->yield();
	weft__store(there, 1, WEFT__RELEASE);
}

static __attribute__((noinline)) void
frame_wait(struct world *w)
{
	weft__a32 here = { 0 };

	weft__store(&w->ptr, (uintptr_t)&here, WEFT__RELEASE);
	while (!planted && !weft__load(&here, WEFT__ACQUIRE))
		weft__sys->yield();
}

static void
frame_owner(void *arg)
{
	frame_wait(arg);
	weft__store(&((struct world *)arg)->y, 1, WEFT__RELAXED);
}

TEST(tracked_use_of_a_stack_frame_after_its_return_is_a_failure)
{
	struct explore_model model = { .name = "word on a stack",
		                       .threads = 2,
		                       .thread = { frame_owner, frame_user } };

	must_pass(model);
	must_fail(model, "uses a stack frame that T0 has left");
}

/* --- plain memory of several sizes -------------------------------------- */

static void
bytes_0(void *arg)
{
	struct world *w = arg;

	weft__put(w->bytes[1], 1);
	weft__put(w->bytes[2], 1);
}

static void
bytes_1(void *arg)
{
	struct world *w = arg;
	uint8_t was;

	weft__put(w->bytes[0], 1);
	weft__put(w->bytes[3], 1);
	was = planted ? weft__get(w->bytes[2]) : weft__get(w->bytes[4]);
	w->r[0] = was;
	weft__store(&w->x, 1, WEFT__RELAXED);
}

static void
bytes_setup(void *arg)
{
	struct world *w = arg;
	struct {
		uint8_t all[8];
	} *whole = (void *)w->bytes;

	(void)weft__get(*whole);
	weft__put(w->bytes[7], 3);
}

static void
bytes_and_store(void *arg)
{
	bytes_0(arg);
	weft__store(&((struct world *)arg)->x, 2, WEFT__RELAXED);
}

TEST(tracked_races_are_found_byte_by_byte)
{
	struct explore_model model = { .name = "neighbouring bytes",
		                       .threads = 2,
		                       .setup = bytes_setup,
		                       .thread = { bytes_and_store, bytes_1 },
		                       .check = bytes_setup };

	must_pass(model);
	must_fail(model, "data race");
}

struct whole {
	uint8_t all[8];
};

static void
whole_writer(void *arg)
{
	struct world *w = arg;

	weft__put(*(struct whole *)w->bytes, (struct whole){ { 1 } });
	weft__store(&w->x, 1, WEFT__RELEASE);
}

static void
part_reader(void *arg)
{
	struct world *w = arg;

	if (weft__load(&w->x, WEFT__ACQUIRE) || planted)
		w->r[0] = weft__get(w->bytes[3]);
}

TEST(tracked_read_of_a_part_races_with_a_write_of_the_whole)
{
	struct explore_model model = { .name = "part of a whole",
		                       .threads = 2,
		                       .thread = { whole_writer, part_reader } };

	must_pass(model);
	must_fail(model, "data race on state+31");
}
