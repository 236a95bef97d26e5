/* top.h - weft top: the definitions that its files share.
 *
 * The files: target.c (which program to monitor), top_link.c (HTTP requests to it), top_events.c
 * and json.c (parsing its replies), model.c (the data received), tables.c, table.c and format.c
 * (the data as rows), draw.c (one frame), screen.c (its lines), keyboard.c and act.c (keys), save.c
 * (writing files), top_run.c (startup and main loop).  The verb and its command line are in
 * ../top.c; the terminal and the cleaning of texts for it are in ../base.
 *
 * Everything runs on one loop: threadlets talk to the program, callbacks handle keys and
 * signals.
 */
#ifndef WEFT_TOP_TOP_H
#define WEFT_TOP_TOP_H

#include <weft/weft.h>
#include <weft/http.h>
#include "keyboard.h"
#include "model.h"
#include "screen.h"
#include "table.h"

#define TARGET_MAX  1024u
#define PERIOD_LEAST_MS 250u
#define PERIOD_MOST_MS  10000u

struct top_opts {
	const char *name;      /* of the target, safe to display */
	char base[TARGET_MAX]; /* its URL, without a trailing slash */
	const char *token;     /* or NULL */
	uint32_t period_ms;
	bool once;
};

/* --- target.c ---------------------------------------------------------------- */

/* Write the URL for `word`, which is a URL, an address, a port, or the path of a socket.
 * Returns 0, or WEFT_EINVAL with an error text. */
int target_url(const char *word, char out[TARGET_MAX]);

/* --- tables.c ---------------------------------------------------------------- */

enum tab { TAB_LOOPS, TAB_THREADLETS, TAB_VALUES, TABS };

/* The rows received so far, with their columns. */
struct table tables_get(const struct model *model, enum tab tab);

/* --- what is displayed --------------------------------------------------------- */

#define FILTER_MAX 63u

struct tab_view {
	struct table_order order;
	char filter[FILTER_MAX + 1]; /* in lower case */
};

struct view {
	enum tab tab;
	struct tab_view tabs[TABS];
	bool editing; /* the user is typing the filter */
	bool help, paused;
	size_t help_top;
	int page;     /* rows of the table when it was last drawn */
	char message[512];
	uint64_t message_until_ns;
};

struct top {
	const struct top_opts *opts;
	uint32_t period_ms;
	weft_loop *loop;
	weft_http_client *client;
	struct model model;
	struct screen screen;
	struct view view;
	struct keyboard keyboard;
	bool live;               /* there is a terminal to draw on */
	bool connected;          /* an event arrived, and the connection is still open */
	bool has_more;           /* the program has more threadlets than one reply holds */
	char trouble[512];       /* why there is no connection */
	char bearer[512];
	weft_threadlet feeder;
	weft_event refresh, quit; /* read the threadlets now; end the program */
	weft_scope scope;
	weft_timer escape;
	weft_watch key_watch, signal_watches[7];
	uint32_t saving;         /* one bit for each enum save in progress */
	int status;              /* exit status */
};

/* --- draw.c ------------------------------------------------------------------ */

/* Draw all tables one below the other as text, for which the screen is made as tall as needed, up
 * to SCREEN_ROWS_MAX.  Returns the number of lines, or WEFT_ENOMEM. */
int draw_text(struct top *top, int columns);

/* Draw a frame and show it, if there is a terminal. */
void draw_show(struct top *top);

/* Show a message in the last line for a few seconds. */
void draw_message(struct top *top, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A line of the help text; NULL after the last. */
const char *draw_help_line(size_t index);

/* --- act.c ------------------------------------------------------------------- */

void act_on_key(int key, void *top);

/* --- top_link.c -------------------------------------------------------------- */

/* Request `path` below the base URL.  Fills `out`, which the caller ends with weft_http_close().
 * Returns 0, or an error with a short text; a status other than 200 is an error. */
int link_request(struct top *top, const char *path, weft_http **out, uint64_t deadline_ns);

/* Read events until the connection fails; with `once`, until two readings have arrived.  Returns
 * an error; WEFT_ESHUTDOWN after the two readings of `once`. */
int link_listen(struct top *top);

/* Read the list of threadlets.  Returns 0, or an error with a text. */
int link_read_threadlets(struct top *top);

/* Threadlets that repeat these two until they are canceled. */
int link_feed(void *top);
int link_refresh(void *top);

/* --- save.c ------------------------------------------------------------------ */

enum save { SAVE_THREADLETS, SAVE_TRACE };

/* Start writing to a new file in the current directory.  Messages on the screen report the
 * outcome. */
void save_begin(struct top *top, enum save what);

/* --- top_run.c --------------------------------------------------------------- */

/* Run weft top.  Returns an exit status. */
int top_run(const struct top_opts *opts);

/* Change the interval at which the program sends events. */
void top_set_period(struct top *top, uint32_t period_ms);

#endif
