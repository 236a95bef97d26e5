/* node.c - one attempt at a node: its result is restored from the last run, or the node runs. */
#include <stdlib.h>
#include <string.h>
#include "run.h"

/* --- values ---------------------------------------------------------------- */

const weft_value *
attempt_value(struct attempt *attempt, const struct dagfile_ref *ref)
{
	size_t index = 0;

	for (const struct dagfile_ref *r = attempt->node->refs; r != ref; r = r->next)
		index += !(r->is_input && r->use == DAGFILE_STDIN);
	return weft_dag_step_in(attempt->step, index);
}

static const weft_value *
value_of(struct attempt *attempt, const struct dagfile_piece *piece)
{
	if (piece->kind == DAGFILE_ITEM)
		return weft_dag_step_in(attempt->step, 0);
	for (const struct dagfile_ref *r = attempt->node->refs; r; r = r->next)
		if (r->use == DAGFILE_NEEDS && r->index == piece->index)
			return attempt_value(attempt, r);
	return NULL;
}

static int
add_piece(struct attempt *attempt, const struct dagfile_piece *piece, struct bytes *out)
{
	const char *text = piece->text;
	char *made = NULL;
	int rc;

	if (piece->kind == DAGFILE_INPUT)
		text = attempt->run->values[piece->index];
	else if (piece->kind != DAGFILE_TEXT)
		text = values_text(value_of(attempt, piece), &made);
	rc = text ? bytes_add_text(out, text) : WEFT_ENOMEM;
	free(made);
	return rc;
}

int
attempt_word(struct attempt *attempt, const struct dagfile_word *word, struct bytes *out)
{
	int rc = bytes_add(out, "", 0);

	for (const struct dagfile_piece *p = word->pieces; p && rc == 0; p = p->next)
		rc = add_piece(attempt, p, out);
	return rc;
}

/* --- the output ------------------------------------------------------------ */

/* Removes newlines at the end, as $(...) of the shell does. */
static void
cut_end(struct bytes *text)
{
	while (text->size > 0 && text->data[text->size - 1] == '\n')
		text->data[--text->size] = '\0';
}

int
attempt_output(struct attempt *attempt, struct bytes *text)
{
	int rc = bytes_add(text, "", 0);

	if (rc < 0 || attempt->node->output > DAGFILE_OUTPUT_LINES)
		return rc;
	if (memchr(text->data, '\0', text->size))
		return weft_fail(WEFT_EINVAL, "the output contains a zero byte and is not text");
	if (attempt->node->output == DAGFILE_OUTPUT_TEXT)
		cut_end(text);
	attempt->out = attempt->node->output == DAGFILE_OUTPUT_TEXT ? weft_value_text(text->data)
	                                                            : values_lines(text->data);
	if (attempt->out.type == &weft_type_error)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	return 0;
}

/* --- the key of the saved result ------------------------------------------- */

static void
add_value(struct hash *hash, const weft_value *value)
{
	const weft_list *list;

	if (!value || value->type == &weft_type_text) {
		hash_add_text(hash, value ? value->as.ptr : NULL);
		return;
	}
	if (value->type != &weft_type_list) {
		hash_add_text(hash, NULL);
		return;
	}
	list = value->as.ptr;
	hash_add_number(hash, list->count);
	for (size_t i = 0; i < list->count; i++)
		hash_add_text(hash, list->items[i].type == &weft_type_text ? list->items[i].as.ptr
		                                                           : NULL);
}

static void
make_key(struct attempt *attempt, unsigned char *out)
{
	struct hash hash;

	hash_begin(&hash);
	hash_add(&hash, attempt->self->key, HASH_BYTES);
	for (struct dagfile_ref *r = attempt->node->refs; r; r = r->next)
		if (r->use != DAGFILE_AFTER && !(r->is_input && r->use == DAGFILE_STDIN))
			add_value(&hash, attempt_value(attempt, r));
	hash_end(&hash, out);
}

/* --- an attempt ------------------------------------------------------------ */

/* The label is the node's name; for an item also the item. */
static void
make_label(struct attempt *attempt)
{
	const weft_value *item = weft_dag_step_in(attempt->step, 0);
	char *to = attempt->label.text;
	size_t room = sizeof(attempt->label.text);

	if (!attempt->node->each || item->type != &weft_type_text)
		(void)snprintf(to, room, "%s", attempt->node->name);
	else
		(void)snprintf(to, room, "%.48s[%.40s]", attempt->node->name,
		               (const char *)item->as.ptr);
	for (; *to; to++) /* the label is printed on a terminal */
		if ((unsigned char)*to < ' ' || *to == 0x7f)
			*to = '?';
}

/* Whether the run was canceled, rather than the command failing. */
static bool
was_canceled(struct attempt *attempt, int rc)
{
	return rc == WEFT_ECANCELED || attempt->run->signal != 0;
}

