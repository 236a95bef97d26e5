/* top_run.c - weft top from startup to its exit status. */
#include <base/terminal.h>
#include <base/terminal_text.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "top.h"

#define ESCAPE_NS    (60 * WEFT_MS) /* wait this long for the rest of an escape sequence */
#define ONCE_NS      (15 * WEFT_S)
#define ONCE_COLUMNS 160

/* --- signals ------------------------------------------------------------------ */

enum { SIGNALS = 7 };
static const int signals[SIGNALS] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT
};

static void
resize(struct top *top)
{
	int rows, columns;

	terminal_size(STDOUT_FILENO, &rows, &columns);
	(void)screen_resize(&top->screen, rows, columns); /* on failure the size is unchanged */
	draw_show(top);
}

/* Restores the terminal while the process is stopped; take_again() sets it up afterwards. */
static void
stop_for_a_while(void)
{
	terminal_close();
	(void)kill(getpid(), SIGSTOP);
}

static void
take_again(struct top *top)
{
	if (terminal_open() < 0) {
		top->status = 1;
		(void)weft_event_set(&top->quit);
		return;
	}
	resize(top);
}

static void
top_run_on_signal(weft_watch *watch, int what, void *arg)
{
	struct top *top = arg;

	(void)watch;
	switch (what) {
	case SIGWINCH:
		resize(top);
		break;
	case SIGTSTP:
		stop_for_a_while();
		take_again(top);
		break;
	case SIGCONT:
		take_again(top);
		break;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		top->status = 128 + what;
		(void)weft_event_set(&top->quit);
		break;
	default:
		break; /* the loop is shutting down */
	}
}

/* --- keys --------------------------------------------------------------------- */

static void
on_escape(weft_timer *timer, void *arg)
{
	struct top *top = arg;

	(void)timer;
	keyboard_end(&top->keyboard, act_on_key, top);
}

static void
on_readable(weft_watch *watch, int what, void *arg)
{
	struct top *top = arg;
	char bytes[256];
	ssize_t n;

	(void)watch;
	if (what < 0)
		return;
	n = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* the terminal is gone */
		(void)weft_watch_stop(&top->key_watch);
		(void)weft_event_set(&top->quit);
		return;
	}
	(void)weft_timer_stop(&top->escape);
	keyboard_read(&top->keyboard, bytes, (size_t)n, act_on_key, top);
	if (keyboard_pending(&top->keyboard)
	    && weft_timer_start(top->loop, &top->escape, weft_after(ESCAPE_NS), 0, on_escape, top)
	               < 0)
		on_escape(&top->escape, top);
}

static int
watch(struct top *top)
{
	int rc = weft_watch_start(top->loop, &top->key_watch, STDIN_FILENO, WEFT_READABLE,
	                          on_readable, top);

	for (int i = 0; i < SIGNALS && rc == 0; i++)
		rc = weft_watch_start_signal(top->loop, &top->signal_watches[i], signals[i],
		                             top_run_on_signal, top);
	return rc;
}

static void
unwatch(struct top *top)
{
	(void)weft_timer_stop(&top->escape);
	(void)weft_watch_stop(&top->key_watch);
	for (int i = 0; i < SIGNALS; i++)
		(void)weft_watch_stop(&top->signal_watches[i]);
}

/* --- live mode ---------------------------------------------------------------- */

void
top_set_period(struct top *top, uint32_t period_ms)
{
	if (period_ms == top->period_ms)
		return;
	top->period_ms = period_ms;
	(void)weft_interrupt(top->feeder);
}

static int
top_run_start(struct top *top)
{
	const weft_go_opts feed = { .name = "feed",
		                    .scope = &top->scope,
		                    .stack_bytes = (size_t)256 << 10 };
	weft_go_opts refresh = feed;
	weft_threadlet refresher;

	refresh.name = "refresh";
	top->feeder = weft_go_with(&feed, link_feed, top);
	if (top->feeder < 0)
		return (int)top->feeder;
	refresher = weft_go_with(&refresh, link_refresh, top);
	return refresher < 0 ? (int)refresher : 0;
}

