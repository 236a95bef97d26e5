/* table_test.c - the hash table: lookups, growth, and scans. */
#include <stdio.h>
#include "store/table.h"
#include "test.h"

#define MANY 20000

struct entry {
	struct node node;
	bool in;   /* in the table */
	int shown; /* times returned by a scan or walk */
	char name[16];
};

static struct heap heap = { .seed = 1, .drawn = 1 };
static struct table table;
static struct entry entries[MANY];

static void
begin(void)
{
	memset(entries, 0, sizeof(entries));
	table_init(&table, &heap, offsetof(struct entry, name));
}

static void
end(void)
{
	table_clear(&table, NULL, NULL);
	CHECK_EQ(heap.used, 0);
}

static size_t
name_of(int i, char *name)
{
	return (size_t)snprintf(name, 16, "key:%d", i);
}

static void
add(int i)
{
	size_t size = name_of(i, entries[i].name);

	table_add(&table, &entries[i].node, size);
	entries[i].in = true;
}

static void
drop(int i)
{
	table_remove(&table, &entries[i].node);
	entries[i].in = false;
}

static struct node *
find(int i)
{
	char name[16];

	return table_find(&table, (struct word){ name, name_of(i, name) });
}

TEST(table_finds_exactly_its_entries)
{
	begin();
	for (int i = 0; i < MANY; i += 2)
		add(i);
	for (int i = 0; i < MANY; i += 4)
		drop(i);
	for (int i = 0; i < MANY; i++)
		CHECK(find(i) == (entries[i].in ? &entries[i].node : NULL));
	CHECK_EQ(table_count(&table), MANY / 4);
	end();
}

TEST(table_moves_a_few_nodes_at_a_time_when_it_grows)
{
	size_t slots = 0;
	int grown = 0;

	begin();
	for (int i = 0; i < MANY; i++) {
		size_t before = table.now.mask;

		add(i);
		if (table.now.mask != before && i > 0) {
			grown++;
			CHECK(i < 8 || table.old.used > (size_t)i / 2);
		}
		slots = table.now.mask + 1;
	}
	CHECK(grown > 10);
	CHECK(slots >= MANY / 2);
	end();
}

TEST(table_frees_slots_when_it_empties)
{
	size_t most;

	begin();
	for (int i = 0; i < MANY; i++)
		add(i);
	most = heap.used;
	for (int i = 0; i < MANY; i++)
		drop(i);
	for (int i = 0; i < 100; i++) { /* so that the last slots are moved */
		add(0);
		drop(0);
	}
	CHECK(heap.used < most / 100);
	end();
}

TEST(table_walk_returns_each_node_once_while_nodes_move)
{
	struct walk walk;
	struct node *node;
	int count = 0;

	begin();
	for (int i = 0; i < 1030; i++)
		add(i);
	CHECK(table.old.slots != NULL);
	walk = table_walk(&table);
	while ((node = walk_next(&walk)) != NULL) {
		CHECK_EQ(((struct entry *)(void *)node)->shown++, 0);
		count++;
	}
	CHECK_EQ(count, 1030);
	end();
}

TEST(table_any_can_return_every_node)
{
	begin();
	for (int i = 0; i < 100; i++)
		add(i);
	for (int i = 0; i < 100000; i++)
		((struct entry *)(void *)table_any(&table))->shown++;
	for (int i = 0; i < 100; i++)
		CHECK(entries[i].shown > 100);
	end();
}

/* --- scans ---------------------------------------------------------------- */

static void
show(struct node *node, void *arg)
{
	struct entry *entry = (struct entry *)(void *)node;

	(void)arg;
	CHECK(entry->in);
	entry->shown++;
}

/* The first `stay` entries are in the table all the time.  Others are added and removed between
 * the steps of the scan. */
static void
scan_while(int stay, uint64_t seed, void (*change)(uint64_t *state, int stay))
{
	uint64_t cursor = 0, state = seed;
	int steps = 0;

	begin();
	for (int i = 0; i < stay; i++)
		add(i);
	do {
		cursor = table_scan(&table, cursor, show, NULL);
		change(&state, stay);
		CHECK(++steps < 10 * MANY);
	} while (cursor != 0);
	for (int i = 0; i < stay; i++)
		CHECK(entries[i].shown > 0);
	for (int i = 0; i < MANY; i++)
		if (entries[i].in)
			drop(i);
	end();
}

static void
grow(uint64_t *state, int stay)
{
	for (int tries = 0; tries < 40; tries++) {
		int i = stay + (int)(test_random(state) % (MANY - (unsigned)stay));

		if (!entries[i].in)
			add(i);
	}
}

/* Alternately removes nearly all of the others and adds them again. */
static void
shrink_and_grow(uint64_t *state, int stay)
{
	static bool drops;

	if (test_random(state) % 64 == 0)
		drops = !drops;
	for (int tries = 0; tries < 300; tries++) {
		int i = stay + (int)(test_random(state) % 4000);

		if (drops == entries[i].in)
			(drops ? drop : add)(i);
	}
}

TEST(table_scan_returns_all_permanent_entries_while_it_grows)
{
	uint64_t seed = test_seed();

	for (int stay = 1; stay < 600; stay += 37)
		scan_while(stay, seed + (uint64_t)stay, grow);
}

TEST(table_scan_returns_all_permanent_entries_while_it_grows_and_shrinks)
{
	uint64_t seed = test_seed();

	for (int stay = 1; stay < 200; stay += 13)
		scan_while(stay, seed + (uint64_t)stay, shrink_and_grow);
}

TEST(table_scan_of_an_unchanged_table_returns_each_entry_once)
{
	uint64_t cursor = 0;

	begin();
	for (int i = 0; i < 1000; i++)
		add(i);
	while (table.old.slots)
		table_step(&table);
	do
		cursor = table_scan(&table, cursor, show, NULL);
	while (cursor != 0);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(entries[i].shown, 1);
	end();
}
