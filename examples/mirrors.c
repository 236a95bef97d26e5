/* mirrors.c - promises combined: the first mirror that answers, then all.
 *
 *     mirrors ADDRESS...
 */
#include <stdio.h>
#include <weft/weft.h>

#define MIRRORS 16

/* On a threadlet of its own. */
static int
connect_to(const weft_value *in, weft_value *out, void *address)
{
	weft_stream *stream;
	int rc = weft_stream_connect(address, NULL, &stream,
	                             weft_after(5 * WEFT_S));

	(void)in;
	if (rc < 0)
		return rc;
	weft_stream_close(stream);
	*out = weft_value_text(address);
	return 0;
}

static weft_promise *
after(uint64_t delay_ns)
{
	weft_op *op;
	weft_promise *promise = weft_promise_new_op(NULL, &op);

	if (promise && weft_op_sleep(op, weft_after(delay_ns)) < 0)
		return weft_promise_unref(promise);
	return promise;
}

/* The first success of all, or the end of two seconds. */
static void
print_first(weft_promise **attempts, size_t count)
{
	weft_promise *racers[2], *first;
	weft_value value;
	int rc;

	for (size_t i = 0; i < count; i++)
		weft_promise_ref(attempts[i]); /* for print_all() */
	racers[0] = weft_promise_any(attempts, count);
	racers[1] = after(2 * WEFT_S);
	first = weft_promise_race(racers, 2);
	rc = weft_await(first, &value, WEFT_NEVER);
	if (rc == 0 && value.type == &weft_type_text)
		printf("first: %s\n", (char *)value.as.ptr);
	else
		printf("first: %s\n", rc == 0 ? "none in 2 s" : "none");
	weft_promise_unref(first);
}

static int
print_all(weft_promise **attempts, size_t count, char **addresses)
{
	weft_promise *all = weft_promise_all_settled(attempts, count);
	weft_value value, one;
	int rc = weft_await(all, &value, WEFT_NEVER);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		const weft_list *list = value.as.ptr;
		weft_outcome outcome = weft_promise_state(list->items[i].as.ptr,
		                                          &one);

		printf("%s: %s\n", addresses[i],
		       outcome == WEFT_FULFILLED
		               ? "connected"
		               : weft_strerror((int)one.as.integer));
	}
	weft_promise_unref(all);
	return rc;
}

static int
run(void *arg)
{
	char **addresses = arg;
	weft_promise *attempts[MIRRORS];
	size_t count = 0;

	for (; count < MIRRORS && addresses[count]; count++)
		attempts[count] = weft_promise_go(NULL, connect_to,
		                                  addresses[count]);
	print_first(attempts, count);
	return print_all(attempts, count, addresses);
}

int
main(int argc, char **argv)
{
	return argc < 2 ? 2 : weft_main(NULL, run, argv + 1);
}
