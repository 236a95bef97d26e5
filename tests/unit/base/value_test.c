/* value_test.c - values: how they are created, shared and dropped.
 *
 * The runner counts the library's allocations.  So an owner too many shows as a leak, and one
 * too few as a use after free under the sanitizer.
 */
#include <pthread.h>
#include <sys/uio.h>
#include "base/sys.h"
#include "base/value.h"
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

/* The error that `value` holds, or 0 if it is not an error. */
static int64_t
error_of(weft_value value)
{
	return value.type == &weft_type_error ? value.as.integer : 0;
}

/* --- custom types ------------------------------------------------------- */

/* A thing counts its own owners. */
struct thing {
	int owners, drops;
};

static void
thing_drop(void *ptr)
{
	struct thing *thing = ptr;

	CHECK(thing->owners > 0);
	thing->owners--;
	thing->drops++;
}

static void
thing_share(void *ptr)
{
	((struct thing *)ptr)->owners++;
}

static const weft_type shared = { .name = "shared", .drop = thing_drop, .share = thing_share };
static const weft_type single = { .name = "single", .drop = thing_drop };
static const weft_type endless = { .name = "endless" };

TEST(a_pointer_is_dropped_once_by_the_drop_function_of_its_type)
{
	struct thing thing = { .owners = 1 };
	weft_value value = weft_value_ptr(&single, &thing);

	CHECK(value.type == &single && value.as.ptr == &thing);
	weft_value_drop(&value);
	CHECK_EQ(thing.drops, 1);
	CHECK(value.type == NULL);
	weft_value_drop(&value);
	CHECK_EQ(thing.drops, 1);
}

TEST(a_pointer_whose_type_has_no_drop_function_can_be_dropped)
{
	weft_value value = weft_value_ptr(&endless, NULL);

	weft_value_drop(&value);
	CHECK(value.type == NULL);
}

TEST(the_share_function_of_a_type_is_called_for_each_new_owner)
{
	struct thing thing = { .owners = 1 };
	weft_value value = weft_value_ptr(&shared, &thing), other;

	OK(weft_value_share(&value, &other));
	CHECK(other.type == &shared && other.as.ptr == &thing);
	CHECK_EQ(thing.owners, 2);
	weft_value_drop(&value);
	weft_value_drop(&other);
	CHECK_EQ(thing.owners, 0);
}

TEST(sharing_an_unshareable_type_is_refused_and_writes_nothing)
{
	struct thing thing = { .owners = 1 };
	weft_value value = weft_value_ptr(&single, &thing);
	weft_value other = weft_value_integer(7);

	CHECK_EQ(weft_value_share(&value, &other), WEFT_EPERM);
	CHECK_EQ(other.as.integer, 7);
	CHECK_EQ(thing.owners, 1);
	weft_value_drop(&value);
}

static weft_value self;

static void
drop_again(void *ptr)
{
	++*(int *)ptr;
	weft_value_drop(&self);
}

TEST(a_drop_function_that_drops_its_own_value_again_is_called_once)
{
	static const weft_type type = { .name = "twice", .drop = drop_again };
	int drops = 0;

	self = weft_value_ptr(&type, &drops);
	weft_value_drop(&self);
	CHECK_EQ(drops, 1);
}

/* --- plain values ------------------------------------------------------- */

TEST(integers_numbers_and_errors_are_shared_by_copying)
{
	weft_value values[3] = { weft_value_integer(INT64_MIN),
		                 weft_value_error(WEFT_EPIPE),
		                 { &weft_type_number, { .number = 2.5 } } };
	weft_value other;

	CHECK(values[0].type == &weft_type_integer);
	CHECK(values[0].as.integer == INT64_MIN);
	CHECK_EQ(error_of(values[1]), WEFT_EPIPE);
	for (int i = 0; i < 3; i++) {
		OK(weft_value_share(&values[i], &other));
		CHECK(other.type == values[i].type);
		CHECK_EQ(other.as.integer, values[i].as.integer);
		weft_value_drop(&other);
		weft_value_drop(&values[i]);
		CHECK(values[i].type == NULL);
	}
}

TEST(the_empty_value_can_be_shared_and_dropped)
{
	weft_value none = { 0 }, other = weft_value_integer(1);

	OK(weft_value_share(&none, &other));
	CHECK(other.type == NULL);
	weft_value_drop(&none);
	weft_value_drop(NULL);
}

TEST(a_span_has_the_layout_of_an_iovec_and_excludes_the_nul_of_a_text)
{
	weft_span span = weft_text("abc");
	struct iovec vec;

	memcpy(&vec, &span, sizeof(vec));
	CHECK_EQ(vec.iov_len, 3);
	CHECK(memcmp(vec.iov_base, "abc", 3) == 0);
	CHECK_EQ(weft_text("").size, 0);
	CHECK_EQ(weft_text(NULL).size, 0);
}

