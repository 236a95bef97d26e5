/* uring.h - the sweep's interface to the io_uring rings. */
#ifndef WEFT_FAULT_URING_H
#define WEFT_FAULT_URING_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel lets this process create rings, with the newest setup flags that are used. */
bool fault_has_rings(void);

/* Make every ring that is set up from now on as small as possible. */
void fault_set_small_rings(bool on);
bool fault_has_small_rings(void);

/* How many times, in this process, a completion ring was seen to overflow. */
uint64_t fault_overflows(void);

#endif
