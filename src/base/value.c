/* value.c - values, and how each type is shared and dropped.
 *
 * Text, bytes and lists are one block each: a header with the number of owners, then what
 * as.ptr points to, then the contents.
 *
 *   1. head.owners is the number of values that point to the block.  The call that makes it 0
 *      frees the block.
 *   2. While there is more than one owner, the contents are not written.
 *   3. A list never contains itself, so every walk ends.
 *
 * Nested lists are freed with a queue instead of recursion: a drop cannot fail, so it must
 * handle any depth.
 */
#include <string.h>
#include <sys/uio.h>
#include "base/thread.h"
#include "base/value.h"

#define DEPTH_MAX 64 /* maximum nesting of lists that can be shared */

_Static_assert(sizeof(weft_span) == sizeof(struct iovec)
                       && offsetof(weft_span, size) == offsetof(struct iovec, iov_len),
               "weft_span is laid out as struct iovec");

struct head {
	struct head *next; /* links lists that are being freed; else unused */
	weft__a64 owners;
};

static struct head *
head_of(void *ptr)
{
	return (struct head *)ptr - 1;
}

/* A block with one owner and `size` bytes after its header, or NULL. */
static void *
block_new(size_t size)
{
	struct head *head;

	if (size > SIZE_MAX - sizeof(*head))
		return NULL;
	head = weft__sys->alloc(sizeof(*head) + size);
	if (!head)
		return NULL;
	head->next = NULL;
	weft__store(&head->owners, 1, WEFT__RELAXED);
	return head + 1;
}

/* The caller is an owner itself, so the block exists: relaxed is enough. */
static void
block_share(void *ptr)
{
	uint64_t before = weft__add(&head_of(ptr)->owners, 1, WEFT__RELAXED);

	weft__assert(before > 0);
}

/* Remove one owner; true if it was the last.  Every owner releases and the last one acquires
 * (this same call), so all accesses by any owner happen before the block is freed. */
static bool
block_unshare(void *ptr)
{
	uint64_t before = weft__add(&head_of(ptr)->owners, UINT64_MAX, WEFT__ACQ_REL);

	weft__assert(before > 0);
	return before == 1;
}

static void
block_drop(void *ptr)
{
	if (block_unshare(ptr))
		weft__sys->release(head_of(ptr));
}

/* Drop the items of a list; inner lists without another owner are added to `queue`. */
static void
drop_items(weft_list *list, struct head **queue)
{
	for (size_t i = 0; i < list->count; i++) {
		weft_value item = list->items[i];

		if (item.type != &weft_type_list) {
			weft_value_drop(&item);
		} else if (block_unshare(item.as.ptr)) {
			head_of(item.as.ptr)->next = *queue;
			*queue = head_of(item.as.ptr);
		}
	}
}

static void
list_drop(void *ptr)
{
	struct head *queue = NULL, *head;

	if (!block_unshare(ptr))
		return;
	for (head = head_of(ptr); head; head = queue) {
		queue = head->next;
		drop_items((weft_list *)(head + 1), &queue);
		weft__sys->release(head);
	}
}

/* For types whose contents are in the value itself. */
static void
share_nothing(void *ptr)
{
	(void)ptr;
}

const weft_type weft_type_integer = { .name = "integer", .share = share_nothing };
const weft_type weft_type_number = { .name = "number", .share = share_nothing };
const weft_type weft_type_error = { .name = "error", .share = share_nothing };
const weft_type weft_type_text = { .name = "text", .drop = block_drop, .share = block_share };
const weft_type weft_type_bytes = { .name = "bytes", .drop = block_drop, .share = block_share };
const weft_type weft_type_list = { .name = "list", .drop = list_drop, .share = block_share };

static bool
is_ours(const weft_type *type)
{
	return type == &weft_type_integer || type == &weft_type_number || type == &weft_type_error
	       || type == &weft_type_text || type == &weft_type_bytes || type == &weft_type_list;
}

static weft_value
error_value(int error)
{
	return (weft_value){ &weft_type_error, { .integer = error } };
}

weft_span
weft_text(const char *text)
{
	return (weft_span){ text, text ? strlen(text) : 0 };
}

