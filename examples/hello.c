/* hello.c - the README's program: two threadlets take turns. */
#include <stdio.h>
#include <weft/weft.h>

static int
count(void *name)
{
	int rc = 0;

	for (int i = 1; i <= 3 && rc == 0; i++) {
		printf("%s %d\n", (char *)name, i);
		rc = weft_sleep(100 * WEFT_MS);
	}
	return rc;
}

static int
run(void *arg)
{
	char tick[] = "tick", tock[] = "tock";
	weft_scope scope;
	int rc = weft_scope_open(&scope, WEFT_FAIL_FAST,
	                         weft_after(5 * WEFT_S));

	(void)arg;
	if (rc < 0)
		return rc;
	if (weft_scope_go(&scope, count, tick) < 0
	    || weft_scope_go(&scope, count, tock) < 0)
		fprintf(stderr, "%s\n", weft_detail());
	return weft_scope_close(&scope); /* when both have ended */
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
