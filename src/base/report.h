/* report.h - reports: events for which there is no caller to return an error to. */
#ifndef WEFT_BASE_REPORT_H
#define WEFT_BASE_REPORT_H

#include <weft/base.h>

/* Pass `report` to the program's hook.  Without a hook, print errors and warnings on standard
 * error, unless the program has set `silent`; fatal reports (BUG, OVERFLOW) are printed even
 * then.  LOG reports above `log_level` are dropped, with or without a hook.  Safe in a signal
 * handler if the hook is. */
void weft__report(const weft_report *report);

/* Describe the code that called the library: the first of `callers` (innermost first) that
 * follows a public function of the library and is not part of it.  False if there is none. */
bool weft__find_caller(const void *const *callers, size_t count, char *out, size_t room);

#endif
