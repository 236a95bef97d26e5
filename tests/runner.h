/* runner.h - the interface between test.c and the runner of its tests.
 *
 * A program has one runner: runner_cmocka.c where cmocka is available, otherwise
 * runner_plain.c, for example for an emulated CPU.
 */
#ifndef WEFT_TESTS_RUNNER_H
#define WEFT_TESTS_RUNNER_H

#include <stdarg.h>
#include <stddef.h>
#include "test.h"

#define TESTS_MAX 512

/* Runs one test and checks that it leaks no allocation and no descriptor; in test.c. */
void test_run(struct test *test);

/* Runs the tests in order.  Returns 0, or the exit code of the program if a test failed. */
int runner_run(const char *name, struct test *const *tests, size_t count);

/* Fails and ends the running test. */
_Noreturn void runner_fail(const char *file, int line, const char *format,
                           va_list args) __attribute__((format(printf, 3, 0)));

#endif