static int
run_live(struct top *top)
{
	int rows, columns, rc;

	terminal_size(STDOUT_FILENO, &rows, &columns);
	rc = screen_resize(&top->screen, rows, columns);
	if (rc == 0)
		rc = terminal_open();
	if (rc < 0)
		return rc;
	top->live = true;
	rc = weft_scope_open(&top->scope, 0, WEFT_NEVER);
	if (rc == 0) {
		rc = watch(top);
		if (rc == 0)
			rc = top_run_start(top);
		draw_show(top);
		if (rc == 0)
			rc = weft_event_wait(&top->quit, WEFT_NEVER);
		unwatch(top);
		top->live = false;
		weft_scope_cancel(&top->scope);
		(void)weft_scope_close(&top->scope);
	}
	terminal_close();
	return rc;
}

/* --- --once ------------------------------------------------------------------- */

static int
columns_wanted(void)
{
	const char *text = getenv("COLUMNS");
	char *end;
	long columns = text ? strtol(text, &end, 10) : 0;

	if (columns > 0 && !*end)
		return columns < SCREEN_COLUMNS_MAX ? (int)columns : SCREEN_COLUMNS_MAX;
	return ONCE_COLUMNS;
}

/* Takes two readings, because rates need two. */
static int
run_once(struct top *top)
{
	int rc, rows;

	rc = weft_scope_open(&top->scope, 0, weft_after(ONCE_NS));
	if (rc < 0)
		return rc;
	rc = link_listen(top);
	if (top->model.readings > 0)
		rc = link_read_threadlets(top);
	(void)weft_scope_close(&top->scope);
	if (rc < 0)
		return rc;
	top->screen.plain = true;
	rows = draw_text(top, columns_wanted());
	if (rows < 0)
		return rows;
	rc = screen_print(&top->screen, rows, STDOUT_FILENO);
	return rc < 0 ? weft_fail(rc, "%s", weft_strerror(rc)) : 0;
}

/* --- startup ------------------------------------------------------------------ */

static int
run_top(void *arg)
{
	struct top *top = arg;
	int rc = WEFT_ENOMEM;

	top->client = weft_http_client_new(NULL);
	if (top->client)
		rc = top->opts->once ? run_once(top) : run_live(top);
	if (rc < 0) {
		fprintf(stderr, "weft: %s: %s\n", top->opts->name, weft_detail());
		top->status = 1;
	}
	(void)weft_http_client_free(top->client);
	return 0;
}

static int
run_loop(struct top *top)
{
	const weft_go_opts go = { .name = "top",
		                  .loop = top->loop,
		                  .stack_bytes = (size_t)256 << 10 };
	weft_threadlet id = weft_go_with(&go, run_top, top);
	int rc = id < 0 ? (int)id : weft_loop_run(top->loop);

	if (rc >= 0)
		return top->status;
	fprintf(stderr, "weft: %s\n", weft_detail());
	return 1;
}

static void
free_top(struct top *top)
{
	for (int i = 0; i < TABS; i++)
		table_order_free(&top->view.tabs[i].order);
	screen_free(&top->screen);
	model_free(&top->model);
	(void)weft_loop_free(top->loop); /* whatever is left ends with the process */
	free(top);
}

int
top_run(const struct top_opts *opts)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct top *top = calloc(1, sizeof(*top));
	int status = 1;

	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (!top || !(top->loop = weft_loop_new(NULL))) {
		fprintf(stderr, "weft: %s\n", top ? weft_detail() : "out of memory");
		free(top);
		return 1;
	}
	top->opts = opts;
	top->period_ms = opts->period_ms;
	top->screen.utf8 = text_locale_is_utf8();
	top->screen.colours = terminal_has_colours();
	if (opts->token
	    && snprintf(top->bearer, sizeof(top->bearer), "Bearer %s", opts->token)
	               >= (int)sizeof(top->bearer))
		fprintf(stderr, "weft: the token is too long\n");
	else
		status = run_loop(top);
	free_top(top);
	return status;
}
