/* dns_system.c - the engine that uses the system's resolver, in the blocking pool.
 *
 * The system's resolver cannot be interrupted, so a job has memory of its own, and outlives the
 * waits.  A canceled wait leaves at once, and the answer is cached for the next.  The names of one
 * loop keep at most half of the pool's 64 threads busy.
 *
 *   1. A job belongs to a name while the name is QUERIED.  Its op does not keep the loop alive; the
 *      ops of the waits do.  But a loop that stops waits until the call of the resolver has
 *      returned.
 *   2. A job that never began, because the loop stops, gives its name back.
 */
#include <weft/work.h>
#include "net/dns/dns.h"

const uint32_t weft__dns_engine_max = 32;

struct job {
	weft_op op;
	struct weft__dns_name *name;
	bool ran;
	struct weft__dns_answer answer;
};

int
weft__dns_engine_open(struct weft__dns *dns)
{
	dns->engine = dns; /* there is nothing to open */
	return 0;
}

/* In a forked child there is no thread that works on the jobs. */
void
weft__dns_engine_close(struct weft__dns *dns, bool alone)
{
	dns->engine = NULL;
	for (uint32_t i = 0; alone && i < WEFT__DNS_BUCKETS; i++)
		for (struct weft__dns_name *name = dns->buckets[i]; name; name = name->same)
			if (name->state == WEFT__DNS_QUERIED)
				weft__sys->release(name->job);
}

/* Runs on a thread of the pool. */
static int
dns_system_run(void *arg)
{
	struct job *job = arg;
	const struct weft__dns_name *name = job->name;
	struct weft__dns_answer *answer = &job->answer;
	int rc;

	job->ran = true;
	if (name->addr.family == 0)
		rc = weft__sys->host_find(name->host, answer->addrs, 2 * WEFT__DNS_ADDRS_MAX);
	else
		rc = weft__sys->host_name(&name->addr, answer->host, sizeof(answer->host));
	if (rc >= 0 && name->addr.family == 0)
		answer->count = (uint32_t)rc;
	answer->error = rc < 0 ? rc : 0;
	answer->ttl_ns = WEFT__DNS_TTL_UNSAID;
	return 0;
}

/* Other errors of the system's resolver may be temporary. */
static int
error_of(int error)
{
	return error == 0 || error == WEFT_ENONAME || error == WEFT_ENOMEM ? error : WEFT_EAGAIN;
}

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct job *job = arg;
	struct weft__dns *dns = job->name->dns;

	(void)op;
	if (job->ran) {
		job->answer.error = error_of(job->answer.error);
		weft__dns_answered(job->name, &job->answer);
	} else if (result == WEFT_ESHUTDOWN) {
		weft__dns_unasked(job->name);
	} else { /* no thread is available */
		job->answer.error = WEFT_EAGAIN;
		weft__dns_answered(job->name, &job->answer);
	}
	weft__dns_set_timer(dns);
	weft__sys->release(job);
}

void
weft__dns_engine_query(struct weft__dns_name *name)
{
	struct job *job = weft__alloc_zero(sizeof(*job));
	int rc = WEFT_ENOMEM;

	name->job = job;
	if (job) {
		job->name = name;
		(void)weft_op_init(&job->op, name->dns->loop, on_done, job);
		weft_op_set_background(&job->op, true);
		rc = weft_work_op(WEFT_BLOCKING, dns_system_run, job, &job->op, WEFT_NEVER);
	}
	if (rc < 0) {
		struct weft__dns_answer refusal = { .error = rc == WEFT_ENOMEM ? rc : WEFT_EAGAIN };

		weft__sys->release(job);
		weft__dns_answered(name, &refusal);
	}
}

/* Answers need no ticks. */
void
weft__dns_engine_tick(struct weft__dns *dns)
{
	(void)dns;
}

uint64_t
weft__dns_engine_due(struct weft__dns *dns)
{
	(void)dns;
	return WEFT_NEVER;
}
