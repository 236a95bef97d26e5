/* sum.c - a parallel sum on the CPU pool; the loop stays free. */
#include <stdio.h>
#include <weft/weft.h>

enum { PARTS = 8, SIZE = 1000000 };
static int numbers[SIZE];

struct part {
	const int *from;
	long sum;
};

static int
add(void *arg)
{
	struct part *part = arg;

	for (int i = 0; i < SIZE / PARTS; i++)
		part->sum += part->from[i];
	return 0;
}

static int
add_in_pool(void *part)
{
	return weft_work(WEFT_CPU, add, part, WEFT_NEVER);
}

static int
run(void *arg)
{
	struct part parts[PARTS] = WEFT_INIT;
	weft_scope scope;
	long sum = 0;
	int rc = weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);

	(void)arg;
	if (rc < 0)
		return rc;
	for (int i = 0; i < PARTS; i++) {
		parts[i].from = numbers + i * (SIZE / PARTS);
		if (weft_scope_go(&scope, add_in_pool, &parts[i]) < 0)
			add(&parts[i]); /* no threadlet: add here */
	}
	rc = weft_scope_close(&scope);
	for (int i = 0; i < PARTS; i++)
		sum += parts[i].sum;
	if (rc == 0)
		printf("%ld\n", sum);
	return rc;
}

int
main(void)
{
	for (int i = 0; i < SIZE; i++)
		numbers[i] = i;
	return weft_main(NULL, run, NULL);
}
