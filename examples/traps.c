/* traps.c - what surprises at first: deadlines, and calls that do not suspend. */
#include <stdio.h>
#include <weft/weft.h>

static int turns; /* of the other threadlet */

static int
other(void *arg)
{
	(void)arg;
	for (;; turns++)
		if (weft_yield() < 0) /* canceled, when run() returns */
			return 0;
}

static void
sleep_twice(void)
{
	uint64_t begin_ns = weft_now();

	/* Wrong: this is shortly after the start of the machine. */
	weft_sleep_until(5 * WEFT_S);
	printf("a delay: %s\n",
	       weft_now() - begin_ns < 5 * WEFT_S ? "returned" : "slept");
	begin_ns = weft_now();
	weft_sleep_until(weft_after(100 * WEFT_MS));
	printf("a deadline: %s\n",
	       weft_now() - begin_ns < 100 * WEFT_MS ? "returned" : "slept");
}

static void
receive_all(weft_chan *values)
{
	int value, before, received = 0;

	for (value = 0; value < 10; value++)
		weft_chan_send(values, &value, WEFT_NEVER);
	before = turns;
	while (received < 10 && weft_chan_recv(values, &value, WEFT_NEVER) == 0)
		received++;
	printf("%d values, the other ran %d times\n", received, turns - before);
	weft_yield();
	printf("a yield, the other ran %d times\n", turns - before);
}

static int
run(void *arg)
{
	weft_chan *values = weft_chan_new(sizeof(int), 10, 0);

	(void)arg;
	sleep_twice();
	if (!values || weft_go(other, NULL) < 0)
		return WEFT_ENOMEM;
	weft_yield(); /* now the other has begun */
	receive_all(values);
	weft_chan_unref(values);
	return 0;
}

int
main(void)
{
	const weft_runtime_opts opts = { .loops = 1 };

	return weft_main(&opts, run, NULL);
}
