/* post_uv.c - items through a list under a mutex and uv_async_send().
 *
 * This is the cheapest version that a libuv user would write: items are preallocated, only a
 * producer that finds the list empty sends, and the consumer takes the whole list at once.
 */
#include "bench.h"
#include <stdatomic.h>
#include <uv.h>

struct item {
	struct item *next;
	void (*fn)(void *arg);
	void *arg;
};

static uv_loop_t loop;
static uv_async_t async;
static uv_mutex_t lock;
static struct item *first; /* under the lock, like `last` */
static struct item **last = &first;

static struct item *pool;
static uint64_t pool_each;
static atomic_uint pool_taken;          /* shares, one per producer */
static _Thread_local struct item *mine; /* the producer's next item */

static void
on_async(uv_async_t *a)
{
	struct item *item;

	(void)a;
	uv_mutex_lock(&lock);
	item = first;
	first = NULL;
	last = &first;
	uv_mutex_unlock(&lock);
	while (item) {
		struct item *next = item->next;

		item->fn(item->arg);
		item = next;
	}
}

static void
inbox_open(unsigned producers, uint64_t each)
{
	pool = bench_array(producers * each, sizeof(*pool));
	pool_each = each;
	BENCH_CHECK(uv_loop_init(&loop) == 0);
	BENCH_CHECK(uv_mutex_init(&lock) == 0);
	BENCH_CHECK(uv_async_init(&loop, &async, on_async) == 0);
}

static inline bool
inbox_post(void (*fn)(void *arg), void *arg)
{
	struct item *item;
	bool was_empty;

	if (!mine)
		mine = &pool[pool_each * atomic_fetch_add(&pool_taken, 1)];
	item = mine++;
	item->fn = fn;
	item->arg = arg;
	uv_mutex_lock(&lock);
	was_empty = !first;
	*last = item;
	last = &item->next;
	uv_mutex_unlock(&lock);
	if (was_empty)
		BENCH_CHECK(uv_async_send(&async) == 0);
	return true;
}

static void
inbox_run(void)
{
	(void)uv_run(&loop, UV_RUN_DEFAULT);
}

static void
inbox_leave(void)
{
	uv_stop(&loop);
}

#include "post_bench.h"
