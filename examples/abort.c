/* abort.c - query three replicas, use the first answer, cancel the others. */
#include <stdio.h>
#include <weft/weft.h>

/* `enough` fires with the first answer, or when the time is over. */
static weft_abort *answered, *late, *enough;

static struct replica {
	const char *name;
	uint64_t takes_ns;
	int result;
} replicas[] = {
	{ "near", 10 * WEFT_MS, 0 },
	{ "far", 3600 * WEFT_S, 0 },
	{ "asleep", WEFT_NEVER, 0 },
};

/* Every wait inside the scope ends when the signal fires. */
static int
ask(void *arg)
{
	struct replica *replica = arg;
	weft_scope scope = WEFT_INIT;
	int rc = weft_scope_open(&scope, 0, WEFT_NEVER);

	if (rc == 0)
		rc = weft_abort_scope(enough, &scope);
	if (rc == 0)
		rc = weft_sleep_until(weft_after(replica->takes_ns));
	(void)weft_scope_close(&scope);
	replica->result = rc;
	if (rc == 0)
		(void)weft_abort_fire(answered, weft_value_text(replica->name));
	return 0;
}

static int
ask_all(void)
{
	weft_scope all = WEFT_INIT;
	int rc = weft_scope_open(&all, 0, WEFT_NEVER);

	for (int i = 0; rc >= 0 && i < 3; i++)
		rc = (int)weft_scope_go(&all, ask, &replicas[i]);
	if (rc < 0)
		weft_scope_cancel(&all);
	return weft_scope_close(&all);
}

static int
run(void *arg)
{
	const weft_abort *either[2];
	weft_value reason;
	int rc = WEFT_ENOMEM;

	(void)arg;
	either[0] = answered = weft_abort_new(NULL);
	either[1] = late = weft_abort_new_timeout(NULL,
	                                          weft_after(20 * WEFT_S));
	enough = weft_abort_new_any(NULL, either, 2);
	if (answered && late && enough)
		rc = ask_all();
	for (int i = 0; rc == 0 && i < 3; i++)
		printf("%s: %s\n", replicas[i].name,
		       weft_strerror(replicas[i].result));
	if (weft_abort_check(answered, &reason) < 0)
		printf("the answer is %s's\n", (const char *)reason.as.ptr);
	(void)weft_abort_unref(enough);
	(void)weft_abort_unref(late);
	(void)weft_abort_unref(answered);
	return rc;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
