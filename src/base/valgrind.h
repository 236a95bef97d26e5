/* valgrind.h - valgrind, if the program runs on it.  Private.
 *
 * Its header is used where there is one; without it, or with NVALGRIND, a program on
 * valgrind is known by the library that valgrind preloads.
 *
 * Needs: nothing.  Thread: any; weft__on_valgrind is set before main().
 */
#ifndef WEFT_BASE_VALGRIND_H
#define WEFT_BASE_VALGRIND_H

#include <stdbool.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

#ifndef RUNNING_ON_VALGRIND
#define RUNNING_ON_VALGRIND 0
#endif

extern bool weft__on_valgrind; /* asking each time costs as much as a switch */

#endif
