/* runner.h - the interface between test.c and the code that runs its tests.
 *
 * runner_cmocka.c is used where cmocka is available, runner_plain.c where it is not, for
 * example on an emulated CPU.  A program links exactly one of them.
 */
#ifndef WEFT_TESTS_RUNNER_H
#define WEFT_TESTS_RUNNER_H

#include <stdarg.h>
#include <stddef.h>
#include "test.h"

#define TESTS_MAX 512

/* Run one test, then check that it leaked nothing.  In test.c. */
void test_run(struct test *test);

/* Run all tests in order.  Returns 0, or the exit code of the program if a test failed. */
int runner_run(const char *name, struct test *const *tests, size_t count);

/* Report that the running test failed, and end it. */
_Noreturn void runner_fail(const char *file, int line, const char *format,
                           va_list args) __attribute__((format(printf, 3, 0)));

#endif
