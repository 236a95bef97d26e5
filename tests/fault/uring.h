/* uring.h - what a sweep says and asks about the rings of io_uring. */
#ifndef WEFT_FAULT_URING_H
#define WEFT_FAULT_URING_H

#include <stdbool.h>
#include <stdint.h>

/* Does the kernel make rings, for us and of the newest kind that is asked for? */
bool fault_has_rings(void);

/* Let rings that are set up from now on be as small as can be. */
void fault_set_small_rings(bool on);
bool fault_has_small_rings(void);

/* How often, ever, a completion ring was found to have overflowed. */
uint64_t fault_overflows(void);

#endif
