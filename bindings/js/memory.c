/* memory.c - the engine's allocator: weft's allocator, with accounting and a limit.
 *
 * Each block begins with its size, because weft's allocator does not report it.  A block never
 * grows in place; that is rare, since QuickJS over-allocates.  QuickJS carves small blocks from
 * arenas of 4 KiB that it allocates here.  Each of its other blocks begins with a header of 8
 * bytes that contains a reference count.
 *
 * QuickJS does not survive every failed allocation.  Its parser writes to buffers without
 * checking whether they grew, and some constructors use an object's properties without checking
 * whether they were allocated.  So the limit is hard only for large blocks.
 *
 *   1. A large new block, a string that grows, and the items of a large array fail beyond the
 *      limit.  QuickJS survives that, outside of its parser.
 *   2. A small block, any other block that grows, and every block of a parser fail only far
 *      beyond the limit.  The memory that a parser or a built-in function needs is bounded by
 *      its input, which is a large block: about 60 times its size, twice that in the worst case.
 *      A parser is running while one of its function records is in use.  QuickJS allocates these
 *      zeroed, and their size identifies them.
 *   3. A script that exceeded the limit is ended at the next poll, unless a garbage collection
 *      frees enough.
 *
 * The blocks that every engine needs come from one large block, the ground, and are freed with
 * it.  This makes creating and freeing an engine fast.  It also means that creation fails before
 * it starts, or not at all: QuickJS does not survive a failure in between.
 */
#include <weft/base.h>
#include "engine.h"

/* Slightly more than a new context with all its globals uses. */
#define GROUND_BYTES ((size_t)272 << 10)
#define LIMIT_MIN    ((size_t)256 << 10) /* minimum of memory_bytes; see js.h */

enum { PLAIN, IN_GROUND, RECORD };

struct head {
	size_t size;
	size_t kind; /* a full word, so that the payload is aligned for any type */
};

#define SMALL_BYTES ((size_t)4096) /* size of an arena; up to this a block is small */
#define ITEMS_MAX   4              /* one array may have this many times the limit */
#define FAR_BEYOND  64             /* times the limit; see js.h */

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
js_memory_refuse(weft_js *js)
{
	js->refused = true;
	return NULL;
}

/* Invariants 1 and 2. */
static bool
admit(weft_js *js, size_t size, bool grows)
{
	size_t limit = js->opts.memory_bytes;
	size_t whole = js->memory_used + sizeof(struct head) + size;

	if (whole <= limit)
		return true;
	js->over = true;
	return (grows || size <= SMALL_BYTES || js->records > 0) && whole / FAR_BEYOND <= limit;
}

static struct head *
cut(weft_js *js, size_t size)
{
	size_t whole = (sizeof(struct head) + size + 15) & ~(size_t)15;
	struct head *head = (struct head *)(void *)(js->ground + js->ground_used);

	if (!js->ground || whole > GROUND_BYTES - js->ground_used)
		return NULL;
	js->ground_used += whole;
	head->kind = IN_GROUND;
	return head;
}

static void *
js_memory_make(weft_js *js, size_t size, bool grows)
{
	struct head *head = NULL;

	if (size > SIZE_MAX / 2 || !admit(js, size, grows))
		return js_memory_refuse(js);
	if (!js->ground_closed)
		head = cut(js, size);
	if (!head) {
		head = weft_alloc(sizeof(*head) + size);
		if (!head)
			return js_memory_refuse(js);
		head->kind = PLAIN;
	}
	head->size = size;
	js->memory_used += sizeof(*head) + size;
	return head + 1;
}

/* QuickJS initializes the reference count in its header only in blocks that have one.  Zeroing
 * it makes is_string() reliable. */
static void *
allocate(void *opaque, size_t size)
{
	void *made = js_memory_make(opaque, size, false);

	if (made && size >= sizeof(uint64_t))
		memset(made, 0, sizeof(uint64_t));
	return made;
}

