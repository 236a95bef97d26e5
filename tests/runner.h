/* runner.h - between test.c and what runs its tests.
 *
 * runner_cmocka.c does it where cmocka is at hand, runner_plain.c where it is not,
 * as for a CPU that is emulated.  A program has one of them.
 */
#ifndef WEFT_TESTS_RUNNER_H
#define WEFT_TESTS_RUNNER_H

#include <stdarg.h>
#include <stddef.h>
#include "test.h"

#define TESTS_MAX 512

/* Run one test and look at what it holds after it; of test.c. */
void test_run(struct test *test);

/* Run all of them, in order: 0, or what the program ends with if one failed. */
int runner_run(const char *name, struct test *const *tests, size_t count);

/* The running test has failed, and ends here. */
_Noreturn void runner_fail(const char *file, int line, const char *format,
                           va_list args) __attribute__((format(printf, 3, 0)));

#endif
