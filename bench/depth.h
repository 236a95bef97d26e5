/* depth.h - calls made several frames deep, as in real programs.
 *
 * A stack switch that confuses the processor's return prediction costs nothing in the first
 * frame of a stack, and much in deeper ones.  So every program makes its suspending calls
 * through three functions.
 */
#ifndef WEFT_BENCH_DEPTH_H
#define WEFT_BENCH_DEPTH_H

#include <stdint.h>

/* The empty statement after the call prevents a tail call. */
#define DEPTH_FRAME(name, callee)                 \
	__attribute__((noinline)) static uint64_t \
	name(uint64_t x)                          \
	{                                         \
		uint64_t y = callee(x);           \
		__asm__ volatile("");             \
		return y;                         \
	}

/* name(x) is leaf(x), three frames deeper. */
#define DEPTH(name, leaf)                      \
	DEPTH_FRAME(name##_low, leaf)          \
	DEPTH_FRAME(name##_middle, name##_low) \
	DEPTH_FRAME(name, name##_middle)

#endif