static const char *
what_follows(struct attempt *attempt)
{
	if (weft_dag_step_attempt(attempt->step) < attempt->node->retries)
		return "; it will be tried again";
	return attempt->node->optional ? "; the run continues without it" : "";
}

static void
report_failure(struct attempt *attempt, double took)
{
	const char *then = what_follows(attempt);

	attempt->run->failures += *then == '\0';
	show_note(&attempt->run->show, "%s: failed, %.2f s: %s%s", attempt->label.text, took,
	          weft_detail(), then);
}

static void
report_end(struct attempt *attempt, int rc)
{
	struct show *show = &attempt->run->show;
	const char *name = attempt->label.text;
	double took = (double)(weft_now() - attempt->label.begin_ns) / 1e9;

	if (rc >= 0)
		show_line(show, "%s: done, %.2f s", name, took);
	else if (was_canceled(attempt, rc))
		show_line(show, "%s: ended early", name);
	else
		report_failure(attempt, took);
}

/* Runs the node under its timeout, which does not include the wait for a job. */
static int
work_in_time(struct attempt *attempt)
{
	uint64_t timeout_ns = attempt->node->timeout_ns;
	weft_scope scope;
	int rc = weft_scope_open(&scope, 0, timeout_ns ? weft_after(timeout_ns) : WEFT_NEVER);

	if (rc < 0)
		return rc;
	rc = attempt->node->lines ? shell_run(attempt) : redis_run(attempt);
	if (rc == WEFT_ETIMEDOUT)
		(void)weft_fail(rc, "timed out");
	(void)weft_scope_close(&scope); /* the scope has no threadlets */
	return rc;
}

/* A failed attempt counts its failure before it releases its job.  So the waiter that gets the
 * job sees the failure and does not start, even if the run has not canceled it yet. */
static int
node_enter(struct attempt *attempt)
{
	struct dagrun *run = attempt->run;
	int rc = jobs_enter(&run->jobs, attempt->node->priority);

	if (rc < 0 || run->failures == 0 || run->opts.keep_going)
		return rc;
	jobs_leave(&run->jobs);
	return WEFT_ECANCELED;
}

static int
work(struct attempt *attempt)
{
	struct dagrun *run = attempt->run;
	bool is_job = attempt->node->lines != NULL;
	int rc = is_job ? node_enter(attempt) : 0;

	if (rc < 0)
		return rc;
	show_start(&run->show, &attempt->label);
	rc = work_in_time(attempt);
	report_end(attempt, rc);
	show_stop(&run->show, &attempt->label);
	if (is_job)
		jobs_leave(&run->jobs);
	return rc;
}

static int
put_out(struct attempt *attempt)
{
	if (attempt->out.type)
		return weft_dag_step_out(attempt->step, attempt->out);
	return 0;
}

int
node_run(weft_dag_step *step, void *arg)
{
	struct dagnode *self = arg;
	struct attempt attempt = {
		.run = self->run, .self = self, .node = self->node, .step = step
	};
	unsigned char key[HASH_BYTES];
	int rc;

	if (!self->node->lines && !self->node->words)
		return 0; /* only groups dependencies */
	make_label(&attempt);
	make_key(&attempt, key);
	if (state_take(&self->run->state, key, &attempt.out)) {
		self->run->show.taken++;
		show_line(&self->run->show, "%s: done by the last run", attempt.label.text);
		return put_out(&attempt);
	}
	rc = work(&attempt);
	if (rc < 0) {
		weft_value_drop(&attempt.out);
		return rc;
	}
	state_put(&self->run->state, key, &attempt.out);
	return put_out(&attempt);
}

/* --- conditions ------------------------------------------------------------ */

static bool
is_true(const char *text)
{
	return *text && strcmp(text, "0") != 0 && strcmp(text, "no") != 0
	       && strcmp(text, "false") != 0;
}

/* If out of memory, the node runs, and fails for the same reason. */
bool
node_when(weft_dag_step *step, void *arg)
{
	struct dagnode *self = arg;
	struct attempt attempt = {
		.run = self->run, .self = self, .node = self->node, .step = step
	};
	struct bytes a = { 0 }, b = { 0 };
	bool yes = true;

	if (attempt_word(&attempt, &self->node->when[0], &a) == 0
	    && attempt_word(&attempt, &self->node->when[1], &b) == 0)
		yes = self->node->test == DAGFILE_TRUE
		              ? is_true(a.data)
		              : (strcmp(a.data, b.data) == 0)
		                        == (self->node->test == DAGFILE_EQUAL);
	if (!yes)
		show_line(&self->run->show, "%s: skipped", self->node->name);
	bytes_free(&a);
	bytes_free(&b);
	return yes;
}
