/* report.h - reports: what no caller is there to hear. */
#ifndef WEFT_BASE_REPORT_H
#define WEFT_BASE_REPORT_H

#include <weft/base.h>

/* Pass `report` to the program's hook; without one, print it on standard error, unless the
 * program wants that silent or not at this level.  Also in a signal handler. */
void weft__report(const weft_report *report);

/* The code that called the library, as text: of `callers`, innermost first, the first that is
 * not the library's, behind a public function of it.  False if it is not found. */
bool weft__find_caller(const void *const *callers, size_t count, char *out, size_t room);

#endif
