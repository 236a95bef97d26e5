/* map_test.c - the map, compared with a plain array. */
#include <stdio.h>
#include "store/data/map.h"
#include "test.h"

#define NAMES 300

struct entry {
	struct node node;
	int number;
	char name[];
};

static struct memory memory = { .random = 7 };
static struct map map;
static bool in[NAMES];

/* Names of different lengths; their order is that of their numbers. */
static struct slice
name_of(int i, char name[8])
{
	return (struct slice){ name, (size_t)snprintf(name, 8, i % 2 ? "%03dx" : "%03d", i) };
}

static int
depth_of(const struct node *node)
{
	int left = node ? depth_of(node->left) : 0, right = node ? depth_of(node->right) : 0;

	if (!node)
		return 0;
	CHECK(!node->left || node->left->priority <= node->priority);
	CHECK(!node->right || node->right->priority <= node->priority);
	CHECK_EQ(node->count,
	         1 + (node->left ? node->left->count : 0) + (node->right ? node->right->count : 0));
	return 1 + (left > right ? left : right);
}

static void
check_map(void)
{
	size_t before = 0;
	char name[8];

	for (int i = 0; i < NAMES; i++) {
		struct entry *entry = map_find(&map, name_of(i, name));

		CHECK_EQ(entry != NULL, in[i]);
		CHECK_EQ(map_before(&map, name_of(i, name), false), before);
		CHECK_EQ(map_before(&map, name_of(i, name), true), before + in[i]);
		if (!entry)
			continue;
		CHECK_EQ(entry->number, i);
		CHECK(map_at(&map, before) == entry);
		before++;
	}
	CHECK_EQ(map_count(&map), before);
	CHECK(map_at(&map, before) == NULL);
	(void)depth_of(map.root);
}

TEST(map_behaves_like_a_plain_array)
{
	uint64_t state = test_seed();
	char name[8];

	memset(in, 0, sizeof(in));
	map_init(&map, &memory, offsetof(struct entry, name));
	for (int step = 0; step < 20000; step++) {
		int i = (int)(test_random(&state) % NAMES);
		struct slice slice = name_of(i, name);

		if (in[i])
			map_remove(&map, map_find(&map, slice));
		else
			((struct entry *)map_add(&map, slice))->number = i;
		in[i] = !in[i];
		if (step % 500 == 0)
			check_map();
	}
	map_clear(&map, NULL);
	CHECK_EQ(map_count(&map), 0);
	CHECK_EQ(memory.used, 0);
}

/* Names that arrive in their order would make a plain tree a list. */
TEST(map_stays_shallow_whatever_is_added)
{
	char text[16];

	map_init(&map, &memory, offsetof(struct entry, name));
	for (int i = 0; i < 100000; i++)
		(void)map_add(&map, (struct slice){ text, (size_t)snprintf(text, 16, "%08d", i) });
	CHECK(depth_of(map.root) < 100);
	map_clear(&map, NULL);
	CHECK_EQ(memory.used, 0);
}

static void
count_number(void *entry, struct memory *of)
{
	CHECK(of == &memory);
	in[((struct entry *)entry)->number] = true;
}

TEST(map_clear_passes_each_struct_once)
{
	char name[8];

	memset(in, 0, sizeof(in));
	map_init(&map, &memory, offsetof(struct entry, name));
	for (int i = 0; i < NAMES; i++)
		((struct entry *)map_add(&map, name_of(i, name)))->number = i;
	map_clear(&map, count_number);
	for (int i = 0; i < NAMES; i++)
		CHECK(in[i]);
	CHECK_EQ(memory.used, 0);
}

TEST(names_are_in_byte_order_and_a_prefix_comes_first)
{
	static const char *const names[] = { "", "a", "ab", "b", "\xff" };

	map_init(&map, &memory, offsetof(struct entry, name));
	for (int i = 4; i >= 0; i--)
		(void)map_add(&map, (struct slice){ names[i], strlen(names[i]) });
	for (size_t i = 0; i < 5; i++)
		CHECK(slice_is(map_name(&map, map_at(&map, i)), names[i]));
	map_clear(&map, NULL);
}

/* --- patterns --------------------------------------------------------------- */

static bool
matches(const char *pattern, const char *text)
{
	return slice_matches((struct slice){ pattern, strlen(pattern) },
	                     (struct slice){ text, strlen(text) });
}

TEST(pattern_matches_as_a_glob)
{
	CHECK(matches("*", ""));
	CHECK(matches("a*c*", "abcd"));
	CHECK(!matches("a?c", "ac"));
	CHECK(matches("h[ae]llo", "hello"));
	CHECK(!matches("h[^a-z]llo", "hello"));
	CHECK(matches("[z-a]", "m"));
	CHECK(matches("[\\]x]", "]"));
	CHECK(matches("\\*", "*"));
	CHECK(!matches("\\*", "a"));
	CHECK(matches("[a", "a"));
}
