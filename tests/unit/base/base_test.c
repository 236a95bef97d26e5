/* base_test.c - error codes and texts, clock, version and hooks. */
#include <pthread.h>
#include "base/sys.h"
#include "base/thread.h"
#include "test.h"

TEST(every_error_has_a_name_and_a_text)
{
	CHECK_STR(weft_errname(WEFT_ETIMEDOUT), "WEFT_ETIMEDOUT");
	CHECK_STR(weft_strerror(WEFT_ETIMEDOUT), "timed out");
	CHECK_STR(weft_errname(WEFT_ESCRIPT), "WEFT_ESCRIPT");
	CHECK_STR(weft_errname(-EMFILE), "-EMFILE");
	CHECK_STR(weft_strerror(0), "success");
	CHECK_STR(weft_strerror(17), "success");
	CHECK_STR(weft_errname(-99999), "unknown");
	CHECK_STR(weft_strerror(-99999), "unknown error");
}

TEST(errors_equal_the_negative_errno)
{
	CHECK_EQ(WEFT_EINVAL, -EINVAL);
	CHECK_EQ(WEFT_ECANCELED, -ECANCELED);
}

TEST(the_version_text_is_that_of_the_header)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
	         WEFT_VERSION_PATCH);
	CHECK_STR(weft_version(), text);
}

TEST(the_clock_never_goes_backwards)
{
	uint64_t last = weft_now();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = weft_now();

		CHECK(now >= last);
		last = now;
	}
}

TEST(a_deadline_is_now_plus_its_delay_and_saturates)
{
	uint64_t before = weft_now();
	uint64_t deadline = weft_after(5 * WEFT_S);
	uint64_t after = weft_now();

	CHECK(deadline >= before + 5 * WEFT_S);
	CHECK(deadline <= after + 5 * WEFT_S);
	CHECK(weft_after(WEFT_NEVER) == WEFT_NEVER);
	CHECK(weft_after(WEFT_NEVER - 1) == WEFT_NEVER);
}

TEST(a_failure_with_a_text_returns_its_error_and_keeps_the_text)
{
	CHECK_EQ(weft_fail(WEFT_EPIPE, "peer %d is gone", 7), WEFT_EPIPE);
	CHECK_STR(weft_detail(), "peer 7 is gone");
}

TEST(a_long_text_is_cut_at_1023_bytes)
{
	char text[2000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)weft_fail(WEFT_EINVAL, "%s", text);
	CHECK_EQ(strlen(weft_detail()), 1023);
}

TEST(a_failure_without_a_format_has_the_text_of_its_error)
{
	const char *none = NULL;

	CHECK_EQ(weft_fail(WEFT_EBUSY, none, 0), WEFT_EBUSY);
	CHECK_STR(weft_detail(), weft_strerror(WEFT_EBUSY));
}

static void *
fail_elsewhere(void *arg)
{
	CHECK_STR(weft_detail(), ""); /* a new thread has no failure yet */
	(void)weft_fail(WEFT_EINVAL, "over there");
	CHECK_STR(weft_detail(), "over there");
	return arg;
}

TEST(each_thread_has_its_own_error_text_and_frees_it_when_it_exits)
{
	pthread_t thread;

	(void)weft_fail(WEFT_EINVAL, "over here");
	CHECK_EQ(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_STR(weft_detail(), "over here");
}

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

static void *
fail_without_memory(void *arg)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys sys = *before;

	sys.alloc = no_memory;
	weft__sys = &sys;
	CHECK_EQ(weft_fail(WEFT_EPROTO, "never %s", "kept"), WEFT_EPROTO);
	CHECK_STR(weft_detail(), weft_strerror(WEFT_EPROTO));
	CHECK(weft__alloc_zero(64) == NULL);
	weft__sys = before;
	return arg;
}

TEST(a_failure_without_memory_for_its_text_has_the_text_of_its_error)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, fail_without_memory, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(hooks_set_after_the_first_allocation_are_refused)
{
	weft_hooks hooks = WEFT_INIT;

	free(NULL);
	CHECK_EQ(weft_set_hooks(&hooks), WEFT_EBUSY);
	CHECK_STR(weft_detail(),
	          "weft_set_hooks: the library has already allocated memory; set the hooks before "
	          "any other call");
}

static void *
hook_alloc(void *arg, size_t size)
{
	return arg ? malloc(size) : NULL;
}

TEST(missing_or_incomplete_hooks_are_misuse)
{
	weft_hooks half = { .alloc = hook_alloc };

	CHECK_MISUSE(weft_set_hooks(NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_set_hooks(&half), WEFT_EINVAL);
}

TEST(zeroed_memory_is_zero)
{
	unsigned char *mem = weft__alloc_zero(300);

	CHECK(mem != NULL);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(mem[i], 0);
	weft__sys->release(mem);
}
