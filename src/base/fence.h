/* fence.h - where C++ exceptions end that leave a function of the program's.
 *
 * The library is C: an exception that passes through it would leave a loop that says it runs,
 * locks that are held, and work that is counted and never ends.  So the program dies of it,
 * where it was thrown, with a text that says why: as one that leaves a thread or a noexcept
 * function does.
 *
 * Everything that calls back runs inside of a fence, or on the stack of a threadlet, whose
 * first frame is one.
 */
#ifndef WEFT_BASE_FENCE_H
#define WEFT_BASE_FENCE_H

/* Calls fn(arg). */
void weft__fence(void (*fn)(void *arg), void *arg);

#endif