/* --- text and bytes ----------------------------------------------------- */

TEST(text_and_bytes_are_copies_that_outlive_their_source)
{
	char from[] = "a\0b";
	weft_value text = weft_value_text(from);
	weft_value bytes = weft_value_bytes((weft_span){ from, 3 });
	const weft_span *span = bytes.as.ptr;

	memset(from, 'x', sizeof(from));
	CHECK(text.type == &weft_type_text && bytes.type == &weft_type_bytes);
	CHECK_STR(text.as.ptr, "a");
	CHECK_EQ(span->size, 3);
	CHECK(memcmp(span->data, "a\0b", 3) == 0);
	weft_value_drop(&text);
	weft_value_drop(&bytes);
}

TEST(zero_bytes_make_a_valid_value)
{
	weft_value bytes = weft_value_bytes((weft_span){ NULL, 0 });
	const weft_span *span = bytes.as.ptr;

	CHECK(bytes.type == &weft_type_bytes);
	CHECK_EQ(span->size, 0);
	weft_value_drop(&bytes);
}

TEST(owners_of_a_text_share_one_copy_and_the_last_one_frees_it)
{
	int64_t held = test_live_allocations();
	weft_value first = weft_value_text("common"), others[10];

	for (int i = 0; i < 10; i++) {
		OK(weft_value_share(&first, &others[i]));
		CHECK(others[i].as.ptr == first.as.ptr);
	}
	CHECK_EQ(test_live_allocations(), held + 1);
	weft_value_drop(&first);
	for (int i = 0; i < 10; i++) {
		CHECK_STR(others[i].as.ptr, "common");
		weft_value_drop(&others[i]);
	}
	CHECK_EQ(test_live_allocations(), held);
}

/* Share and drop the given value many times, then drop it, too. */
static void *
share_and_drop(void *arg)
{
	weft_value own = *(weft_value *)arg, more[8];

	for (int round = 0; round < 10000; round++) {
		for (int i = 0; i < 8; i++)
			OK(weft_value_share(&own, &more[i]));
		for (int i = 0; i < 8; i++)
			weft_value_drop(&more[i]);
	}
	weft_value_drop(&own);
	return NULL;
}

TEST(owners_on_several_threads_share_and_drop_concurrently)
{
	weft_value value = weft_value_bytes(weft_text("abc")), owned[4];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		OK(weft_value_share(&value, &owned[i]));
		OK(pthread_create(&threads[i], NULL, share_and_drop, &owned[i]));
	}
	weft_value_drop(&value);
	for (int i = 0; i < 4; i++)
		OK(pthread_join(threads[i], NULL));
}

/* --- lists -------------------------------------------------------------- */

static weft_value
list_of(weft_value first, weft_value second)
{
	weft_value value = weft__value_list(2);
	weft_list *list = value.as.ptr;

	CHECK(value.type == &weft_type_list);
	CHECK_EQ(list->count, 2);
	CHECK(!list->items[0].type && !list->items[1].type);
	list->items[0] = first;
	list->items[1] = second;
	return value;
}

TEST(a_list_drops_its_items_with_its_last_owner)
{
	struct thing thing = { .owners = 1 };
	weft_value inner = list_of(weft_value_text("a"), weft_value_text("b"));
	weft_value list = list_of(weft_value_ptr(&shared, &thing), inner);
	weft_value other;

	OK(weft_value_share(&list, &other));
	weft_value_drop(&list);
	CHECK_EQ(thing.owners, 1);
	weft_value_drop(&other);
	CHECK_EQ(thing.owners, 0);
	CHECK_EQ(thing.drops, 1);
}

TEST(a_list_takes_ownership_of_its_items)
{
	struct thing thing = { .owners = 1 };
	weft_value items[2] = { weft_value_integer(1), weft_value_ptr(&single, &thing) };
	weft_value list = weft_value_list(items, 2);
	weft_value none = weft_value_list(NULL, 0);

	CHECK(list.type == &weft_type_list && none.type == &weft_type_list);
	CHECK_EQ(((weft_list *)list.as.ptr)->items[0].as.integer, 1);
	CHECK_EQ(((weft_list *)none.as.ptr)->count, 0);
	weft_value_drop(&list);
	weft_value_drop(&none);
	CHECK_EQ(thing.drops, 1);
	CHECK_MISUSE(weft_value_list(NULL, 1).as.integer, WEFT_EINVAL);
}

