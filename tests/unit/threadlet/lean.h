/* lean.h - functions that keep no frame pointer, as most programs are compiled. */
#ifndef WEFT_TEST_LEAN_H
#define WEFT_TEST_LEAN_H

/* Call park() from so many of them, one inside the other. */
int lean_outer(int depth, int (*park)(void));
int lean_inner(int depth, int (*park)(void));

#endif
