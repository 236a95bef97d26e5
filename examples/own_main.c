/* own_main.c - loops beside a main function that blocks: check addresses.
 *
 *     own_main < ADDRESSES
 *
 * The main thread reads one address per line.  The loops of a runtime, on
 * threads of their own, connect to all of them at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

struct job {
	weft_chan *results; /* with a reference of its own */
	char address[160];
};

struct result {
	char text[300];
};

/* On some loop of the runtime. */
static int
check(void *arg)
{
	struct job *job = arg;
	struct result result;
	weft_stream *stream;
	int rc = weft_stream_connect(job->address, NULL, &stream,
	                             weft_after(30 * WEFT_S));

	snprintf(result.text, sizeof result.text, "%s",
	         rc == 0 ? job->address : weft_detail());
	if (rc == 0)
		weft_stream_close(stream);
	weft_chan_send(job->results, &result, WEFT_NOWAIT);
	weft_chan_unref(job->results);
	free(job);
	return 0;
}

/* Start a check of each line of the input; return their number. */
static int
start_checks(weft_chan *results, int max)
{
	char line[160];
	int count = 0;

	while (count < max && fgets(line, sizeof line, stdin)) {
		struct job *job = malloc(sizeof *job);

		line[strcspn(line, "\n")] = '\0';
		if (!job)
			break;
		memcpy(job->address, line, sizeof line);
		job->results = weft_chan_ref(results);
		if (weft_go(check, job) < 0) { /* on the least loaded loop */
			weft_chan_unref(results);
			free(job);
			break;
		}
		count++;
	}
	return count;
}

int
main(void)
{
	const weft_runtime_opts opts = { .loops = 2 };
	weft_runtime *runtime = weft_runtime_new(&opts);
	weft_chan *results = weft_chan_new(sizeof(struct result), 100,
	                                   WEFT_SHARED);
	uint64_t deadline_ns;
	struct result result;
	int count;

	if (!runtime || !results || weft_runtime_start(runtime) < 0) {
		fprintf(stderr, "%s\n", weft_detail());
		return 1;
	}
	count = start_checks(results, 100);
	deadline_ns = weft_after(10 * WEFT_S); /* for all */
	for (; count > 0; count--) {
		if (weft_chan_recv(results, &result, deadline_ns) < 0)
			break;
		puts(result.text);
	}
	if (count > 0)
		printf("%d did not answer\n", count);
	weft_chan_unref(results);       /* late threadlets have references */
	weft_runtime_shutdown(runtime); /* cancels them */
	if (weft_runtime_wait_stopped(runtime, weft_after(5 * WEFT_S)) < 0)
		return 1;
	return weft_runtime_free(runtime) < 0 || count > 0;
}
