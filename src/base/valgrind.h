/* valgrind.h - whether the program runs under valgrind.  Private.
 *
 * Uses valgrind's header if it is installed.  Without the header, or with NVALGRIND, valgrind is
 * recognized by the library that it preloads.
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

extern bool weft__on_valgrind; /* cached: asking valgrind costs as much as a stack switch */

#endif
