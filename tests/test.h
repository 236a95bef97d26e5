/* test.h - how tests are written: TEST(sentence_about_behavior) and CHECK.
 *
 * Each file is one program under CTest.  Its tests register themselves and run in order, with
 * cmocka or without it (runner.h).  After each test, the number of open descriptors and of the
 * library's allocations must be the same as before.  `PROGRAM WORD` runs the tests whose names
 * contain WORD.
 */
#ifndef WEFT_TEST_H
#define WEFT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

/* Whether the build has ThreadSanitizer. */
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif

/* Whether the build uses only POSIX. */
#if defined(WEFT_PORTABLE)
#define TEST_PORTABLE 1
#else
#define TEST_PORTABLE 0
#endif

struct test {
	const char  *name;
	void       (*run)(void);
	struct test *next;
};

void test_register(struct test *test);

#define TEST(name_)                                                            \
	static void name_(void);                                               \
	__attribute__((constructor)) static void name_##_register(void)        \
	{                                                                      \
		static struct test test_ = { #name_, name_, NULL };            \
		test_register(&test_);                                         \
	}                                                                      \
	static void name_(void)

#define CHECK(cond) \
	((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "%s is false", #cond))

#define CHECK_EQ(got, want)                                                    \
	test_equal((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)

#define CHECK_STR(got, want) \
	test_equal_text((got), (want), #got, __FILE__, __LINE__)

/* Misuse: `call` returns `error`.  In a debug build it aborts instead. */
#define CHECK_MISUSE(call, error)                                              \
	do {                                                                   \
		if (!test_misuse_aborts)                                       \
			CHECK_EQ(call, error);                                 \
		else if (test_fork() == 0) {                                   \
			(void)(call);                                          \
			test_child_lived();                                    \
		} else                                                         \
			test_child_aborted(#call, __FILE__, __LINE__);         \
	} while (0)

extern const bool test_misuse_aborts;

_Noreturn void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void test_equal(int64_t got, int64_t want, const char *text, const char *file,
                int line);
void test_equal_text(const char *got, const char *want, const char *text,
                     const char *file, int line);

/* For CHECK_MISUSE only. */
int            test_fork(void);
_Noreturn void test_child_exit(int code);
_Noreturn void test_child_lived(void);
void           test_child_aborted(const char *text, const char *file, int line);

/* End the program as skipped, and print the reason. */
_Noreturn void test_skip(const char *reason);

/* The seed of this run: from WEFT_SEED, else random.  It is printed in both cases.
 * test_random() returns numbers drawn from it. */
uint64_t test_seed(void);
uint64_t test_random(uint64_t *state);

/* How many allocations the library holds now.  For descriptors see open_fds.h. */
int64_t test_live_allocations(void);

#endif
