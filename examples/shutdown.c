/* shutdown.c - at SIGTERM: no new jobs, five seconds for the rest, exit. */
#include <signal.h>
#include <stdio.h>
#include <weft/weft.h>

static int
make_jobs(void *jobs)
{
	int rc = 0;

	for (int job = 1; rc == 0; job++)
		if ((rc = weft_chan_send(jobs, &job, WEFT_NEVER)) == 0)
			rc = weft_sleep(10 * WEFT_MS);
	return rc == WEFT_ECLOSED ? 0 : rc;
}

static int
do_jobs(void *jobs)
{
	int job, rc;

	while ((rc = weft_chan_recv(jobs, &job, WEFT_NEVER)) == 0) {
		rc = weft_sleep(15 * WEFT_MS); /* the work */
		printf("job %d: %s\n", job,
		       rc < 0 ? weft_strerror(rc) : "done");
	}
	return rc == WEFT_ECLOSED ? 0 : rc;
}

static int
run(void *arg)
{
	weft_chan *jobs = weft_chan_new(sizeof(int), 10, 0);
	weft_scope scope;
	int rc = weft_scope_open(&scope, 0, WEFT_NEVER);

	(void)arg;
	if (rc < 0 || !jobs)
		return WEFT_ENOMEM;
	if (weft_scope_go(&scope, make_jobs, jobs) < 0
	    || weft_scope_go(&scope, do_jobs, jobs) < 0)
		weft_scope_cancel(&scope);
	rc = weft_signal_wait(WEFT_SIG(SIGTERM) | WEFT_SIG(SIGINT), WEFT_NEVER);
	printf("ending: %s\n", rc < 0 ? weft_strerror(rc) : "got a signal");
	weft_chan_close(jobs); /* buffered jobs can still be received */
	weft_scope_set_deadline(&scope, weft_after(5 * WEFT_S));
	rc = weft_scope_close(&scope);
	weft_chan_unref(jobs);
	printf("bye\n");
	return rc;
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return weft_main(NULL, run, NULL);
}
