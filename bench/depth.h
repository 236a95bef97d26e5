/* depth.h - calls made some frames down, as those of real programs are.
 *
 * A switch of stacks that confuses the processor's prediction of returns costs
 * nothing at the bottom of a stack and much further up: so what suspends is called
 * through three functions, in every program alike.
 */
#ifndef WEFT_BENCH_DEPTH_H
#define WEFT_BENCH_DEPTH_H

#include <stdint.h>

/* The empty statement after the call keeps it from becoming a jump. */
#define DEPTH_FRAME(name, callee)                 \
	__attribute__((noinline)) static uint64_t \
	name(uint64_t x)                          \
	{                                         \
		uint64_t y = callee(x);           \
		__asm__ volatile("");             \
		return y;                         \
	}

/* name(x) is leaf(x), three frames down. */
#define DEPTH(name, leaf)                      \
	DEPTH_FRAME(name##_low, leaf)          \
	DEPTH_FRAME(name##_middle, name##_low) \
	DEPTH_FRAME(name, name##_middle)

#endif
