/* fence.c - where C++ exceptions end that leave a function of the program's.
 *
 * Unwinding has two phases.  The first searches the frames for a handler and changes nothing;
 * each frame is asked by its personality routine.  The fence's routine reports, and says that
 * the search has failed.  The C++ runtime then calls std::terminate(), which names the
 * exception; the stack is whole, for a debugger and for the core.
 *
 * Threads that are canceled or end by pthread_exit() are unwound without a search: they pass.
 */
#include <unwind.h>
#include "base/fence.h"
#include "base/report.h"

/* Called by the unwinder only, as the tables say. */
_Unwind_Reason_Code
weft__personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                  struct _Unwind_Exception *exception, struct _Unwind_Context *context);

__attribute__((used, visibility("hidden"))) _Unwind_Reason_Code
weft__personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                  struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if (!(actions & _UA_SEARCH_PHASE))
		return _URC_CONTINUE_UNWIND;
	weft__report(&(weft_report){ .kind = WEFT_REPORT_BUG,
	                             .text = "an exception has left a function that weft called: "
	                                     "callbacks, threadlets, steps and work must catch "
	                                     "their own" });
	return _URC_FATAL_PHASE1_ERROR;
}

/* The compiler writes the tables of this frame; the first line adds the routine, by its
 * distance from there (0x1b).  The last one keeps the call from becoming a jump. */
__attribute__((noinline)) void
weft__fence(void (*fn)(void *arg), void *arg)
{
	__asm__ volatile(".cfi_personality 0x1b, weft__personality");
	fn(arg);
	__asm__ volatile("");
}
