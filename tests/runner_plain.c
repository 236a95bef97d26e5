/* runner_plain.c - runs the tests one after the other and exits at the first failure. */
#include "runner.h"

int
runner_run(const char *name, struct test *const *tests, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		printf("run    %s\n", tests[i]->name);
		test_run(tests[i]);
	}
	printf("%s: %zu passed\n", name, count);
	return 0;
}

void
runner_fail(const char *file, int line, const char *format, va_list args)
{
	fprintf(stderr, "FAILED at %s:%d: ", file, line);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	exit(1);
}
