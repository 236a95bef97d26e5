/* cpus.c - parses lists of CPUs. */
#include "base/sys.h"

/* Parse a number below `max` and advance *at past it; -1 if there is none. */
static int
cpus_read_number(const char **at, int max)
{
	int number = 0;
	const char *from = *at;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		number = 10 * number + (**at - '0');
		if (number >= max)
			return -1;
	}
	return *at == from ? -1 : number;
}

/* "0-3,6": numbers and ranges, separated by commas. */
bool
weft__cpus_read(struct weft__cpus *out, const char *text)
{
	for (;; text++) {
		int from = cpus_read_number(&text, WEFT__CPUS_MAX), to = from;

		if (*text == '-') {
			text++;
			to = cpus_read_number(&text, WEFT__CPUS_MAX);
		}
		if (from < 0 || to < from)
			return false;
		for (int i = from; i <= to; i++)
			out->words[i / 64] |= UINT64_C(1) << (i % 64);
		if (*text != ',')
			return *text == '\0';
	}
}
