/* shell_node.c - a node that runs a shell script.
 *
 *   1. Values are passed as environment variables and are never part of the script's text.  So
 *      there is nothing to quote, and no part of a value is ever executed.
 *   2. The script has its own process group.  To end it, the whole group gets SIGTERM, and after
 *      the grace period, or at a second signal, SIGKILL.  The shell stays until then: it waits
 *      for its children, and kills what is left (graph.c).
 *   3. The script has ended when the shell has.  Background processes that it leaves behind are
 *      not waited for, and their output is no longer read.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "run.h"

#define LINE_MAX_BYTES 4096u /* longest incomplete line that is buffered */

extern char **environ;

/* --- variables -------------------------------------------------------------- */

struct variables {
	char **list; /* NULL-terminated */
	size_t count, room;
	int rc;
};

static void
set_variable(struct variables *to, const char *name, const char *value)
{
	size_t name_size = strlen(name), value_size = strlen(value), i;
	char *text = malloc(name_size + value_size + 2);

	if (!text || to->count + 2 > to->room) {
		free(text);
		to->rc = WEFT_ENOMEM;
		return;
	}
	memcpy(text, name, name_size);
	text[name_size] = '=';
	memcpy(text + name_size + 1, value, value_size + 1);
	for (i = 0; i < to->count; i++)
		if (strncmp(to->list[i], text, name_size + 1) == 0)
			break;
	if (i < to->count)
		free(to->list[i]);
	to->list[i] = text;
	to->count += i == to->count;
}

static void
set_from_value(struct variables *to, const char *name, const weft_value *value)
{
	char *made;
	const char *text = values_text(value, &made);

	if (text)
		set_variable(to, name, text);
	else
		to->rc = WEFT_ENOMEM;
	free(made);
}

static void
set_from_word(struct variables *to, struct attempt *attempt, const struct dagfile_word *word)
{
	struct bytes text = { 0 };
	int rc = attempt_word(attempt, word, &text);

	if (rc == 0)
		set_variable(to, word->name, text.data);
	else
		to->rc = rc;
	bytes_free(&text);
}

static size_t
count_variables(struct attempt *attempt)
{
	size_t count = attempt->run->file->input_count + 2;

	for (char **at = environ; *at; at++)
		count++;
	for (struct dagfile_ref *r = attempt->node->refs; r; r = r->next)
		count++;
	for (struct dagfile_word *w = attempt->node->envs; w; w = w->next)
		count++;
	return count;
}

/* In this order, later ones override: our environment, the inputs, the values the node needs,
 * the item, and its env options. */
static void
set_variables(struct variables *to, struct attempt *attempt)
{
	const struct dagfile *file = attempt->run->file;
	const struct dagfile_node *node = attempt->node;

	for (char **at = environ; *at && to->rc == 0; at++) {
		to->list[to->count] = strdup(*at);
		if (to->list[to->count])
			to->count++;
		else
			to->rc = WEFT_ENOMEM;
	}
	for (uint32_t i = 0; i < file->input_count; i++)
		set_variable(to, file->inputs[i].name, attempt->run->values[i]);
	for (struct dagfile_ref *r = node->refs; r; r = r->next)
		if (r->use == DAGFILE_NEEDS)
			set_from_value(to, r->name, attempt_value(attempt, r));
	if (node->each)
		set_from_value(to, "item", weft_dag_step_in(attempt->step, 0));
	for (struct dagfile_word *w = node->envs; w; w = w->next)
		set_from_word(to, attempt, w);
}

static void
free_variables(struct variables *of)
{
	for (size_t i = 0; i < of->count; i++)
		free(of->list[i]);
	free(of->list);
}

static int
make_variables(struct variables *to, struct attempt *attempt)
{
	*to = (struct variables){ .room = count_variables(attempt) };
	to->list = calloc(to->room, sizeof(*to->list));
	if (!to->list)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	set_variables(to, attempt);
	if (to->rc < 0)
		(void)weft_fail(to->rc, "out of memory");
	return to->rc;
}

/* --- its output ------------------------------------------------------------- */

/* The script's stdout or stderr. */
struct sink {
	struct attempt *attempt;
	int fd;
	FILE *to;          /* lines are printed there; NULL: the output is kept */
	struct bytes text; /* all of the output, or the incomplete line */
	char last[256];    /* start of the last line that was not empty */
	bool too_large;
};

static void
show_text_line(struct sink *sink, const char *line, size_t size)
{
	size_t shown = size < sizeof(sink->last) ? size : sizeof(sink->last) - 1;

	show_output(&sink->attempt->run->show, sink->to, sink->attempt->label.text,
	            (weft_span){ line, size });
	if (size == 0)
		return;
	memcpy(sink->last, line, shown);
	sink->last[shown] = '\0';
}

