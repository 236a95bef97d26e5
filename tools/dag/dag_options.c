/* dag_options.c - the options of a node in a DAG file. */
#include <string.h>
#include "file.h"

enum {
	ONCE = 1 << 0, /* allowed at most once per node */
};

struct option {
	const char *word;
	bool (*read)(struct dagfile_lexer *lexer, struct dagfile_node *node);
	int flags;
};

void
dagfile_add_ref(struct dagfile *file, struct dagfile_node *node, const struct dagfile_ref *ref)
{
	struct dagfile_ref *copy;

	if (file->ref_count == DAGFILE_REFS_MAX)
		dagfile_fail(file, ref->at, "the nodes have more than %u dependencies in all",
		             DAGFILE_REFS_MAX);
	if (file->ref_count++ >= DAGFILE_REFS_MAX)
		return;
	copy = dagfile_alloc(file, sizeof(*copy));
	if (!copy)
		return;
	*copy = *ref;
	*(node->last_ref ? &node->last_ref->next : &node->refs) = copy;
	node->last_ref = copy;
}

/* --- lists ---------------------------------------------------------------- */

static bool
read_refs(struct dagfile_lexer *lexer, struct dagfile_node *node, enum dagfile_use use)
{
	do {
		struct dagfile_ref ref = { .use = use };

		if (!dagfile_read_name(lexer, "the name of a node", &ref.at, &ref.name))
			return false;
		dagfile_add_ref(lexer->file, node, &ref);
	} while (!dagfile_at_end(lexer));
	return true;
}

static bool
read_needs(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	return read_refs(lexer, node, DAGFILE_NEEDS);
}

static bool
read_after(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	return read_refs(lexer, node, DAGFILE_AFTER);
}

static bool
read_stdin(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	struct dagfile_ref ref = { .use = DAGFILE_STDIN };

	if (!dagfile_read_name(lexer, "the name of a node or input", &ref.at, &ref.name))
		return false;
	dagfile_add_ref(lexer->file, node, &ref);
	return true;
}

static bool
read_redis(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	struct dagfile_word **link = &node->words;

	node->works = true;
	do {
		struct dagfile_word *word = dagfile_alloc(lexer->file, sizeof(*word));

		if (!word || !dagfile_read_word(lexer, "a command", word))
			return false;
		*link = word;
		link = &word->next;
	} while (!dagfile_at_end(lexer));
	return true;
}

static bool
read_run(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	struct dagfile_line *line;
	const char *end = lexer->end;

	node->works = true;
	/* '#' is not a comment here: the shell handles it. */
	while (lexer->at < end && (*lexer->at == ' ' || *lexer->at == '\t'))
		lexer->at++;
	if (lexer->at == end) {
		dagfile_fail(lexer->file, dagfile_where(lexer), "a command is missing");
		return false;
	}
	node->script_bytes += (size_t)(end - lexer->at) + 1;
	if (node->script_bytes > DAGFILE_SCRIPT_MAX) {
		dagfile_fail(lexer->file, dagfile_where(lexer),
		             "the script is longer than %zu bytes: put it in a file",
		             DAGFILE_SCRIPT_MAX);
		return false;
	}
	line = dagfile_alloc(lexer->file, sizeof(*line));
	if (!line)
		return false;
	*line = (struct dagfile_line){
		.at = dagfile_where(lexer),
		.text = dagfile_copy(lexer->file, lexer->at, (size_t)(end - lexer->at)),
	};
	*(node->last_line ? &node->last_line->next : &node->lines) = line;
	node->last_line = line;
	lexer->at = end;
	return line->text != NULL;
}

/* NAME=WORD. */
static bool
read_env(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	struct dagfile_word *word = dagfile_alloc(lexer->file, sizeof(*word));
	struct dagfile_at at;
	const char *begin, *name;

	if (!word)
		return false;
	(void)dagfile_at_end(lexer);
	at = dagfile_where(lexer);
	begin = lexer->at;
	while (lexer->at < lexer->end && *lexer->at != '=' && *lexer->at != ' ')
		lexer->at++;
	name = dagfile_copy(lexer->file, begin, (size_t)(lexer->at - begin));
	if (!name)
		return false;
	if (lexer->at == lexer->end || *lexer->at != '=' || !dagfile_is_name(name)) {
		dagfile_fail(lexer->file, at, "a variable is set by: env NAME=VALUE");
		return false;
	}
	lexer->at++;
	*word = (struct dagfile_word){ .at = dagfile_where(lexer) };
	if (lexer->at < lexer->end && *lexer->at != ' ' && *lexer->at != '\t'
	    && !dagfile_read_word(lexer, "a value", word))
		return false;
	word->name = name;
	*(node->last_env ? &node->last_env->next : &node->envs) = word;
	node->last_env = word;
	return true;
}

