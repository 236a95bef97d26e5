/* report.h - telling what no caller is there to be told. */
#ifndef WEFT_BASE_REPORT_H
#define WEFT_BASE_REPORT_H

#include <weft/base.h>

/* Hand `report` to the program's hook, if it set one and wants this level. */
void weft__report(const weft_report *report);

/* The same; without a hook, as a line on standard error.  Also in a signal handler. */
void weft__report_or_print(const weft_report *report);

#endif
