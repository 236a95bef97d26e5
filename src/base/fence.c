/* fence.c - stops C++ exceptions that leave a callback of the program.
 *
 * Unwinding has two phases.  The first searches the frames for a handler and changes nothing;
 * for each frame it calls a personality routine.  The fence's routine writes a report and
 * returns that the search has failed.  The C++ runtime then calls std::terminate(), which names
 * the exception.  The stack is still intact for a debugger and for the core file.
 *
 * A thread that is canceled, or ends by pthread_exit(), is unwound without a search phase; that
 * passes through the fence.
 */
#include <unwind.h>
#include "base/fence.h"
#include "base/report.h"

/* Called by the unwinder only, through the unwind tables. */
_Unwind_Reason_Code
weft__personality(int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
                  struct _Unwind_Exception *exception, struct _Unwind_Context *context);

__attribute__((used, visibility("hidden"))) _Unwind_Reason_Code
weft__personality(int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
                  struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	(void)version;
	(void)exception_class;
	(void)exception;
	(void)context;
	if (!(actions & _UA_SEARCH_PHASE))
		return _URC_CONTINUE_UNWIND;
	weft__report(&(weft_report){ .kind = WEFT_REPORT_BUG,
	                             .text = "an exception has left a function that weft called: "
	                                     "callbacks, threadlets, steps and work must catch "
	                                     "their own exceptions" });
	return _URC_FATAL_PHASE1_ERROR;
}

/* The compiler writes the unwind tables of this frame.  The first asm statement adds the
 * personality routine, as a PC-relative reference (0x1b).  The last one prevents a tail call. */
__attribute__((noinline)) void
weft__fence(void (*fn)(void *arg), void *arg)
{
	__asm__ volatile(".cfi_personality 0x1b, weft__personality");
	fn(arg);
	__asm__ volatile("");
}
