/* report.h - reports: events for which there is no caller to return an error to. */
#ifndef WEFT_BASE_REPORT_H
#define WEFT_BASE_REPORT_H

#include <weft/base.h>

/* Pass `report` to the program's hook.  Without a hook, print it on standard error unless the
 * program disabled that or this level.  Safe in a signal handler. */
void weft__report(const weft_report *report);

/* Describe the code that called the library: the first of `callers` (innermost first) that
 * follows a public function of the library and is not part of it.  False if there is none. */
bool weft__find_caller(const void *const *callers, size_t count, char *out, size_t room);

#endif
