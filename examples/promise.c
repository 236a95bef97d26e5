/* promise.c - pool work as promises: a chain, all, a time limit, an await. */
#include <inttypes.h>
#include <stdio.h>
#include <weft/weft.h>

static int
count_primes(void *arg)
{
	int last = *(int *)arg, count = 0;

	for (int n = 2; n <= last; n++) {
		int d = 2;

		while (d * d <= n && n % d != 0)
			d++;
		count += d * d > n;
	}
	return count;
}

/* A promise of work on another thread. */
static weft_promise *
primes_up_to(int *last)
{
	weft_op *op;
	weft_promise *promise = weft_promise_new_op(NULL, &op);

	if (promise
	    && weft_work_op(WEFT_CPU, count_primes, last, op, WEFT_NEVER) < 0)
		return weft_promise_unref(promise);
	return promise;
}

static int
add_up(const weft_value *in, weft_value *out, void *arg)
{
	const weft_list *counts = in->as.ptr;
	int64_t sum = 0;

	(void)arg;
	for (size_t i = 0; i < counts->count; i++)
		sum += counts->items[i].as.integer;
	*out = weft_value_integer(sum);
	return 0;
}

static int
run(void *arg)
{
	weft_abort *limit = weft_abort_new_timeout(NULL,
	                                           weft_after(20 * WEFT_S));
	int bounds[] = { 100, 1000, 10000 };
	weft_promise *counts[3], *sum;
	weft_value value;
	int rc;

	(void)arg;
	for (int i = 0; i < 3; i++)
		counts[i] = primes_up_to(&bounds[i]);
	sum = weft_promise_all(counts, 3);
	sum = weft_promise_then(sum, add_up, NULL, NULL);
	sum = weft_abort_promise(limit, sum);
	if (!sum)
		return WEFT_ENOMEM;
	rc = weft_await(sum, &value, WEFT_NEVER);
	if (rc == 0)
		printf("%" PRId64 "\n", value.as.integer);
	else
		fprintf(stderr, "%s\n", weft_detail());
	weft_promise_unref(sum);
	weft_abort_unref(limit);
	return rc;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
