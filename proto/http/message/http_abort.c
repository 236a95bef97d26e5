/* http_abort.c - end the calls of an exchange when the abort signal of its request fires.
 *
 * Each call runs in a scope, because an abort signal reaches suspended calls through a scope.
 * Outside of threadlets nothing suspends, and checking the signal once is enough.
 */
#include "http/message/exchange.h"

int
weft__http_guard_begin(struct weft__http_guard *guard, const weft_abort *abort)
{
	int rc = 0;

	guard->is_open = false;
	if (abort)
		rc = weft_abort_check(abort, NULL);
	if (rc < 0 || !abort || !weft_self())
		return rc;
	rc = weft_scope_open(&guard->scope, 0, WEFT_NEVER);
	if (rc < 0)
		return rc;
	guard->is_open = true;
	rc = weft_abort_scope(abort, &guard->scope);
	if (rc < 0)
		weft__http_guard_end(guard);
	return rc;
}

void
weft__http_guard_end(struct weft__http_guard *guard)
{
	if (guard->is_open)
		(void)weft_scope_close(&guard->scope);
	guard->is_open = false;
}