TEST(a_list_can_be_shared_only_if_every_nested_item_can_be_shared)
{
	struct thing thing = { .owners = 1 };
	weft_value inner = list_of(weft_value_text("a"), weft_value_ptr(&single, &thing));
	weft_value list = list_of(weft_value_integer(1), inner), other;

	CHECK_EQ(weft_value_share(&list, &other), WEFT_EPERM);
	weft_value_drop(&list);
	CHECK_EQ(thing.drops, 1);
}

TEST(an_item_with_another_owner_outlives_its_list)
{
	weft_value inner = list_of(weft_value_text("a"), (weft_value){ 0 });
	weft_value kept, list;

	OK(weft_value_share(&inner, &kept));
	list = list_of(inner, (weft_value){ 0 });
	weft_value_drop(&list);
	CHECK_STR(((weft_list *)kept.as.ptr)->items[0].as.ptr, "a");
	weft_value_drop(&kept);
}

/* `depth` nested lists. */
static weft_value
nest(int depth)
{
	weft_value value = weft_value_integer(1);

	for (int i = 0; i < depth; i++)
		value = list_of(value, weft_value_text("x"));
	return value;
}

TEST(lists_can_be_shared_up_to_64_deep_and_dropped_at_any_depth)
{
	weft_value list = nest(64), other;

	OK(weft_value_share(&list, &other));
	weft_value_drop(&list);
	weft_value_drop(&other);
	list = nest(65);
	CHECK_EQ(weft_value_share(&list, &other), WEFT_EPERM);
	weft_value_drop(&list);
	list = nest(300000); /* no stack could hold a recursion of that depth */
	weft_value_drop(&list);
}

TEST(an_empty_list_is_a_list)
{
	weft_value list = weft__value_list(0), other;

	CHECK(list.type == &weft_type_list);
	OK(weft_value_share(&list, &other));
	weft_value_drop(&other);
	weft_value_drop(&list);
}

/* --- no memory, and misuse ---------------------------------------------- */

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(a_value_created_without_memory_is_an_error)
{
	const struct weft__sys *before = weft__sys;
	weft_value text = weft_value_text("shared without memory"), other;
	struct weft__sys sys = *before;

	sys.alloc = no_memory;
	weft__sys = &sys;
	CHECK_EQ(error_of(weft_value_text("abc")), WEFT_ENOMEM);
	CHECK_EQ(error_of(weft_value_bytes(weft_text("abc"))), WEFT_ENOMEM);
	CHECK_EQ(error_of(weft__value_list(3)), WEFT_ENOMEM);
	OK(weft_value_share(&text, &other));
	weft__sys = before;
	weft_value_drop(&text);
	weft_value_drop(&other);
}

/* Sanitizers abort at sizes that malloc refuses, so this fails instead.  A size that overflowed
 * would be small. */
static void *
refuse_huge(size_t size)
{
	CHECK(size > SIZE_MAX / 32);
	return NULL;
}

TEST(sizes_near_the_address_space_limit_fail_without_overflow)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys sys = *before;

	sys.alloc = refuse_huge;
	weft__sys = &sys;
	for (size_t less = 0; less < 64; less++) {
		weft_span huge = { "", SIZE_MAX - less };

		CHECK_EQ(error_of(weft_value_bytes(huge)), WEFT_ENOMEM);
		CHECK_EQ(error_of(weft__value_list(SIZE_MAX / 16 - less)), WEFT_ENOMEM);
	}
	weft__sys = before;
}

TEST(invalid_arguments_for_values_are_misuse)
{
	static const weft_type *const ours[] = {
		&weft_type_integer, &weft_type_number, &weft_type_error,
		&weft_type_text,    &weft_type_bytes,  &weft_type_list,
	};
	weft_value value = weft_value_integer(1), other;
	weft_span nowhere = { NULL, 1 };

	CHECK_MISUSE(error_of(weft_value_error(0)), WEFT_EINVAL);
	CHECK_MISUSE(error_of(weft_value_error(5)), WEFT_EINVAL);
	CHECK_MISUSE(error_of(weft_value_ptr(NULL, &value)), WEFT_EINVAL);
	for (int i = 0; i < 6; i++)
		CHECK_MISUSE(error_of(weft_value_ptr(ours[i], &value)), WEFT_EINVAL);
	CHECK_MISUSE(error_of(weft_value_text(NULL)), WEFT_EINVAL);
	CHECK_MISUSE(error_of(weft_value_bytes(nowhere)), WEFT_EINVAL);
	CHECK_MISUSE(weft_value_share(NULL, &other), WEFT_EINVAL);
	CHECK_MISUSE(weft_value_share(&value, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_value_share(&value, &value), WEFT_EINVAL);
}
