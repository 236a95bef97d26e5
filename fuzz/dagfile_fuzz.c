/* dagfile_fuzz.c - DAG files: a parsed file is consistent, or its errors are reported.
 *
 * The input is a file.  The position of each reported error must be inside the file.  In a file
 * without errors, each node comes after all nodes that it waits for, and uses only values that
 * exist.
 */
#include <string.h>
#include "dag/file.h"
#include "fuzz.h"

/* The length of line `number`, without its newline; -1: there is no such line. */
static long
line_size(const char *bytes, size_t size, uint32_t number)
{
	const char *end = bytes + size, *stop;

	for (; bytes < end; number--, bytes = stop + 1) {
		stop = memchr(bytes, '\n', (size_t)(end - bytes));
		stop = stop ? stop : end;
		if (number == 1)
			return stop - bytes;
	}
	return number == 1 ? 0 : -1; /* an empty file, or its end */
}

static void
check_errors(const struct dagfile *file, const char *bytes, size_t size)
{
	uint32_t kept = 0;
	struct dagfile_at last = { 0 };

	for (struct dagfile_error *e = file->errors; e; e = e->next, kept++) {
		long room = line_size(bytes, size, e->at.line);

		ORACLE(room >= 0 && e->at.column >= 1 && (long)e->at.column <= room + 1,
		       "%u:%u is not in the file: %s", e->at.line, e->at.column, e->text);
		ORACLE(e->at.line > last.line
		               || (e->at.line == last.line && e->at.column >= last.column),
		       "%u:%u is told too late", e->at.line, e->at.column);
		ORACLE(*e->text, "a mistake without a text");
		last = e->at;
	}
	ORACLE(kept
	               == (file->error_count < DAGFILE_ERRORS_MAX ? file->error_count
	                                                          : DAGFILE_ERRORS_MAX),
	       "%u of %u mistakes", kept, file->error_count);
}

static void
check_word(const struct dagfile *file, const struct dagfile_node *node,
           const struct dagfile_word *word)
{
	bool found;

	for (struct dagfile_piece *p = word->pieces; p; p = p->next) {
		ORACLE(p->kind != DAGFILE_VARIABLE, "%s is not known", p->text);
		ORACLE(p->kind != DAGFILE_ITEM || node->each, "an item of %s", node->name);
		ORACLE(p->kind != DAGFILE_INPUT || p->index < file->input_count, "input %u",
		       p->index);
		if (p->kind != DAGFILE_SOURCE)
			continue;
		found = false;
		for (struct dagfile_ref *r = node->refs; r; r = r->next)
			found |= r->use == DAGFILE_NEEDS && r->index == p->index;
		ORACLE(found, "%s uses %s, and does not need it", node->name, p->text);
	}
}

static void
check_words(const struct dagfile *file, const struct dagfile_node *node)
{
	for (struct dagfile_word *w = node->words; w; w = w->next)
		check_word(file, node, w);
	for (struct dagfile_word *w = node->envs; w; w = w->next) {
		ORACLE(dagfile_is_name(w->name), "variable %s", w->name);
		check_word(file, node, w);
	}
	if (node->dir)
		check_word(file, node, node->dir);
	check_word(file, node, &node->when[0]);
	check_word(file, node, &node->when[1]);
}

/* Every value that the node uses must exist. */
static void
check_refs(const struct dagfile *file, const struct dagfile_node *node, const bool *done)
{
	for (struct dagfile_ref *r = node->refs; r; r = r->next) {
		const struct dagfile_node *from = &file->nodes[r->index];

		ORACLE(r->known, "%s is not known", r->name);
		if (r->is_input)
			continue;
		ORACLE(done[r->index], "%s comes before %s", node->name, r->name);
		ORACLE(r->use == DAGFILE_AFTER || from->output <= DAGFILE_OUTPUT_LINES,
		       "%s keeps no value for %s", r->name, node->name);
		ORACLE(r->use != DAGFILE_EACH || from->each || from->output == DAGFILE_OUTPUT_LINES,
		       "%s gives no list for %s", r->name, node->name);
	}
}

static void
check_nodes(const struct dagfile *file)
{
	bool *done = calloc(file->node_count, sizeof(*done));

	if (!done)
		abort();
	ORACLE(file->node_count > 0, "no nodes");
	for (uint32_t i = 0; i < file->node_count; i++) {
		uint32_t index = file->order[i];
		const struct dagfile_node *node = &file->nodes[index];

		ORACLE(index < file->node_count && !done[index], "node %u is there twice", index);
		ORACLE(dagfile_is_name(node->name), "node %s", node->name);
		ORACLE(node->output != DAGFILE_OUTPUT_UNSET, "%s has no output", node->name);
		ORACLE(!(node->lines && node->words), "%s has both", node->name);
		check_refs(file, node, done);
		check_words(file, node);
		done[index] = true;
	}
	free(done);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct dagfile *file = dagfile_parse(size ? bytes : "", size);

	if (!file)
		abort();
	check_errors(file, bytes, size);
	if (file->error_count == 0)
		check_nodes(file);
	dagfile_free(file);
	return 0;
}
