/* unprobed.c - recursion with stack frames that are not probed when they are entered.
 *
 * The build compiles this file without -fstack-clash-protection.  Much of the code that uses
 * the library is compiled like that, too.
 */
#include "unit/threadlet/unprobed.h"

/* Not inlined, so that the compiler cannot predict what is written. */
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