/* Prints complete lines, and an incomplete one that exceeds LINE_MAX_BYTES. */
static void
show_lines(struct sink *sink)
{
	char *at = sink->text.data, *end = at + sink->text.size, *stop;

	while ((stop = memchr(at, '\n', (size_t)(end - at)))) {
		show_text_line(sink, at, (size_t)(stop - at));
		at = stop + 1;
	}
	if ((size_t)(end - at) > LINE_MAX_BYTES) {
		show_text_line(sink, at, (size_t)(end - at));
		at = end;
	}
	sink->text.size = (size_t)(end - at);
	memmove(sink->text.data, at, sink->text.size);
}

static void
end_sink(struct sink *sink)
{
	if (sink->to && sink->text.size > 0)
		show_text_line(sink, sink->text.data, sink->text.size);
}

/* Reads what is available.  Returns 1, 0 at the end of file, WEFT_EAGAIN if nothing is
 * available, or an error. */
static int
read_some(struct sink *sink)
{
	char buf[4096];
	ssize_t n = read(sink->fd, buf, sizeof(buf));
	int rc;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (!sink->to && sink->text.size + (size_t)n > OUTPUT_MAX) {
		sink->too_large = true;
		return weft_fail(WEFT_EMSGSIZE, "the output is larger than %zu bytes", OUTPUT_MAX);
	}
	rc = bytes_add(&sink->text, buf, (size_t)n);
	if (rc == 0 && sink->to)
		show_lines(sink);
	return rc < 0 ? rc : 1;
}

/* Reads to the end of file; without `wait`, only what is available now. */
static int
shell_node_read_all(struct sink *sink, bool wait)
{
	int rc = 1;

	while (rc > 0) {
		rc = read_some(sink);
		if (rc == -EINTR || (rc == WEFT_EAGAIN && wait))
			rc = weft_wait_fd(sink->fd, WEFT_READABLE, WEFT_NEVER);
	}
	return rc == WEFT_EAGAIN && !wait ? 0 : rc;
}

static int
reader_main(void *arg)
{
	return shell_node_read_all(arg, true);
}

/* --- the child -------------------------------------------------------------- */

struct shell {
	struct shell *next, **link; /* list of the run's shells */
	struct attempt *attempt;
	weft_child *child;
	struct sink out, err;
	const char *input; /* written to its stdin; NULL: stdin is empty */
	char *input_made;
	int status;
};

/* It is not an error if the command does not read all of its input. */
static int
writer_main(void *arg)
{
	struct shell *shell = arg;
	weft_stream *stream = weft_child_stream(shell->child, 0);
	size_t size = strlen(shell->input);
	ssize_t rc;

	if (!stream)
		return WEFT_ENOMEM;
	rc = weft_stream_write(stream, shell->input, size, WEFT_NEVER);
	if (rc > 0 && shell->input[size - 1] != '\n') /* end the last line */
		(void)weft_stream_write(stream, "\n", 1, WEFT_NEVER);
	weft_stream_close(stream);
	return 0;
}

static int
find_input(struct shell *shell)
{
	struct attempt *attempt = shell->attempt;

	for (struct dagfile_ref *r = attempt->node->refs; r; r = r->next)
		if (r->use == DAGFILE_STDIN) {
			shell->input = r->is_input ? attempt->run->values[r->index]
			                           : values_text(attempt_value(attempt, r),
			                                         &shell->input_made);
			return shell->input ? 0 : weft_fail(WEFT_ENOMEM, "out of memory");
		}
	return 0;
}

/* `dir` is relative to the directory of the DAG file. */
static int
find_folder(struct attempt *attempt, struct bytes *out)
{
	struct bytes word = { 0 };
	int rc = 0;

	if (attempt->node->dir)
		rc = attempt_word(attempt, attempt->node->dir, &word);
	if (word.size == 0 || word.data[0] != '/')
		(void)bytes_add_text(out, attempt->run->folder);
	if (word.size > 0 && out->size > 0)
		(void)bytes_add_text(out, "/");
	(void)bytes_add(out, word.data, word.size);
	bytes_free(&word);
	return rc < 0 ? rc : out->rc;
}

static int
open_child(struct shell *shell, const struct bytes *folder, const struct variables *variables)
{
	struct attempt *attempt = shell->attempt;
	const char *const argv[] = { "/bin/sh", "-e", "-c", attempt->self->script, NULL };
	const weft_child_opts opts = {
		.env = (const char *const *)variables->list,
		.cwd = folder->data,
		.std = { shell->input ? WEFT_CHILD_PIPE : WEFT_CHILD_NULL,
		         attempt->node->output == DAGFILE_OUTPUT_NONE ? WEFT_CHILD_NULL
		                                                      : WEFT_CHILD_PIPE,
		         WEFT_CHILD_PIPE },
		.group = true,
	};
	int rc = weft_child_open(argv, &opts, &shell->child, WEFT_NEVER);

	if (rc == -E2BIG)
		return weft_fail(rc, "the variables are too large for a command: "
		                     "pass large values by stdin");
	if (rc == WEFT_ENOENT && access(folder->data, X_OK) < 0)
		return weft_fail(rc, "there is no directory %s", folder->data);
	return rc;
}

