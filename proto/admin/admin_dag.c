/* admin_dag.c - the program's graphs, with statistics of their nodes. */
#include "admin_private.h"
#include <weft/dag.h>

#define DAGS_MAX    1000u
#define OBSERVE_NS  (5 * WEFT_S)
#define PIECE_BYTES ((size_t)16 << 10)

static int
write_dags(weft_http *http, weft_admin *admin, struct weft__admin_text *text)
{
	uint64_t cursor = 0;
	weft_value value;
	int rc = 0, more = 1;

	weft__json_open(text, '{');
	weft__json_key(text, "dags");
	weft__json_open(text, '[');
	for (unsigned i = 0; rc == 0 && i < DAGS_MAX && (more = weft_dag_list(&cursor, &value)) > 0;
	     i++) {
		weft__json_raw(text, value.as.ptr);
		weft_value_drop(&value);
		rc = weft__admin_flush(http, text, PIECE_BYTES);
		if (rc == 0)
			rc = weft_yield();
		if (rc == 0 && weft__admin_is_closing(admin))
			rc = WEFT_ESHUTDOWN;
	}
	weft__json_close(text, ']');
	weft__json_close(text, '}');
	return more < 0 ? more : rc;
}

/* A request enables the timing of nodes, for runs that begin within OBSERVE_NS. */
int
weft__admin_dag(weft_http *http, weft_admin *admin)
{
	struct weft__admin_text text = { 0 };
	int rc = weft__admin_headers(http, NULL);

	weft_dag_observe(weft_after(OBSERVE_NS));
	if (rc == 0)
		rc = weft_http_begin(http, 200, "application/json", WEFT_NEVER);
	if (rc == 0)
		rc = write_dags(http, admin, &text);
	if (rc == 0)
		rc = weft__admin_flush(http, &text, 1);
	weft__admin_text_fini(&text);
	return rc;
}
