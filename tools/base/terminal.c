/* terminal.c - the terminal: its size, writing to it; and setting it up for a full screen. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <weft/base.h>
#include "terminal.h"

/* Alternate screen, hidden cursor, no automatic line wrap; and the reverse. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

/* Also read by signal handlers. */
static struct {
	struct termios before;
	volatile sig_atomic_t taken;
	bool registered;
} terminal;

bool
terminal_is_there(void)
{
	const char *name = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && name && *name
	       && strcmp(name, "dumb") != 0;
}

bool
terminal_has_colours(void)
{
	const char *no = getenv("NO_COLOR");

	return !no || !*no;
}

/* Makes only async-signal-safe calls. */
int
terminal_write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd wait = { .fd = fd, .events = POLLOUT };

			(void)poll(&wait, 1, 1000);
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			bytes += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* Makes only async-signal-safe calls.  Discards unread input, which was typed for the program. */
void
terminal_close(void)
{
	if (!terminal.taken)
		return;
	terminal.taken = 0;
	(void)terminal_write_all(STDOUT_FILENO, leave, sizeof(leave) - 1);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal.before);
}

/* SA_RESETHAND has restored the default action, so the raised signal ends the process. */
static void
on_crash(int signo)
{
	terminal_close();
	(void)raise(signo);
}

static void
register_ends(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	struct sigaction action = {
		.sa_handler = on_crash,
		.sa_flags = (int)(SA_RESETHAND | SA_ONSTACK),
	};

	if (terminal.registered)
		return;
	terminal.registered = true;
	(void)atexit(terminal_close);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
}

static int
set_mode(const struct termios *mode)
{
	while (tcsetattr(STDIN_FILENO, TCSADRAIN, mode) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int
terminal_open(void)
{
	struct termios mode;
	int rc;

	if (!terminal.taken && tcgetattr(STDIN_FILENO, &terminal.before) < 0)
		return weft_fail(-errno, "cannot set up the terminal: %s", strerror(errno));
	register_ends();
	mode = terminal.before;
	mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	mode.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR);
	mode.c_cc[VMIN] = 1;
	mode.c_cc[VTIME] = 0;
	rc = set_mode(&mode);
	if (rc < 0)
		return weft_fail(rc, "cannot set up the terminal: %s", weft_strerror(rc));
	terminal.taken = 1;
	return terminal_write_all(STDOUT_FILENO, enter, sizeof(enter) - 1);
}

void
terminal_size(int fd, int *rows, int *columns)
{
	struct winsize size;

	*rows = 24;
	*columns = 80;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0)
		return;
	if (size.ws_row > 0)
		*rows = size.ws_row;
	if (size.ws_col > 0)
		*columns = size.ws_col;
}
