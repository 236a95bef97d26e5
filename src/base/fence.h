/* fence.h - stops C++ exceptions that leave a callback of the program.
 *
 * The library is C.  An exception that passed through it would leave a loop marked as running,
 * locks held, and work counted that never ends.  So the program terminates where the exception
 * was thrown, with a text that explains why, as it does when an exception leaves a thread or a
 * noexcept function.
 *
 * Every callback runs inside a fence, or on the stack of a threadlet, whose first frame is one.
 */
#ifndef WEFT_BASE_FENCE_H
#define WEFT_BASE_FENCE_H

#include "base/build.h"

/* Calls fn(arg). */
WEFT__SHARED void weft__fence(void (*fn)(void *arg), void *arg);

#endif
