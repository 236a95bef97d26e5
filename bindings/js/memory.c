/* memory.c - the engine's memory: weft's, counted and bounded.
 *
 * Each block begins with its size, since weft's allocator does not tell.  A block never
 * grows in place: QuickJS asks for room ahead, so that is rare.
 *
 * QuickJS does not bear a refusal everywhere: not while it parses, where what it writes
 * grows piece by piece and nobody looks whether it did, and not while it makes the error
 * that tells of one.  So the limit is hard for big blocks only, those asked for at once.
 *
 *   1. A block that grows is refused far beyond the limit only, unless it is a string or
 *      the items of a big array.  How much a parser needs is bounded by its text, which is
 *      a big block: some 60 times that, twice in memory itself.
 *   2. Small ones may go beyond the limit, the smaller the further; what has grown does
 *      not count there, so that there is room for the error when that is refused.
 *   3. Who went beyond it is ended at the next poll, unless it was by garbage.
 *
 * What every engine has is cut from one piece, the ground, and given back with it.  So an
 * engine is made and freed quickly; and making one fails before it has begun, or not at
 * all: QuickJS does not bear a failure there.
 */
#include <weft/base.h>
#include "engine.h"

/* Enough for a context with all that is put into it at first; a little more than used. */
#define GROUND_BYTES ((size_t)208 << 10)

enum { PLAIN, IN_GROUND, GROWN };

struct head {
	size_t size;
	size_t kind; /* a word, so that what follows is aligned for anything */
};

#define MARGIN_MIN  ((size_t)2 << 20)
#define MARGIN_MAX  ((size_t)32 << 20)
#define GROWN_MIN   ((size_t)4096) /* what is smaller is small, grown or not */
#define ERROR_BYTES ((size_t)64 << 10)
#define ITEMS_MAX   4  /* times the limit, of one array */
#define GROWN_MAX   64 /* times the limit; see js.h */

static struct head *
head_of(const void *ptr)
{
	return (struct head *)(uintptr_t)ptr - 1;
}

static size_t
usable_size(const void *ptr)
{
	return ptr ? head_of(ptr)->size : 0;
}

static void *
refuse(JSMallocState *state)
{
	weft_js *js = state->opaque;

	js->refused = true;
	js->refused_at = state->malloc_size - js->memory_grown;
	return NULL;
}

/* How far beyond the limit a block of this size may go. */
static size_t
margin_for(size_t limit, size_t size)
{
	size_t margin = limit / 2;

	if (margin < MARGIN_MIN)
		margin = MARGIN_MIN;
	if (margin > MARGIN_MAX)
		margin = MARGIN_MAX;
	if (size < 256)
		return margin;
	if (size < 4096)
		return margin / 2;
	return size < limit / 64 ? margin / 4 : 0;
}

/* Invariant 2.  After a refusal there is a little more, for the error that tells of it: QuickJS
 * makes one for ever where it cannot. */
static bool
is_small_enough(const weft_js *js, size_t whole, size_t size)
{
	size_t limit = js->opts.memory_bytes;

	if (whole <= limit + margin_for(limit, size))
		return true;
	return js->refused && whole <= js->refused_at + ERROR_BYTES
	       && whole <= limit + 2 * margin_for(limit, 0);
}

/* Whether there is to be a block; of what grows, invariant 1. */
static bool
admit(const JSMallocState *state, size_t size, bool grows)
{
	weft_js *js = state->opaque;
	size_t limit = js->opts.memory_bytes;
	size_t whole = state->malloc_size + sizeof(struct head) + size;

	if (whole <= limit)
		return true;
	js->over = true;
	if (grows)
		return whole / GROWN_MAX <= limit;
	if (size >= GROWN_MIN)
		return size <= limit
		       && whole - limit <= margin_for(limit, size);
	return is_small_enough(js, whole - js->memory_grown, size);
}

