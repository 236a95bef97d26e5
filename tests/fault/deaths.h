/* deaths.h - report which run of a sweep was in progress when the process died.
 *
 * A sanitizer prints its own report and then calls a function of this file.  Without a
 * sanitizer, signal handlers of this file catch the fatal signals.
 */
#ifndef WEFT_FAULT_DEATHS_H
#define WEFT_FAULT_DEATHS_H

/* From now on, `run` is printed to standard error when a fatal signal or an alarm ends the
 * process.  Keeps the pointer forever.  The caller may change the text between two runs. */
void deaths_catch(const char *run);

#endif
