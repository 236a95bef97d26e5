/* child_wait.c - the calls of weft/child.h that suspend a threadlet.
 *
 * Wait and close start an op in their own stack frame and wait for it; child.c implements the ops.
 * With WEFT_NOWAIT no op is started, because the call could not wait for its end.
 */
#include "runtime/child.h"
#include "threadlet/threadlet.h"

int
weft_child_open(const char *const *argv, const weft_child_opts *opts, weft_child **out,
                uint64_t deadline_ns)
{
	/* Opening does not wait; but a canceled threadlet must not start a process. */
	int rc = deadline_ns == WEFT_NOWAIT ? 0 : weft__may_wait_in(deadline_ns, "weft_child_open");

	return rc < 0 ? rc : weft__child_open(NULL, argv, opts, out);
}

int
weft_child_wait(weft_child *child, int *out, uint64_t deadline_ns)
{
	weft_op op;
	int64_t status = 0;
	int rc, now = 0;

	if (deadline_ns == WEFT_NOWAIT) {
		rc = weft__child_poll(child, &now);
		status = now;
	} else {
		rc = weft__may_wait_in(deadline_ns, "weft_child_wait");
		if (rc == 0) {
			weft__op_init_waited(&op);
			rc = weft__child_wait_op(child, &op, deadline_ns);
		}
		if (rc == 0)
			status = weft__op_wait(&op, "child");
	}
	if (rc < 0 || status < 0)
		return rc < 0 ? rc : (int)status;
	if (out)
		*out = (int)status;
	return 0;
}

void
weft_child_close(weft_child *child)
{
	weft_op op;

	if (!child)
		return;
	if (!weft__self()) {
		(void)weft__child_close_later(child); /* there is no threadlet to suspend */
		return;
	}
	weft__op_init_waited(&op);
	if (weft__child_close_op(child, &op) == 0)
		(void)weft__op_wait_shielded(&op, "child");
}
