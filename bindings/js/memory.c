/* memory.c - the engine's memory: weft's, counted and bounded.
 *
 * Each block begins with its size, since weft's allocator does not tell.  A block never
 * grows in place: QuickJS asks for room ahead, so that is rare.
 *
 * QuickJS does not bear a refusal everywhere: not while it parses, and not while it makes
 * the error that tells of one.  So the limit is hard for big blocks only.  Small ones may
 * go beyond it, the smaller the further, and the script is ended at the next poll: by then
 * it has done little, and what is refused to it leaves room for the error.
 *
 * What every engine has is cut from one piece, the ground, and given back with it.  So an
 * engine is made and freed quickly; and making one fails before it has begun, or not at
 * all: QuickJS does not bear a failure there.
 */
#include <weft/base.h>
#include "engine.h"

/* Enough for a context with all that is put into it at first; a little more than used. */
#define GROUND_BYTES ((size_t)208 << 10)

struct head {
	size_t size;
	size_t in_ground; /* a word, so that what follows is aligned for anything */
};

#define MARGIN_MIN ((size_t)2 << 20)
#define MARGIN_MAX ((size_t)32 << 20)

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

/* Count a block; false if there is to be none. */
static bool
admit(JSMallocState *state, size_t size)
{
	weft_js *js = state->opaque;
	size_t limit = js->opts.memory_bytes;
	size_t whole = state->malloc_size + sizeof(struct head) + size;

	if (whole <= limit)
		return true;
	js->over = true;
	return size <= limit && whole - limit <= margin_for(limit, size);
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
	head->in_ground = 1;
	return head;
}

static void *
allocate(JSMallocState *state, size_t size)
{
	weft_js *js = state->opaque;
	struct head *head = NULL;

	if (!admit(state, size))
		return refuse(state);
	if (!js->ground_closed)
		head = cut(js, size);
	if (!head) {
		head = weft_alloc(sizeof(*head) + size);
		if (!head)
			return refuse(state);
		head->in_ground = 0;
	}
	head->size = size;
	state->malloc_count++;
	state->malloc_size += sizeof(*head) + size;
	js->memory_used = state->malloc_size;
	return head + 1;
}

static void
release(JSMallocState *state, void *ptr)
{
	struct head *head;

	if (!ptr)
		return;
	head = head_of(ptr);
	state->malloc_count--;
	state->malloc_size -= sizeof(*head) + head->size;
	((weft_js *)state->opaque)->memory_used = state->malloc_size;
	if (!head->in_ground)
		weft_release(head);
}

static void *
resize(JSMallocState *state, void *ptr, size_t size)
{
	size_t before = usable_size(ptr);
	void *moved;

	if (size == 0) {
		release(state, ptr);
		return NULL;
	}
	if (ptr && size <= before && size >= before / 2)
		return ptr;
	moved = allocate(state, size);
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
