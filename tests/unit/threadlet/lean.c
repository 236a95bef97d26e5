/* lean.c - functions that keep no frame pointer. */
#include "unit/threadlet/lean.h"

/* Behind the compiler's back, who would make a loop of it. */
static int (*volatile again)(int depth, int (*park)(void)) = lean_inner;

/* What is done with the results keeps the calls from being jumps. */
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