static int
start_child(struct shell *shell)
{
	struct variables variables;
	struct bytes folder = { 0 };
	int rc = make_variables(&variables, shell->attempt);

	if (rc == 0)
		rc = find_folder(shell->attempt, &folder);
	if (rc == 0)
		rc = open_child(shell, &folder, &variables);
	free_variables(&variables);
	bytes_free(&folder);
	return rc;
}

/* --- running it ------------------------------------------------------------- */

static int
start_helpers(struct shell *shell, weft_scope *scope)
{
	weft_threadlet id = 0;

	shell->out.fd = weft_child_fd(shell->child, 1);
	shell->err.fd = weft_child_fd(shell->child, 2);
	if (shell->out.fd >= 0)
		id = weft_scope_go(scope, reader_main, &shell->out);
	if (id >= 0)
		id = weft_scope_go(scope, reader_main, &shell->err);
	if (id >= 0 && shell->input)
		id = weft_scope_go(scope, writer_main, shell);
	return id < 0 ? (int)id : 0;
}

/* Waits until the shell has ended, and reads all output up to then.  If a reader fails, its
 * fail-fast scope ends the wait. */
static int
follow_child(struct shell *shell)
{
	weft_scope scope;
	int rc = weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER), ended;

	if (rc < 0)
		return rc;
	rc = start_helpers(shell, &scope);
	if (rc == 0)
		rc = weft_child_wait(shell->child, &shell->status, WEFT_NEVER);
	weft_scope_cancel(&scope);
	ended = weft_scope_close(&scope);
	if (ended < 0 && (rc == 0 || rc == WEFT_ECANCELED))
		rc = ended;
	if (rc == 0 && shell->out.fd >= 0)
		rc = shell_node_read_all(&shell->out, false);
	if (rc == 0)
		rc = shell_node_read_all(&shell->err, false);
	end_sink(&shell->out);
	end_sink(&shell->err);
	return rc;
}

/* Ends the script with SIGTERM, then SIGKILL.  The shielded scope allows waiting here even if
 * this threadlet is canceled. */
static void
end_child(struct shell *shell)
{
	weft_scope scope;

	(void)weft_child_kill(shell->child, SIGTERM);
	if (weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER) == 0) {
		(void)weft_child_wait(shell->child, NULL,
		                      weft_after(shell->attempt->run->opts.grace_ns));
		(void)weft_scope_close(&scope); /* the scope has no threadlets */
	}
	(void)weft_child_kill(shell->child, SIGKILL);
}

void
shell_kill_all(struct dagrun *run)
{
	for (struct shell *s = run->shells; s; s = s->next)
		(void)weft_child_kill(s->child, SIGKILL);
}

static int
run_child(struct shell *shell)
{
	struct dagrun *run = shell->attempt->run;
	int rc;

	shell->next = run->shells;
	shell->link = &run->shells;
	if (shell->next)
		shell->next->link = &shell->next;
	run->shells = shell;
	rc = follow_child(shell);
	if (rc < 0)
		end_child(shell);
	*shell->link = shell->next;
	if (shell->next)
		shell->next->link = shell->link;
	return rc;
}

/* Converts the exit status to an error with a text. */
static int
judge(const struct shell *shell)
{
	int status = shell->status;
	const char *last = shell->err.last;
	const char *colon = *last ? ": " : "";

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return weft_fail(WEFT_ESCRIPT, "killed by signal %d%s%s", WTERMSIG(status), colon,
		                 last);
	return weft_fail(WEFT_ESCRIPT, "exit status %d%s%s", WEXITSTATUS(status), colon, last);
}

int
shell_run(struct attempt *attempt)
{
	struct shell shell = { .attempt = attempt };
	int rc = find_input(&shell);

	shell.out = (struct sink){ .attempt = attempt, .fd = -1 };
	shell.err = (struct sink){ .attempt = attempt, .to = stderr };
	if (attempt->node->output == DAGFILE_OUTPUT_SHOW)
		shell.out.to = stdout;
	if (rc == 0)
		rc = start_child(&shell);
	if (rc == 0)
		rc = run_child(&shell);
	if (rc == 0)
		rc = judge(&shell);
	if (rc == 0 && !shell.out.to)
		rc = attempt_output(attempt, &shell.out.text);
	if (shell.out.too_large)
		rc = weft_fail(WEFT_EMSGSIZE, "the output is larger than %zu bytes", OUTPUT_MAX);
	weft_child_close(shell.child);
	bytes_free(&shell.out.text);
	bytes_free(&shell.err.text);
	free(shell.input_made);
	return rc;
}
