/* lean.c - functions without a frame pointer. */
#include "unit/threadlet/lean.h"

/* A volatile pointer, so that the compiler cannot turn the recursion into a loop. */
static int (*volatile again)(int depth, int (*park)(void)) = lean_inner;

/* The additions prevent tail calls. */
__attribute__((noinline)) int
lean_inner(int depth, int (*park)(void))
{
	return depth == 0 ? park() + 1 : again(depth - 1, park) + 1;
}

__attribute__((noinline)) int
lean_outer(int depth, int (*park)(void))
{
	return lean_inner(depth, park) + 1;
}
