/* admin_trace.c - record for some seconds, and send a Chrome trace.
 *
 *   1. There is one recording at a time, until it has been sent.  Its memory is needed until
 *      then, and with slow readers such recordings would add up.
 *   2. The reply begins when the recording does, and gets a newline each second, which JSON
 *      allows at the beginning.  Only a write reveals that the peer is gone; then the recording
 *      ends.
 *   3. The conversion to text runs on the blocking pool: before the first piece the whole trace
 *      is read and sorted, which would block the loop.
 */
#include "admin_private.h"
#include <weft/trace.h>
#include <weft/work.h>

#define SECONDS_DEFAULT UINT64_C(3)
#define SECONDS_MAX     UINT64_C(60)

static uint32_t busy; /* atomic: there is a recording, of any admin endpoint */

struct piece {
	weft_trace *trace;
	const char *data;
	size_t size;
};

static int
begin_reply(weft_http *http)
{
	int rc = weft__admin_headers(http, NULL);

	if (rc == 0)
		rc = weft_http_set_header(http, "Content-Disposition",
		                          "attachment; filename=\"trace.json\"");
	if (rc == 0)
		rc = weft_http_begin(http, 200, "application/json", WEFT_NEVER);
	return rc;
}

static int
write_some(weft_http *http, const char *data, size_t size)
{
	ssize_t n = weft_http_write(http, data, size, WEFT_NEVER);

	return n < 0 ? (int)n : 0;
}

/* Record for `seconds`, or until the admin endpoint closes or the peer is gone.  Rule 2. */
static int
record(weft_http *http, weft_admin *admin, weft_trace *trace, uint64_t seconds)
{
	uint64_t due = weft_now();
	int rc = begin_reply(http), ended;

	while (rc == 0 && seconds-- > 0) {
		rc = write_some(http, "\n", 1);
		if (rc < 0)
			break;
		due += WEFT_S;
		rc = weft_event_wait(&admin->closing, due);
		if (rc == 0)
			rc = WEFT_ESHUTDOWN;
		else if (rc == WEFT_ETIMEDOUT)
			rc = weft_check_canceled(); /* fails if a scope's deadline has passed */
	}
	ended = weft_trace_end(trace);
	return rc < 0 ? rc : ended;
}

static int
read_piece(void *arg)
{
	struct piece *piece = arg;

	return weft_trace_read(piece->trace, &piece->data, &piece->size);
}

/* Rule 3.  If no thread is available, a blocked loop is better than no trace. */
static int
next_piece(struct piece *piece)
{
	int rc = weft_work(WEFT_BLOCKING, read_piece, piece, WEFT_NEVER);

	return rc == WEFT_EAGAIN ? read_piece(piece) : rc;
}

static int
send_trace(weft_http *http, weft_admin *admin, weft_trace *trace)
{
	struct piece piece = { .trace = trace };
	int rc;

	while ((rc = next_piece(&piece)) > 0) {
		rc = write_some(http, piece.data, piece.size);
		if (rc == 0)
			rc = weft_yield();
		if (rc == 0 && weft__admin_is_closing(admin))
			rc = WEFT_ESHUTDOWN;
		if (rc < 0)
			break;
	}
	return rc;
}

static int
admin_trace_begin(weft_http *http, weft_admin *admin, weft_trace **out)
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
	rc = weft__admin_reply_line(http, 409, "a trace is already being recorded");
	return rc < 0 ? rc : 1;
}

int
weft__admin_trace(weft_http *http, weft_admin *admin)
{
	uint64_t seconds = SECONDS_DEFAULT;
	weft_trace *trace;
	int rc;

	if (!weft__admin_query(http, "seconds", (uint64_t[2]){ 1, SECONDS_MAX }, &seconds))
		return weft__admin_reply_line(http, 400, "seconds is a number from 1 to 60");
	rc = admin_trace_begin(http, admin, &trace);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = record(http, admin, trace, seconds);
	if (rc == 0)
		rc = send_trace(http, admin, trace);
	weft_trace_free(trace);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return rc;
}
