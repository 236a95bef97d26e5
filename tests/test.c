/* test.c - the implementation of test.h, except for the runner. */
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/build.h"
#include "base/sys.h"
#include "open_fds.h"
#include "runner.h"
#include "test.h"

#define FORK_TRIES 10000

const bool test_misuse_aborts = WEFT__DEBUG;

/* ThreadSanitizer calls this function to get its suppressions.  OpenSSL is not instrumented, so
 * TSan does not see its reference counts: it reports a race when a thread frees an object that
 * another thread read before it dropped its reference. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
	return "race:SSL_SESSION_free\nrace:OPENSSL_sk_*\nrace:X509_*\n"
	       "race:ASN1_*\nrace:EVP_*\nrace:CRYPTO_*\n";
}

/* TSan allocates what it needs to hold back a signal at the thread's first blocking call.  A signal
 * that arrives during that allocation is lost.  So the main thread makes such a call first. */
__attribute__((constructor(101))) static void
prepare_for_signals(void)
{
	if (TEST_TSAN)
		(void)poll(NULL, 0, 0);
}

static struct test *tests, **tests_end = &tests;
static pid_t child;

void
test_register(struct test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

void
test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	runner_fail(file, line, format, args);
}

void
test_equal(int64_t got, int64_t want, const char *text, const char *file, int line)
{
	if (got != want)
		test_fail(file, line, "%s is %lld, not %lld", text, (long long)got,
		          (long long)want);
}

void
test_equal_text(const char *got, const char *want, const char *text, const char *file, int line)
{
	if (!got || strcmp(got, want) != 0)
		test_fail(file, line, "%s is \"%s\", not \"%s\"", text, got ? got : "(null)", want);
}

/* The state of a thread of this process, as in proc(5); or 0. */
static char
thread_state(const char *thread)
{
	char path[64], text[256] = "";
	const char *name_end;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%s/stat", thread);
	file = fopen(path, "r");
	if (!file)
		return 0;
	(void)!fgets(text, sizeof(text), file);
	(void)fclose(file);
	name_end = strrchr(text, ')');
	return name_end && name_end[1] ? name_end[2] : 0;
}

static bool
other_threads_sleep(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *thread;
	bool sleep = true;

	while (threads && sleep && (thread = readdir(threads)))
		if (thread->d_name[0] != '.' && atol(thread->d_name) != syscall(SYS_gettid))
			sleep = thread_state(thread->d_name) == 'S';
	if (threads)
		(void)closedir(threads);
	return sleep;
}

/* The allocator of ASan in gcc 12 has locks that a fork copies: a child that was forked while
 * another thread allocated memory would wait forever for such a lock.  So fork while all other
 * threads sleep, if they ever do. */
static void
wait_for_safe_fork(void)
{
	for (int i = 0; WEFT__ASAN && i < FORK_TRIES && !other_threads_sleep(); i++)
		(void)sched_yield();
}

int
test_fork(void)
{
	fflush(NULL);
	wait_for_safe_fork();
	child = fork();
	if (child == 0)
		(void)!freopen("/dev/null", "w", stderr);
	return child;
}

/* Bypasses the sanitizer's exit handler: in the child it would report the parent's threads as
 * leaked. */
void
test_child_exit(int code)
{
	(void)syscall(SYS_exit_group, code);
	_exit(code);
}

void
test_child_lived(void)
{
	test_child_exit(0);
}

void
test_child_aborted(const char *text, const char *file, int line)
{
	int status = 0;

	if (child < 0 || waitpid(child, &status, 0) != child)
		test_fail(file, line, "%s: no child to try it in", text);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		test_fail(file, line, "%s did not abort (status %d)", text, status);
}

void
test_skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	exit(77);
}

uint64_t
test_seed(void)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = 0;

	if (text)
		seed = strtoull(text, NULL, 0);
	else if (weft__sys_real.random(&seed, sizeof(seed)) < 0)
		seed = 1;
	printf("seed: WEFT_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* splitmix64: every state is valid, so small seeds are fine. */
uint64_t
test_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* --- live allocations --------------------------------------------------- */

static weft__a64 live;
static struct weft__sys counting;

static void *
count_alloc(size_t size)
{
	void *mem = weft__sys_real.alloc(size);

	if (mem)
		(void)weft__add(&live, 1, WEFT__RELAXED);
	return mem;
}

static void *
count_resize(void *mem, size_t size)
{
	void *moved = weft__sys_real.resize(mem, size);

	if (moved && !mem)
		(void)weft__add(&live, 1, WEFT__RELAXED);
	return moved;
}

static void
count_release(void *mem)
{
	if (mem)
		(void)weft__add(&live, UINT64_MAX, WEFT__RELAXED);
	weft__sys_real.release(mem);
}

int64_t
test_live_allocations(void)
{
	return (int64_t)weft__load(&live, WEFT__RELAXED);
}

/* --- the run ------------------------------------------------------------ */

void
test_run(struct test *test)
{
	int64_t held = test_live_allocations();
	int fds = test_open_fds();

	test->run();
	test_equal(test_live_allocations(), held, "allocations held after the test", test->name, 0);
	test_equal(test_open_fds(), fds, "descriptors open after the test", test->name, 0);
}

int
main(int argc, char **argv)
{
	static struct test *chosen[TESTS_MAX];
	const char *name = strrchr(argv[0], '/');
	size_t count = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	counting = weft__sys_real;
	counting.alloc = count_alloc;
	counting.resize = count_resize;
	counting.release = count_release;
	weft__sys = &counting;
	(void)weft_fail(0, "warm: the text buffer of this thread is no leak");
	for (struct test *t = tests; t && count < TESTS_MAX; t = t->next)
		if (argc < 2 || strstr(t->name, argv[1]))
			chosen[count++] = t;
	return runner_run(name ? name + 1 : argv[0], chosen, count);
}
