/* signal_wait.c - weft_signal_wait(), which suspends a threadlet. */
#include <weft/runtime.h>
#include "loop/process/signal.h"
#include "threadlet/threadlet.h"

int
weft_signal_wait(uint64_t signals, uint64_t deadline_ns)
{
	weft_op op;
	int rc;

	if (deadline_ns == WEFT_NOWAIT)
		return weft__signal_poll(NULL, signals);
	rc = weft__may_wait_in(deadline_ns, "weft_signal_wait");
	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = weft__signal_op(&op, signals, deadline_ns);
	return rc < 0 ? rc : (int)weft__op_wait(&op, "signal");
}
