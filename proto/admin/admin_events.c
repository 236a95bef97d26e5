/* admin_events.c - the stream of snapshots of all loops.
 *
 * There is no timer and no threadlet but those of the readers.  Each reader wakes at multiples
 * of its period on the clock, so that all readers with the same period wake together.
 *
 *   1. The first reader that gets the lock makes the snapshot.  The others find one that is as
 *      new as they need, and use it.
 *   2. Making a snapshot enables metrics of all loops and graphs for some seconds.  So
 *      observation ends some seconds after the last reader is gone.
 *   3. A reader that does not accept a snapshot within some seconds is dropped.
 */
#include "admin_private.h"
#include <string.h>
#include <weft/dag.h>

#define PERIOD_NS  WEFT_S
#define OBSERVE_NS (5 * WEFT_S)
#define FRESH_NS   (100 * WEFT_MS) /* for a reader that has just connected */

/* --- snapshots ---------------------------------------------------------------------- */

void
weft__admin_snapshot_drop(struct weft__admin_snapshot *snapshot)
{
	if (snapshot && weft__refs_drop(&snapshot->refs))
		weft_release(snapshot);
}

static int
make_snapshot(weft_admin *admin, struct weft__admin_snapshot **out)
{
	struct weft__admin_text text = { 0 };
	struct weft__admin_snapshot *snapshot = NULL;
	uint64_t now = weft_now();
	int rc;

	weft__admin_write_loops(admin, &text);
	rc = text.error;
	if (rc == 0) {
		snapshot = weft_alloc(sizeof(*snapshot) + text.out.size + 1);
		rc = snapshot ? 0 : WEFT_ENOMEM;
	}
	if (snapshot) {
		snapshot->refs = WEFT__REFS_ONE;
		snapshot->made_ns = now;
		snapshot->event = "loops";
		memcpy(snapshot->text, text.out.data, text.out.size);
		snapshot->text[text.out.size] = '\0';
		*out = snapshot;
	}
	weft__admin_text_fini(&text);
	return rc;
}

static void
observe(uint64_t period_ns)
{
	uint64_t observed_ns = 2 * period_ns > OBSERVE_NS ? 2 * period_ns : OBSERVE_NS;

	(void)weft_loop_observe(0, weft_after(observed_ns)); /* without memory, less is observed */
	weft_dag_observe(weft_after(observed_ns));
}

/* Get a snapshot made at `since_ns` or later.  The caller releases it. */
static int
get_snapshot(weft_admin *admin, uint64_t since_ns, uint64_t period_ns,
             struct weft__admin_snapshot **out)
{
	struct weft__admin_snapshot *snapshot = NULL;
	int rc = weft_mutex_lock(&admin->broadcast, WEFT_NEVER);

	if (rc < 0)
		return rc;
	if (!admin->snapshot || admin->snapshot->made_ns < since_ns) {
		observe(period_ns);
		rc = make_snapshot(admin, &snapshot);
		if (rc == 0) {
			weft__admin_snapshot_drop(admin->snapshot);
			admin->snapshot = snapshot;
			admin->made++;
		}
	}
	if (rc == 0) {
		weft__refs_add(&admin->snapshot->refs);
		*out = admin->snapshot;
	}
	(void)weft_mutex_unlock(&admin->broadcast);
	return rc;
}

/* --- readers -------------------------------------------------------------------------- */

static int
admin_events_notify(weft_http *http, weft_admin *admin, uint64_t since_ns, uint64_t period_ns)
{
	struct weft__admin_snapshot *snapshot = NULL;
	int rc = get_snapshot(admin, since_ns, period_ns, &snapshot);

	if (rc < 0)
		return rc;
	rc = weft_http_send_event(http, snapshot->event, snapshot->text,
	                          weft_after(WEFT__ADMIN_TAKE_NS));
	weft__admin_snapshot_drop(snapshot);
	return rc;
}

/* Send snapshots until the reader is gone or the admin endpoint closes. */
static int
send_snapshots(weft_http *http, weft_admin *admin, uint64_t period_ns)
{
	uint64_t now = weft_now(), due;
	int rc = admin_events_notify(http, admin, now > FRESH_NS ? now - FRESH_NS : 0, period_ns);

	while (rc == 0) {
		due = (weft_now() / period_ns + 1) * period_ns;
		rc = weft_event_wait(&admin->closing, due);
		if (rc == 0)
			return 0;
		if (rc == WEFT_ETIMEDOUT)
			rc = admin_events_notify(http, admin, due, period_ns);
	}
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
weft__admin_events(weft_http *http, weft_admin *admin)
{
	uint64_t ms = PERIOD_NS / WEFT_MS;
	int rc;

	if (!weft__admin_query(http, "ms", (uint64_t[2]){ 250, 10000 }, &ms))
		return weft__admin_reply_line(http, 400, "ms is a number from 250 to 10000");
	if (__atomic_add_fetch(&admin->readers, 1, __ATOMIC_RELAXED) <= admin->connections_max) {
		rc = weft__admin_headers(http, NULL);
		if (rc == 0)
			rc = send_snapshots(http, admin, ms * WEFT_MS);
	} else {
		(void)weft_http_set_header(http, "Retry-After", "5");
		rc = weft__admin_reply_line(http, 503, "too many readers of events");
	}
	(void)__atomic_sub_fetch(&admin->readers, 1, __ATOMIC_RELAXED);
	return rc;
}
