/* crash.c - signal handlers that print the seed and let the process die.
 *
 * The handler runs on its own stack, because a simulated stack may have overflowed.  It uses
 * only write(2), then restores the default action and returns.  The faulting instruction or a
 * raise then ends the process by the same signal, so that the parent sees which one it was.
 *
 *   1. Nothing is printed outside of a run.
 *   2. For a fault that a sanitizer handles itself, only its death callback is called, at the
 *      end.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "sim/run/crash.h"
#include "sim/run/sim.h"

static unsigned seconds_max;

static void
say(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
}

static void
say_number(uint64_t value)
{
	char digits[24];
	char *at = digits + sizeof(digits);

	*--at = '\0';
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	say(at);
}

static void
tell_seed(void)
{
	uint64_t seed;
	const struct sim_scenario *scenario = sim_current(&seed);

	if (!scenario)
		return;
	say("\nsim: died in seed ");
	say_number(seed);
	say(" of ");
	say(scenario->name);
	say("\n  ./dev sim --seed ");
	say_number(seed);
	say(" --scenario ");
	say(scenario->name);
	say(" --trace\n");
}

static void
on_signal(int number)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	if (number == SIGALRM)
		say("\nsim: one seed takes too long, with no simulated step or very many");
	tell_seed();
	(void)sigaction(number, &action, NULL);
	if (number == SIGALRM || number == SIGABRT)
		(void)raise(number);
}

void
sim_crash_install(unsigned seconds)
{
	static const int numbers[] = { SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	size_t count = SIM_SANITIZED ? 2 : sizeof(numbers) / sizeof(numbers[0]);
	static char stack[65536];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	seconds_max = seconds;
	sim_at_death(tell_seed);
	(void)sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < count; i++)
		(void)sigaction(numbers[i], &action, NULL);
}

void
sim_crash_watch(void)
{
	(void)alarm(seconds_max);
}
