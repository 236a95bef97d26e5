/* pipeline.c - three stages and two channels, closed one after the other. */
#include <stdio.h>
#include <weft/weft.h>

static weft_chan *numbers, *squares;

static int
count(void *arg)
{
	int rc = 0;

	(void)arg;
	for (int i = 1; i <= 10 && rc == 0; i++)
		rc = weft_chan_send(numbers, &i, WEFT_NEVER);
	weft_chan_close(numbers);
	return rc;
}

static int
square(void *arg)
{
	int i, rc = 0;

	(void)arg;
	while (rc == 0 && (rc = weft_chan_recv(numbers, &i, WEFT_NEVER)) == 0) {
		i *= i;
		rc = weft_chan_send(squares, &i, WEFT_NEVER);
	}
	weft_chan_close(squares);
	return rc == WEFT_ECLOSED ? 0 : rc;
}

static int
run(void *arg)
{
	weft_scope scope;
	int i, rc = weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);

	(void)arg;
	numbers = weft_chan_new(sizeof i, 0, 0);
	squares = weft_chan_new(sizeof i, 4, 0);
	if (rc < 0 || !numbers || !squares)
		return WEFT_ENOMEM;
	if (weft_scope_go(&scope, count, NULL) < 0
	    || weft_scope_go(&scope, square, NULL) < 0)
		weft_scope_cancel(&scope);
	while ((rc = weft_chan_recv(squares, &i, WEFT_NEVER)) == 0)
		printf("%d\n", i);
	weft_scope_close(&scope);
	weft_chan_unref(numbers);
	weft_chan_unref(squares);
	return rc == WEFT_ECLOSED ? 0 : rc;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