weft_value
weft_value_integer(int64_t integer)
{
	return (weft_value){ &weft_type_integer, { .integer = integer } };
}

weft_value
weft_value_error(int error)
{
	if (error >= 0)
		error = weft__misuse(WEFT_EINVAL, "weft_value_error: error must be negative");
	return error_value(error);
}

weft_value
weft_value_ptr(const weft_type *type, void *ptr)
{
	if (!type)
		return error_value(weft__misuse(WEFT_EINVAL, "weft_value_ptr: type is NULL"));
	if (is_ours(type))
		return error_value(weft__misuse(
			WEFT_EINVAL,
			"weft_value_ptr: type must be defined by the program, not one of the "
			"library's types"));
	return (weft_value){ type, { .ptr = ptr } };
}

weft_value
weft_value_text(const char *text)
{
	size_t size;
	char *copy;

	if (!text)
		return error_value(weft__misuse(WEFT_EINVAL, "weft_value_text: text is NULL"));
	size = strlen(text) + 1;
	copy = block_new(size);
	if (!copy)
		return error_value(WEFT_ENOMEM);
	memcpy(copy, text, size);
	return (weft_value){ &weft_type_text, { .ptr = copy } };
}

weft_value
weft_value_bytes(weft_span bytes)
{
	weft_span *copy = NULL;

	if (!bytes.data && bytes.size > 0)
		return error_value(weft__misuse(
			WEFT_EINVAL, "weft_value_bytes: data is NULL but size is not 0"));
	if (bytes.size <= SIZE_MAX - sizeof(*copy))
		copy = block_new(sizeof(*copy) + bytes.size);
	if (!copy)
		return error_value(WEFT_ENOMEM);
	*copy = (weft_span){ copy + 1, bytes.size };
	if (bytes.size > 0)
		memcpy(copy + 1, bytes.data, bytes.size);
	return (weft_value){ &weft_type_bytes, { .ptr = copy } };
}

weft_value
weft__value_list(size_t count)
{
	weft_list *list = NULL;

	if (count <= (SIZE_MAX - sizeof(*list)) / sizeof(weft_value))
		list = block_new(sizeof(*list) + count * sizeof(weft_value));
	if (!list)
		return error_value(WEFT_ENOMEM);
	*list = (weft_list){ count, (weft_value *)(list + 1) };
	memset(list->items, 0, count * sizeof(weft_value));
	return (weft_value){ &weft_type_list, { .ptr = list } };
}

weft_value
weft_value_list(weft_value *items, size_t count)
{
	weft_value list;

	if (!items && count > 0)
		return error_value(weft__misuse(
			WEFT_EINVAL, "weft_value_list: items is NULL but count is not 0"));
	list = weft__value_list(count);
	for (size_t i = 0; i < count; i++)
		if (list.type != &weft_type_list)
			weft_value_drop(&items[i]);
		else
			((weft_list *)list.as.ptr)->items[i] = items[i];
	return list;
}

/* Whether `value`, at nesting level `depth`, can have another owner. */
static bool
is_shareable(const weft_value *value, int depth)
{
	const weft_list *list = value->as.ptr;

	if (!value->type)
		return true;
	if (value->type != &weft_type_list)
		return value->type->share != NULL;
	for (size_t i = 0; i < list->count; i++)
		if (depth >= DEPTH_MAX || !is_shareable(&list->items[i], depth + 1))
			return false;
	return true;
}

int
weft_value_share(const weft_value *value, weft_value *out)
{
	if (!value || !out || value == out)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_value_share: value and out must not be NULL and must differ");
	if (!is_shareable(value, 0))
		return weft__fail(
			WEFT_EPERM,
			"weft_value_share: the value's type cannot be shared, or its lists are "
			"nested too deeply");
	if (value->type)
		value->type->share(value->as.ptr);
	*out = *value;
	return 0;
}

/* Clears the value first, so that a drop function that calls this again finds nothing. */
void
weft_value_drop(weft_value *value)
{
	weft_value ended;

	if (!value || !value->type)
		return;
	ended = *value;
	*value = (weft_value){ 0 };
	if (ended.type->drop)
		ended.type->drop(ended.as.ptr);
}
