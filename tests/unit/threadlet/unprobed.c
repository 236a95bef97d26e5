/* unprobed.c - recursion with frames that are not touched as they are made.
 *
 * The build compiles this file without -fstack-clash-protection, as much of the code that
 * uses the library is.
 */
#include "unit/threadlet/unprobed.h"

/* What is written into it cannot be known before. */
static __attribute__((noinline)) void
write_start(volatile char *buf, int depth)
{
	buf[0] = (char)depth;
}

__attribute__((noinline)) int
dig_12_kib(int depth)
{
	char buf[12 * 1024];

	write_start(buf, depth);
	return depth == 0 ? 0 : dig_12_kib(depth - 1) + buf[0];
}

__attribute__((noinline)) int
dig_60_kib(int depth)
{
	char buf[60 * 1024];

	write_start(buf, depth);
	return depth == 0 ? 0 : dig_60_kib(depth - 1) + buf[0];
}
