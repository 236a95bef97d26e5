/* latency.c - how late sleeping threadlets wake: a histogram per loop. */
#include <stdio.h>
#include <weft/weft.h>

#define LOOPS 2

static int
work(void *arg)
{
	weft_histogram *late = arg;
	int rc = 0;

	for (int i = 0; i < 100 && rc == 0; i++) {
		uint64_t due_ns = weft_after(WEFT_MS);

		rc = weft_sleep_until(due_ns);
		weft_histogram_record(late, weft_now() - due_ns);
	}
	return rc;
}

static int
measure(weft_histogram *const *late)
{
	weft_scope scope;
	weft_go_opts opts = { .name = "sleeper", .scope = &scope };
	int rc = weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < LOOPS; i++) {
		opts.loop = weft_runtime_loop(weft_runtime_current(), i);
		if (weft_go_with(&opts, work, late[i]) < 0)
			weft_scope_cancel(&scope);
	}
	return weft_scope_close(&scope);
}

static int
run(void *arg)
{
	weft_histogram *late[LOOPS], *all = weft_histogram_new();
	struct weft_histogram_stats stats;
	int rc = all ? 0 : WEFT_ENOMEM;

	(void)arg;
	for (int i = 0; i < LOOPS; i++)
		if (!(late[i] = weft_histogram_new()))
			rc = WEFT_ENOMEM;
	if (rc == 0)
		rc = measure(late);
	for (int i = 0; i < LOOPS && rc == 0; i++)
		rc = weft_histogram_merge(all, late[i]);
	if (rc == 0 && (rc = weft_histogram_stats(all, &stats)) == 0)
		printf("%d sleeps, late by %.3f ms, 1 of 100 by %.3f ms\n",
		       (int)stats.values.count, (double)stats.values.p50 / 1e6,
		       (double)stats.values.p99 / 1e6);
	for (int i = 0; i < LOOPS; i++)
		weft_histogram_free(late[i]);
	weft_histogram_free(all);
	return rc;
}

int
main(void)
{
	const weft_runtime_opts opts = { .loops = LOOPS };

	return weft_main(&opts, run, NULL);
}
