/* deaths.h - last words of a sweep: in which run was it?
 *
 * A sanitizer reports in its own way and then calls us; without one we handle the
 * signals ourselves.
 */
#ifndef WEFT_FAULT_DEATHS_H
#define WEFT_FAULT_DEATHS_H

/* From now on whatever ends the process, or an alarm, prints `run`, to standard error.
 * Borrows the text for good: it is the caller's to change between two runs. */
void deaths_catch(const char *run);

#endif
