/* lean.h - functions without a frame pointer, as most programs are compiled. */
#ifndef WEFT_TEST_LEAN_H
#define WEFT_TEST_LEAN_H

/* Call park() from `depth` nested calls of them. */
int lean_outer(int depth, int (*park)(void));
int lean_inner(int depth, int (*park)(void));

#endif
