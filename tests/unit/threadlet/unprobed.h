/* unprobed.h - recursion with stack frames that are not probed when they are entered. */
#ifndef TESTS_UNIT_THREADLET_UNPROBED_H
#define TESTS_UNIT_THREADLET_UNPROBED_H

/* Call themselves `depth` times.  Each frame has a buffer of the named size, of which only the
 * first bytes are written. */
int dig_12_kib(int depth);
int dig_60_kib(int depth);

#endif
