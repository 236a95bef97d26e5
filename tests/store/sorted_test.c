/* sorted_test.c - the sorted set, compared with a plain array. */
#include <stdio.h>
#include "store/sorted.h"
#include "test.h"

#define NAMES 300

struct model {
	bool in[NAMES];
	double score[NAMES];
};

static struct heap heap = { .seed = 7, .drawn = 7 };

static struct word
name_of(int i, char name[8])
{
	return (struct word){ name, (size_t)snprintf(name, 8, "%d", i) };
}

/* How many members come before member `i`. */
static size_t
rank_of(const struct model *model, int i)
{
	char own[8], other[8];
	size_t rank = 0;

	for (int j = 0; j < NAMES; j++) {
		if (!model->in[j] || j == i)
			continue;
		if (model->score[j] < model->score[i]
		    || (model->score[j] == model->score[i]
		        && word_order(name_of(j, other), name_of(i, own)) < 0))
			rank++;
	}
	return rank;
}

/* The span of every link is the distance to its target. */
static void
check_spans(const struct sorted *sorted, uint32_t level)
{
	const struct item_link *link = &LEVEL(&sorted->head[SORTED_LEVELS - 1], level);
	size_t at = 0;

	for (; link->next; link = &LEVEL(item_links(link->next), level)) {
		at += link->span;
		CHECK_EQ(sorted_rank(sorted, link->next), at - 1);
	}
	CHECK_EQ(at + link->span, sorted_count(sorted));
}

static void
check(const struct sorted *sorted, const struct model *model)
{
	size_t count = 0;
	struct item *before = NULL;

	for (int i = 0; i < NAMES; i++) {
		char name[8];
		struct item *item = sorted_find(sorted, name_of(i, name));

		CHECK_EQ(item != NULL, model->in[i]);
		if (!item)
			continue;
		count++;
		CHECK(item->score == model->score[i]);
		CHECK_EQ(sorted_rank(sorted, item), rank_of(model, i));
		CHECK(sorted_at(sorted, rank_of(model, i)) == item);
	}
	CHECK_EQ(sorted_count(sorted), count);
	CHECK(sorted_at(sorted, count) == NULL);
	for (struct item *item = sorted_first(sorted); item; item = item_next(item)) {
		CHECK(item->before == before);
		before = item;
	}
	CHECK(sorted->last == before);
	for (uint32_t level = 0; level < sorted->levels; level++)
		check_spans(sorted, level);
}

static void
change(struct sorted *sorted, struct model *model, uint64_t *state)
{
	int i = (int)(test_random(state) % NAMES);
	double score = (double)(test_random(state) % 20) - 5;
	char name[8];
	struct word word = name_of(i, name);
	struct item *item = sorted_find(sorted, word);

	if (!item)
		(void)sorted_add(sorted, word, score);
	else if (test_random(state) % 3 > 0)
		(void)sorted_move(sorted, item, score);
	else
		sorted_remove(sorted, item);
	model->in[i] = sorted_find(sorted, word) != NULL;
	model->score[i] = score;
}

TEST(sorted_set_behaves_like_a_plain_array)
{
	uint64_t state = test_seed();
	struct sorted *sorted = sorted_new(&heap);
	struct model model = { 0 };

	for (int step = 0; step < 20000; step++) {
		change(sorted, &model, &state);
		if (step % 500 == 0)
			check(sorted, &model);
	}
	check(sorted, &model);
	sorted_free(sorted);
	CHECK_EQ(heap.used, 0);
}

static bool
is_below(const struct item *item, const void *limit)
{
	return item->score < *(const double *)limit;
}

TEST(sorted_set_counts_members_before_a_limit)
{
	struct sorted *sorted = sorted_new(&heap);
	char name[8];

	for (int i = 0; i < NAMES; i++)
		(void)sorted_add(sorted, name_of(i, name), i / 3);
	for (double limit = -1; limit < 102; limit += 0.5) {
		size_t want = 0;

		for (int i = 0; i < NAMES; i++)
			want += i / 3 < limit;
		CHECK_EQ(sorted_before(sorted, is_below, &limit), want);
	}
	sorted_free(sorted);
	CHECK_EQ(heap.used, 0);
}

TEST(sorted_set_members_with_equal_scores_are_in_byte_order)
{
	struct sorted *sorted = sorted_new(&heap);

	(void)sorted_add(sorted, WORD("b"), 1);
	(void)sorted_add(sorted, WORD(""), 1);
	(void)sorted_add(sorted, WORD("ba"), 1);
	(void)sorted_add(sorted, WORD("\xff"), 1);
	(void)sorted_add(sorted, WORD("a"), 2);
	CHECK(word_equal(item_word(sorted_at(sorted, 0)), WORD("")));
	CHECK(word_equal(item_word(sorted_at(sorted, 1)), WORD("b")));
	CHECK(word_equal(item_word(sorted_at(sorted, 2)), WORD("ba")));
	CHECK(word_equal(item_word(sorted_at(sorted, 3)), WORD("\xff")));
	CHECK(word_equal(item_word(sorted_at(sorted, 4)), WORD("a")));
	sorted_free(sorted);
}
