/* deaths.c - handlers that tell the run, and end the process.
 *
 * They run on a stack of their own, since that of a threadlet is small and may have run
 * over, and call write(2) and nothing else.  The text is made before the run: at its end
 * nobody can be asked any more.
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
tell(const char *what)
{
	say(what);
	say(now);
	say("\n");
}

static void
on_signal(int number)
{
	tell(number == SIGALRM ? "hangs: " : "dies: ");
	_exit(1);
}

static void
on_sanitizer(void)
{
	tell("dies: ");
}

/* There in programs built with a sanitizer, whose own reports are better. */
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
		count = 2; /* the rest is the sanitizer's */
	}
	(void)sigaltstack(&stack, NULL);
	for (size_t i = 0; i < count; i++)
		(void)sigaction(numbers[i], &action, NULL);
}
