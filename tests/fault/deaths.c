/* deaths.c - handlers that print the current run and end the process.
 *
 * They run on an alternate stack, because a threadlet's stack is small and may have overflowed.
 * They call only write(2).  The text is formatted before each run, because a signal handler
 * cannot do it.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "deaths.h"

static const char *now;

static void
say(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
}

static void
print(const char *what)
{
	say(what);
	say(now);
	say("\n");
}

static void
on_signal(int number)
{
	print(number == SIGALRM ? "hangs: " : "dies: ");
	_exit(1);
}

static void
on_sanitizer(void)
{
	print("dies: ");
}

/* Defined in programs built with a sanitizer.  Its own reports are better than ours. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

void
deaths_catch(const char *run)
{
	static const int numbers[] = { SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	size_t count = sizeof(numbers) / sizeof(numbers[0]);
	static char room[65536];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	now = run;
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(on_sanitizer);
		count = 2; /* the sanitizer handles the other signals */
	}
	(void)sigaltstack(&stack, NULL);
	for (size_t i = 0; i < count; i++)
		(void)sigaction(numbers[i], &action, NULL);
}
