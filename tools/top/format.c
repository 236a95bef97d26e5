/* format.c - formats numbers in a few cells. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include "format.h"

/* Three digits, and a letter for the power of `base`. */
static void
format_scaled(char *out, double number, double base, const char *letters)
{
	double size = fabs(number);
	int i = 0;

	/* %.0f would print 999.5 as 1000. */
	while (size >= (i ? 999.5 : base * 0.9995) && letters[i]) {
		size /= base;
		number /= base;
		i++;
	}
	if (i == 0 && (number == floor(number) || size >= 99.95))
		(void)snprintf(out, FORMAT_ROOM, "%.0f", number);
	else
		(void)snprintf(out, FORMAT_ROOM, "%.*f%.1s",
		               size < 9.995 && i > 0 ? 2
		               : size < 99.95        ? 1
		                                     : 0,
		               number, i > 0 ? &letters[i - 1] : "");
}

static void
format_long_time(char *out, double seconds)
{
	uint64_t whole = (uint64_t)(seconds < 86400e5 ? seconds : 86400e5);

	if (whole < 3600)
		(void)snprintf(out, FORMAT_ROOM, "%um%02us", (unsigned)(whole / 60),
		               (unsigned)(whole % 60));
	else if (whole < 86400)
		(void)snprintf(out, FORMAT_ROOM, "%uh%02um", (unsigned)(whole / 3600),
		               (unsigned)(whole % 3600 / 60));
	else if (whole < 86400 * 100)
		(void)snprintf(out, FORMAT_ROOM, "%ud%02uh", (unsigned)(whole / 86400),
		               (unsigned)(whole % 86400 / 3600));
	else
		(void)snprintf(out, FORMAT_ROOM, "%" PRIu64 "d", whole / 86400);
}

static void
format_time(char *out, double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double number = ns < 0 ? 0 : ns;
	int i = 0;

	if (number >= 99.95e9) {
		format_long_time(out, number / 1e9);
		return;
	}
	while (number >= 999.5 && i < 3) {
		number /= 1e3;
		i++;
	}
	(void)snprintf(out, FORMAT_ROOM, "%.*f%s",
	               i == 0 || number >= 99.95 ? 0
	               : number < 9.995          ? 2
	                                         : 1,
	               number, units[i]);
}

void
format_number(char out[FORMAT_ROOM], double number, enum unit unit)
{
	if (isnan(number))
		(void)snprintf(out, FORMAT_ROOM, "-");
	else if (unit == UNIT_TIME)
		format_time(out, number);
	else if (unit == UNIT_PERCENT)
		(void)snprintf(out, FORMAT_ROOM, "%.0f%%", number);
	else if (unit == UNIT_BYTES)
		format_scaled(out, number, 1024, "KMGTPE");
	else if (unit == UNIT_COUNT)
		format_scaled(out, number, 1000, "kMGTPE");
	else if (number >= 0x1p32 && number < 0x1p63)
		(void)snprintf(out, FORMAT_ROOM, "%#" PRIx64, (uint64_t)number);
	else
		(void)snprintf(out, FORMAT_ROOM, "%.0f", number);
}
