/* memory.c - the engine's memory: weft's, counted and bounded.
 *
 * Each block begins with its size, since weft's allocator does not tell.  A block never
 * grows in place: QuickJS asks for room ahead, so that is rare.  QuickJS cuts what is small
 * from arenas of 4 KiB that it asks for here.  Each of its other blocks begins with a header
 * of 8 bytes, in which it counts references.
 *
 * QuickJS does not survive a refusal everywhere.  Its parser writes to buffers without
 * checking whether they grew, and some constructors use an object's properties without
 * checking whether there was memory for them.  So the limit is hard for big blocks only.
 *
 *   1. A big block that is asked for at once, a string that grows, and the items of a big
 *      array are refused beyond the limit.  QuickJS survives that, outside of its parser.
 *   2. A small block, any other that grows, and all of a parser is refused far beyond the
 *      limit only.  What a parser or a built-in function needs is bounded by its input, which
 *      is a big block: some 60 times that, twice in memory itself.  A parser runs while one
 *      of its function records is in use; QuickJS clears these as it makes them, and they are
 *      known by their size.
 *   3. A script that went beyond the limit is ended at the next poll, unless what it took was
 *      garbage.
 *
 * What every engine has is cut from one piece, the ground, and given back with it.  So an
 * engine is made and freed quickly; and making one fails before it has begun, or not at
 * all: QuickJS does not survive a failure there.
 */
#include <weft/base.h>
#include "engine.h"

/* Enough for a context with all that is put into it at first; a little more than used. */
#define GROUND_BYTES ((size_t)272 << 10)
#define LIMIT_MIN    ((size_t)256 << 10) /* of memory_bytes; see js.h */

enum { PLAIN, IN_GROUND, RECORD };

struct head {
	size_t size;
	size_t kind; /* a word, so that what follows is aligned for anything */
};

#define SMALL_BYTES ((size_t)4096) /* of an arena; what is not bigger is small */
#define ITEMS_MAX   4              /* times the limit, of one array */
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
refuse(weft_js *js)
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
make(weft_js *js, size_t size, bool grows)
{
	struct head *head = NULL;

	if (size > SIZE_MAX / 2 || !admit(js, size, grows))
		return refuse(js);
	if (!js->ground_closed)
		head = cut(js, size);
	if (!head) {
		head = weft_alloc(sizeof(*head) + size);
		if (!head)
			return refuse(js);
		head->kind = PLAIN;
	}
	head->size = size;
	js->memory_used += sizeof(*head) + size;
	return head + 1;
}

/* QuickJS sets the references of its header only if there are any: see is_string(). */
static void *
allocate(void *opaque, size_t size)
{
	void *made = make(opaque, size, false);

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
		return refuse(opaque);
	made = make(opaque, count * size, false);
	if (!made)
		return NULL;
	mark_record(opaque, made, count * size);
	return memset(made, 0, count * size);
}

static void
release(void *opaque, void *ptr)
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

/* A string that is being built.  Of blocks with references, tables of properties grow too:
 * they have a type. */
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

/* The items of an array, by their tags: 64 bits of a small number each.  Other tables may
 * look the same. */
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

/* Whether a script can make a block as big as it likes, and QuickJS survives that the block
 * does not grow. */
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
		release(js, ptr);
		return NULL;
	}
	if (size <= before && size >= before / 2)
		return ptr;
	moved = make(js, size, !is_bearing(ptr, before, size, limit));
	if (moved) {
		memcpy(moved, ptr, before < size ? before : size);
		release(js, ptr);
	}
	return moved;
}

const JSMallocFunctions weft__js_memory = {
	.js_calloc = allocate_clear,
	.js_malloc = allocate,
	.js_free = release,
	.js_realloc = resize,
	.js_malloc_usable_size = usable_size,
};

/* The record of a function is the biggest block that the parser of an empty text clears. */
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
