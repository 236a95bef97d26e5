/* proto_base_test.c - what protocols and bindings share: lists, reference counts, the lock. */
#include "base/proto_list.h"
#include "base/proto_lock.h"
#include "base/proto_refs.h"
#include <pthread.h>
#include "test.h"

#define THREADS 4
#define ROUNDS  20000

struct item {
	int number;
	struct weft__link link;
};

static int
number_of(const struct weft__link *link)
{
	return WEFT__LINK_OF(item, link, link)->number;
}

TEST(list_keeps_its_links_in_the_order_of_insertion)
{
	struct item items[3] = { { .number = 1 }, { .number = 2 }, { .number = 3 } };
	struct weft__link head;

	weft__link_init(&head);
	CHECK(weft__list_is_empty(&head));
	weft__link_before(&head, &items[1].link);
	weft__link_before(&head, &items[2].link);
	weft__link_after(&head, &items[0].link);
	CHECK_EQ(number_of(head.next), 1);
	CHECK_EQ(number_of(head.next->next), 2);
	CHECK_EQ(number_of(head.prev), 3);
	CHECK(!weft__list_is_empty(&head));
}

TEST(link_can_be_removed_twice)
{
	struct item items[3] = { { .number = 1 }, { .number = 2 }, { .number = 3 } };
	struct weft__link head;

	weft__link_init(&head);
	weft__link_before(&head, &items[0].link);
	weft__link_before(&head, &items[1].link);
	weft__link_remove(&items[0].link);
	CHECK(weft__list_is_empty(&items[0].link));
	weft__link_after(&head, &items[2].link); /* where the removed link was */
	weft__link_remove(&items[0].link);
	CHECK_EQ(number_of(head.next), 3);
	CHECK_EQ(number_of(head.prev), 2);
	weft__link_remove(&items[1].link);
	weft__link_remove(&items[2].link);
	CHECK(weft__list_is_empty(&head));
}

TEST(last_release_of_a_reference_is_reported)
{
	struct weft__refs refs = WEFT__REFS_ONE;

	weft__refs_add(&refs);
	CHECK(!weft__refs_drop_sole(&refs));
	weft__refs_add(&refs);
	CHECK(!weft__refs_drop(&refs));
	CHECK(weft__refs_drop_sole(&refs));
	refs = WEFT__REFS(2);
	CHECK(!weft__refs_drop(&refs));
	CHECK(weft__refs_drop(&refs));
}

struct shared {
	struct weft__spin lock;
	uint64_t count; /* under the lock */
	struct weft__refs refs;
	uint32_t last; /* atomic: releases that were the last */
};

static void *
add_under_lock(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		weft__spin_lock(&shared->lock);
		shared->count++;
		weft__spin_unlock(&shared->lock);
	}
	if (weft__refs_drop(&shared->refs))
		(void)__atomic_add_fetch(&shared->last, 1, __ATOMIC_RELAXED);
	return NULL;
}

TEST(lock_admits_one_thread_at_a_time)
{
	struct shared shared = { .refs = WEFT__REFS(THREADS) };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, add_under_lock, &shared), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(shared.count, (uint64_t)THREADS * ROUNDS);
	CHECK_EQ(shared.last, 1);
}
