/* trace.c - a recording of some seconds, as a Chrome trace.
 *
 * There is one until it has been sent, not only while it lasts: its memory is needed so
 * long, and who takes it slowly would have others begin theirs.
 */
#include "window.h"
#include <weft/trace.h>

#define SECONDS_DEFAULT UINT64_C(3)
#define SECONDS_MAX     UINT64_C(60)

static uint32_t busy; /* atomic: there is one, of whichever window */

/* Record until then, or until the window closes; fills nothing. */
static int
record(weft_admin *admin, weft_trace *trace, uint64_t seconds)
{
	int rc = weft_event_wait(&admin->closing, weft_in(seconds * WEFT_S));
	int ended = weft_trace_end(trace);

	if (rc == 0)
		return WEFT_ESHUTDOWN;
	if (rc != WEFT_ETIMEDOUT)
		return rc;
	return ended;
}

static int
send_trace(weft_http *http, weft_admin *admin, weft_trace *trace)
{
	const char *piece;
	size_t size;
	int rc = weft__admin_headers(http, NULL);

	if (rc == 0)
		rc = weft_http_set(http, "Content-Disposition",
		                   "attachment; filename=\"trace.json\"");
	if (rc == 0)
		rc = weft_http_begin(http, 200, "application/json",
		                     weft_in(WEFT__ADMIN_TAKE_NS));
	while (rc == 0 && (rc = weft_trace_read(trace, &piece, &size)) > 0) {
		ssize_t n = weft_http_write(http, piece, size,
		                            weft_in(WEFT__ADMIN_TAKE_NS));

		rc = n < 0 ? (int)n : weft_yield();
		if (rc == 0 && weft__admin_is_closing(admin))
			rc = WEFT_ESHUTDOWN;
	}
	return rc;
}

static int
begin(weft_http *http, weft_admin *admin, weft_trace **out)
{
	const weft_trace_opts opts = { .bytes_max = admin->trace_max };
	bool free = !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
	int rc = free ? weft_trace_begin(&opts, out) : WEFT_EBUSY;

	if (rc == 0)
		return 0;
	if (free)
		__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	if (rc != WEFT_EBUSY)
		return rc;
	rc = weft__admin_say(http, 409, "somebody records already");
	return rc < 0 ? rc : 1;
}

int
weft__admin_trace(weft_http *http, weft_admin *admin)
{
	uint64_t seconds = SECONDS_DEFAULT;
	weft_trace *trace;
	int rc;

	if (!weft__admin_query(http, "seconds", (uint64_t[2]){ 1, SECONDS_MAX },
	                       &seconds))
		return weft__admin_say(http, 400,
		                       "seconds is a number from 1 to 60");
	rc = begin(http, admin, &trace);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = record(admin, trace, seconds);
	if (rc == 0)
		rc = send_trace(http, admin, trace);
	weft_trace_free(trace);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return rc;
}
