/* runner_cmocka.c - runs the tests with cmocka; a failed test does not stop the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "runner.h"

static void
run_unit(void **state)
{
	test_run(*state);
}

int
runner_run(const char *name, struct test *const *tests, size_t count)
{
	static struct CMUnitTest units[TESTS_MAX];

	for (size_t i = 0; i < count; i++)
		units[i] = (struct CMUnitTest){ tests[i]->name, run_unit, NULL, NULL, tests[i] };
	return _cmocka_run_group_tests(name, units, count, NULL, NULL);
}

void
runner_fail(const char *file, int line, const char *format, va_list args)
{
	vprint_error(format, args);
	print_error("\n");
	_fail(file, line);
	abort();
}
