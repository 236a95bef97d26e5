/* late.h - reports a runtime that does not stop in time.  Private. */
#ifndef WEFT_RUNTIME_LATE_H
#define WEFT_RUNTIME_LATE_H

#include <weft/runtime.h>

/* Report what still runs in `runtime`: threadlets of its loops, work in its pools.
 * Thread: any.  Blocks: waits, up to 6 s for each loop whose thread does not answer. */
void weft__runtime_report_late(weft_runtime *runtime);

#endif