static struct head *
cut(weft_js *js, size_t size)
{
	size_t whole = (sizeof(struct head) + size + 15) & ~(size_t)15;
	struct head *head = (struct head *)(void *)(js->ground
	                                            + js->ground_used);

	if (!js->ground || whole > GROUND_BYTES - js->ground_used)
		return NULL;
	js->ground_used += whole;
	head->kind = IN_GROUND;
	return head;
}

static void
count(JSMallocState *state, const struct head *head)
{
	weft_js *js = state->opaque;

	state->malloc_count++;
	state->malloc_size += sizeof(*head) + head->size;
	js->memory_used = state->malloc_size;
	if (head->kind == GROWN)
		js->memory_grown += head->size;
}

static void *
make(JSMallocState *state, size_t size, bool grows)
{
	weft_js *js = state->opaque;
	struct head *head = NULL;

	if (!admit(state, size, grows))
		return refuse(state);
	if (!js->ground_closed)
		head = cut(js, size);
	if (!head) {
		head = weft_alloc(sizeof(*head) + size);
		if (!head)
			return refuse(state);
		head->kind = grows && size >= GROWN_MIN ? GROWN : PLAIN;
	}
	head->size = size;
	count(state, head);
	return head + 1;
}

static void *
allocate(JSMallocState *state, size_t size)
{
	return make(state, size, false);
}

static void
release(JSMallocState *state, void *ptr)
{
	weft_js *js = state->opaque;
	struct head *head;

	if (!ptr)
		return;
	head = head_of(ptr);
	state->malloc_count--;
	state->malloc_size -= sizeof(*head) + head->size;
	js->memory_used = state->malloc_size;
	if (head->kind == GROWN)
		js->memory_grown -= head->size;
	if (head->kind != IN_GROUND)
		weft_release(head);
}

/* A string that is being built. */
static bool
is_string(const void *ptr, size_t size)
{
	uint32_t words[4] = { 0 }; /* references, length, two that are unused */

	if (size >= sizeof(words))
		memcpy(words, ptr, sizeof(words));
	return words[0] == 1 && words[2] == 0 && words[3] == 0;
}

/* The items of an array, by their tags: 64 bits of a small number each.  Small tables of a
 * parser may look the same. */
static bool
is_items(const void *ptr, size_t size)
{
	const char *at = ptr, *end = at + size;
	int64_t item[2];

	if (size % sizeof(item) != 0)
		return false;
	for (; at < end; at += sizeof(item)) {
		memcpy(item, at, sizeof(item));
		if (item[1] < JS_TAG_FIRST || item[1] > JS_TAG_FLOAT64)
			return false;
	}
	return true;
}

/* Whether a block of before is nothing of a parser: what a script can make as big as it
 * likes, and QuickJS bears that it does not grow. */
static bool
is_bearing(const void *ptr, size_t before, size_t size, size_t limit)
{
	return is_string(ptr, before)
	       || (size / ITEMS_MAX > limit && is_items(ptr, before));
}

static void *
resize(JSMallocState *state, void *ptr, size_t size)
{
	size_t limit = ((weft_js *)state->opaque)->opts.memory_bytes;
	size_t before = usable_size(ptr);
	void *moved;

	if (size == 0) {
		release(state, ptr);
		return NULL;
	}
	if (ptr && size <= before && size >= before / 2)
		return ptr;
	moved = make(state, size,
	             size < GROWN_MIN
	                     || (ptr && !is_bearing(ptr, before, size, limit)));
	if (moved && ptr) {
		memcpy(moved, ptr, before < size ? before : size);
		release(state, ptr);
	}
	return moved;
}

const JSMallocFunctions weft__js_memory = {
	.js_malloc = allocate,
	.js_free = release,
	.js_realloc = resize,
	.js_malloc_usable_size = usable_size,
};

bool
weft__js_ground_open(weft_js *js)
{
	if (js->opts.memory_bytes < GROUND_BYTES)
		return false;
	js->ground = weft_alloc(GROUND_BYTES);
	return js->ground != NULL;
}

void
weft__js_ground_close(weft_js *js)
{
	js->ground_closed = true;
}

void
weft__js_ground_free(weft_js *js)
{
	weft_release(js->ground);
	js->ground = NULL;
}
