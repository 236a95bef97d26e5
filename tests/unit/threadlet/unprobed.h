/* unprobed.h - recursion with frames that are not touched as they are made. */
#ifndef TESTS_UNIT_THREADLET_UNPROBED_H
#define TESTS_UNIT_THREADLET_UNPROBED_H

/* Call itself `depth` times; each frame has a buffer of that size, of which the first
 * bytes are written. */
int dig_12_kib(int depth);
int dig_60_kib(int depth);

#endif
