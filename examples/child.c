/* child.c - run a command, read its output, end it after a second. */
#include <stdio.h>
#include <sys/wait.h>
#include <weft/weft.h>

static int
run(void *arg)
{
	const char *const argv[] = { "sh", "-c", "echo hello; sleep 60", NULL };
	const weft_child_opts opts = { .std[1] = WEFT_CHILD_PIPE,
		                       .group = true };
	uint64_t deadline_ns = weft_after(1 * WEFT_S);
	weft_child *child;
	char buf[512];
	ssize_t n;
	int rc, status;

	(void)arg;
	rc = weft_child_open(argv, &opts, &child, deadline_ns);
	if (rc < 0)
		return rc;
	while ((n = weft_stream_read(weft_child_stream(child, 1), buf,
	                             sizeof buf, deadline_ns))
	       > 0)
		fwrite(buf, 1, (size_t)n, stdout);
	rc = weft_child_wait(child, &status, deadline_ns);
	if (rc == 0)
		printf("it ended with status %d\n", WEXITSTATUS(status));
	else
		printf("%s: ending it\n", weft_strerror(rc));
	weft_child_close(child);
	return 0;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
