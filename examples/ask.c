/* ask.c - the main thread runs functions on a loop and waits for their results. */
#include <stdio.h>
#include <weft/weft.h>

struct account {
	long cents; /* used on the loop's thread only */
	long amount;
};

/* In a threadlet on the loop: it may suspend, and needs no lock. */
static int
withdraw(void *arg)
{
	struct account *account = arg;

	if (account->amount > account->cents)
		return weft_fail(WEFT_EINVAL, "there are only %ld cents",
		                 account->cents);
	account->cents -= account->amount;
	return 0;
}

int
main(void)
{
	struct account account = { .cents = 100, .amount = 60 };
	weft_loop *loop = weft_loop_new(NULL);

	if (!loop || weft_loop_start(loop) < 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		uint64_t deadline_ns = weft_after(5 * WEFT_S);
		int rc = weft_loop_call(loop, withdraw, &account, deadline_ns);

		printf("%s\n", rc < 0 ? weft_detail() : "done");
	}
	weft_loop_shutdown(loop);
	weft_loop_wait_stopped(loop, WEFT_NEVER);
	return weft_loop_free(loop) < 0;
}
