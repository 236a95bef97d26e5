/* top.h - weft top: what its files share.
 *
 * The files: target.c (what is looked at), link.c (it tells), events.c and json.c (what its bytes
 * say), model.c (what is known of it), tables.c, table.c and format.c (in rows), draw.c (in
 * a picture), screen.c, text.c and terminal.c (on a terminal), keyboard.c and act.c (what the
 * keys do), save.c (files), run.c (all of it together).  The verb and its words are in
 * ../top.c.
 *
 * All of it is on one loop: threadlets talk to the program, callbacks have keys and signals.
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
	const char *name;      /* of what is looked at, fit to be shown */
	char base[TARGET_MAX]; /* its URL, without the last slash */
	const char *token;     /* or NULL */
	uint32_t period_ms;
	bool once;
};

/* --- target.c ---------------------------------------------------------------- */

/* The URL of what a word names: a URL, an address, a port, or the path of a socket.  Returns 0; or
 * WEFT_EINVAL with its text. */
int target_url(const char *word, char out[TARGET_MAX]);

/* --- tables.c ---------------------------------------------------------------- */

enum tab { TAB_LOOPS, TAB_THREADLETS, TAB_VALUES, TABS };

/* The rows that are known, under their columns. */
struct table tables_get(const struct model *model, enum tab tab);

/* --- what is seen -------------------------------------------------------------- */

#define FILTER_MAX 63u

struct tab_view {
	struct table_order order;
	char filter[FILTER_MAX + 1]; /* in small letters */
};

struct view {
	enum tab tab;
	struct tab_view tabs[TABS];
	bool editing; /* the filter */
	bool help, paused;
	size_t help_top;
	int page;     /* rows of the table, as it was drawn last */
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
	bool connected;          /* it has told something, and still may */
	bool has_more;           /* threadlets than it tells at once */
	char trouble[512];       /* why it does not tell anything */
	char bearer[512];
	weft_threadlet feeder;
	weft_event look, quit;   /* at the threadlets, now; and the end */
	weft_scope scope;
	weft_timer escape;
	weft_watch key_watch, signal_watches[7];
	uint32_t saving;         /* a bit for each of enum save */
	int status;              /* to exit with */
};

/* --- draw.c ------------------------------------------------------------------ */

/* Make the picture: for a terminal; and all tables one below the other, as text, for which
 * the screen is made as tall as it takes, up to SCREEN_ROWS_MAX.  That returns the number of
 * lines, or WEFT_ENOMEM. */
void draw_frame(struct top *top);
int  draw_text(struct top *top, int columns);

/* Make it and show it, if there is a terminal. */
void draw_show(struct top *top);

/* Say something in the last line, for some seconds. */
void draw_message(struct top *top, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The text of the help, by lines; NULL after the last. */
const char *draw_help_line(size_t index);

/* --- act.c ------------------------------------------------------------------- */

void act_on_key(int key, void *top);

/* --- link.c ------------------------------------------------------------------ */

/* Ask for `path` below the base; fills `out`, which weft_http_close() ends.  Returns 0; or an error
 * with a short text, also for a status other than 200. */
int link_ask(struct top *top, const char *path, weft_http **out, uint64_t deadline_ns);

/* Read what the program tells until the link fails; with `once`, two readings.  Returns an
 * error; 0 for `once`. */
int link_listen(struct top *top);

/* Read its threadlets.  Returns 0, or an error with its text. */
int link_read_threadlets(struct top *top);

/* Threadlets that do so for ever: they end when they are cancelled. */
int link_feed(void *top);
int link_look(void *top);

/* --- save.c ------------------------------------------------------------------ */

enum save { SAVE_THREADLETS, SAVE_TRACE };

/* Begin to write it to a new file in this folder; messages tell the rest. */
void save_begin(struct top *top, enum save what);

/* --- run.c ------------------------------------------------------------------- */

/* All of it; an exit status. */
int top_run(const struct top_opts *opts);

/* Change how often the program tells. */
void top_set_period(struct top *top, uint32_t period_ms);

#endif