/* Invariant 2. */
static void
mark_record(weft_js *js, void *made, size_t size)
{
	struct head *head = head_of(made);

	if (js->learning && size > js->record_bytes)
		js->record_bytes = size;
	if (size != js->record_bytes || head->kind != PLAIN)
		return;
	head->kind = RECORD;
	js->records++;
}

static void *
allocate_clear(void *opaque, size_t count, size_t size)
{
	void *made;

	if (size > 0 && count > SIZE_MAX / size)
		return js_memory_refuse(opaque);
	made = js_memory_make(opaque, count * size, false);
	if (!made)
		return NULL;
	mark_record(opaque, made, count * size);
	return memset(made, 0, count * size);
}

static void
js_memory_release(void *opaque, void *ptr)
{
	weft_js *js = opaque;
	struct head *head;

	if (!ptr)
		return;
	head = head_of(ptr);
	js->memory_used -= sizeof(*head) + head->size;
	if (head->kind == RECORD)
		js->records--;
	if (head->kind != IN_GROUND)
		weft_release(head);
}

/* Whether the block is a string that is being built.  Property tables have a reference count and
 * grow, too, but their type is not 0. */
static bool
is_string(const void *ptr, size_t size)
{
	struct {
		uint16_t index;
		uint8_t size_class, type;
		uint32_t references;
	} header = { 0 };

	if (size >= sizeof(header))
		memcpy(&header, ptr, sizeof(header));
	return header.references > 0 && header.type == 0;
}

/* Whether the block may be the items of an array: each has a tag, a small number in 64 bits.
 * Other tables may match, too. */
static bool
is_items(const void *ptr, size_t size)
{
	const char *at = (const char *)ptr + sizeof(uint64_t);
	const char *end = (const char *)ptr + size;
	int64_t item[2];

	if (size < sizeof(uint64_t) || (size_t)(end - at) % sizeof(item) != 0)
		return false;
	for (; at < end; at += sizeof(item)) {
		memcpy(item, at, sizeof(item));
		if (item[1] < JS_TAG_FIRST || item[1] > JS_TAG_FLOAT64)
			return false;
	}
	return true;
}

/* Whether a script can make the block arbitrarily large, and QuickJS survives if it cannot grow. */
static bool
is_bearing(const void *ptr, size_t before, size_t size, size_t limit)
{
	return is_string(ptr, before) || (size / ITEMS_MAX > limit && is_items(ptr, before));
}

static void *
resize(void *opaque, void *ptr, size_t size)
{
	weft_js *js = opaque;
	size_t limit = js->opts.memory_bytes;
	size_t before = usable_size(ptr);
	void *moved;

	if (!ptr)
		return allocate(js, size);
	if (size == 0) {
		js_memory_release(js, ptr);
		return NULL;
	}
	if (size <= before && size >= before / 2)
		return ptr;
	moved = js_memory_make(js, size, !is_bearing(ptr, before, size, limit));
	if (moved) {
		memcpy(moved, ptr, before < size ? before : size);
		js_memory_release(js, ptr);
	}
	return moved;
}

const JSMallocFunctions weft__js_memory = {
	.js_calloc = allocate_clear,
	.js_malloc = allocate,
	.js_free = js_memory_release,
	.js_realloc = resize,
	.js_malloc_usable_size = usable_size,
};

/* The largest zeroed block that the parser allocates for an empty text is the function record. */
int
weft__js_learn_parser(weft_js *js)
{
	JSValue made;

	js->learning = true;
	made = JS_Eval(js->ctx, "", 0, "<empty>", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
	js->learning = false;
	if (JS_IsException(made))
		return -1;
	JS_FreeValue(js->ctx, made);
	return 0;
}

bool
weft__js_ground_open(weft_js *js)
{
	if (js->opts.memory_bytes < LIMIT_MIN)
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