/* --- options with one value ----------------------------------------------- */

static bool
read_output(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	static const char *const kinds[] = { "text", "lines", "show", "none" };
	const char *kind;

	if (!dagfile_read_plain(lexer, "text, lines, show or none", &node->output_at, &kind))
		return false;
	for (int i = 0; i < 4; i++)
		if (strcmp(kind, kinds[i]) == 0) {
			node->output = (enum dagfile_output)(DAGFILE_OUTPUT_TEXT + i);
			return true;
		}
	dagfile_fail(lexer->file, node->output_at, "the output must be text, lines, show or none");
	return false;
}

static bool
read_timeout(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	return dagfile_read_time(lexer, "the timeout", &node->timeout_ns);
}

static bool
read_backoff(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	return dagfile_read_time(lexer, "the backoff", &node->backoff_ns);
}

static bool
read_retries(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	int64_t number;

	if (!dagfile_read_number(lexer, "the count of retries", 0, 1000, &number))
		return false;
	node->retries = (uint32_t)number;
	return true;
}

static bool
read_priority(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	int64_t number;

	if (!dagfile_read_number(lexer, "the priority", -1000, 1000, &number))
		return false;
	node->priority = (int)number;
	return true;
}

static bool
read_limit(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	return dagfile_read_name(lexer, "the name of the limit", &node->limit_at, &node->limit);
}

/* The value must be quoted, so that it is not mistaken for another option. */
static bool
read_optional(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	struct dagfile_at at;

	node->optional = true;
	if (dagfile_at_end(lexer) || *lexer->at != '"')
		return true;
	return dagfile_read_plain(lexer, "the value", &at, &node->fallback);
}

static bool
read_when(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	if (!dagfile_read_word(lexer, "a condition", &node->when[0]))
		return false;
	node->test = DAGFILE_TRUE;
	if (dagfile_take_mark(lexer, "="))
		node->test = DAGFILE_EQUAL;
	else if (dagfile_take_mark(lexer, "!="))
		node->test = DAGFILE_OTHER;
	else
		return true;
	return dagfile_read_word(lexer, "what it is compared with", &node->when[1]);
}

static bool
read_dir(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	node->dir = dagfile_alloc(lexer->file, sizeof(*node->dir));
	return node->dir && dagfile_read_word(lexer, "a folder", node->dir);
}

/* --- the table of options ------------------------------------------------- */

static const struct option options[] = {
	{ "run", read_run, 0 },
	{ "redis", read_redis, ONCE },
	{ "needs", read_needs, 0 },
	{ "after", read_after, 0 },
	{ "stdin", read_stdin, ONCE },
	{ "output", read_output, ONCE },
	{ "timeout", read_timeout, ONCE },
	{ "retries", read_retries, ONCE },
	{ "backoff", read_backoff, ONCE },
	{ "limit", read_limit, ONCE },
	{ "optional", read_optional, ONCE },
	{ "priority", read_priority, ONCE },
	{ "when", read_when, ONCE },
	{ "dir", read_dir, ONCE },
	{ "env", read_env, 0 },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* Reads one option.  Returns false if the rest of the line is to be skipped. */
static bool
read_option(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	struct dagfile_at at = dagfile_where(lexer);

	for (size_t i = 0; i < OPTIONS; i++) {
		uint32_t bit = UINT32_C(1) << i;

		if (!dagfile_take_mark(lexer, options[i].word))
			continue;
		if ((options[i].flags & ONCE) && (node->options_seen & bit)) {
			dagfile_fail(lexer->file, at, "the node already has the option %s",
			             options[i].word);
			return false;
		}
		node->options_seen |= bit;
		return options[i].read(lexer, node);
	}
	dagfile_fail(lexer->file, at, "unknown option or statement");
	return false;
}

void
dagfile_read_options(struct dagfile_lexer *lexer, struct dagfile_node *node)
{
	while (!dagfile_at_end(lexer))
		if (!read_option(lexer, node))
			return;
}
