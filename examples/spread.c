/* spread.c - a worker on each of four loops; jobs and sum are shared. */
#include <stdio.h>
#include <weft/weft.h>

static weft_chan *jobs;
static weft_mutex lock = WEFT_SHARED_INIT;
static long sum;

static int
work(void *arg)
{
	int job, rc;

	(void)arg;
	while ((rc = weft_chan_recv(jobs, &job, WEFT_NEVER)) == 0) {
		if ((rc = weft_mutex_lock(&lock, WEFT_NEVER)) < 0)
			break;
		sum += job;
		weft_mutex_unlock(&lock);
	}
	return rc == WEFT_ECLOSED ? 0 : rc;
}

static int
run(void *arg)
{
	weft_scope scope;
	weft_go_opts opts = { .name = "worker", .scope = &scope };
	int rc = weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);

	(void)arg;
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < 4; i++) {
		opts.loop = weft_runtime_loop(weft_runtime_current(), i);
		if (weft_go_with(&opts, work, NULL) < 0)
			weft_scope_cancel(&scope);
	}
	for (int job = 1; job <= 1000 && rc == 0; job++)
		rc = weft_chan_send(jobs, &job, WEFT_NEVER);
	weft_chan_close(jobs);
	weft_scope_close(&scope);
	printf("%ld\n", sum);
	return rc;
}

int
main(void)
{
	const weft_runtime_opts opts = { .loops = 4 };
	int status;

	jobs = weft_chan_new(sizeof(int), 16, WEFT_SHARED);
	status = jobs ? weft_main(&opts, run, NULL) : 1;
	weft_chan_unref(jobs);
	return status;
}
