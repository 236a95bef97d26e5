/* graph.c - builds a weft_dag from a DAG file, and a key for each node.
 *
 * The key of a node is a hash of its definition, of the inputs of the file, and of the keys of
 * all nodes it depends on.  If one of those changes, the key changes too.
 */
#include <stdlib.h>
#include <string.h>
#include "run.h"

/* The limit of nodes that specify none.  Its name is not valid in a file, so no file can declare
 * it.  It bounds the number of threadlets for a graph of any size. */
#define WINDOW "the window"

/* --- keys ------------------------------------------------------------------- */

static void
add_words(struct hash *hash, const struct dagfile_word *word)
{
	for (; word; word = word->next) {
		hash_add_text(hash, word->name);
		for (struct dagfile_piece *p = word->pieces; p; p = p->next) {
			hash_add_number(hash, (uint64_t)p->kind + 1);
			hash_add_text(hash, p->text);
		}
		hash_add_number(hash, 0);
	}
	hash_add_number(hash, UINT64_MAX);
}

static void
add_definition(struct hash *hash, const struct dagrun *run, const struct dagnode *self)
{
	const struct dagfile_node *node = self->node;

	hash_add_text(hash, "weft dag 1");
	hash_add_text(hash, node->name);
	hash_add_text(hash, self->script);
	add_words(hash, node->words);
	add_words(hash, node->envs);
	add_words(hash, node->dir);
	hash_add_number(hash, node->output);
	hash_add_number(hash, node->each);
	if (node->words)
		hash_add_text(hash, run->opts.server ? run->opts.server : run->file->server);
	for (uint32_t i = 0; i < run->file->input_count; i++) {
		hash_add_text(hash, run->file->inputs[i].name);
		hash_add_text(hash, run->values[i]);
	}
}

static void
make_key(struct dagrun *run, struct dagnode *self)
{
	struct hash hash;

	hash_begin(&hash);
	add_definition(&hash, run, self);
	for (struct dagfile_ref *r = self->node->refs; r; r = r->next) {
		hash_add_number(&hash, r->use);
		hash_add_text(&hash, r->name);
		if (!r->is_input)
			hash_add(&hash, run->nodes[r->index].key, HASH_BYTES);
	}
	hash_end(&hash, self->key);
}

/* --- nodes ------------------------------------------------------------------ */

/* The script starts with a handler for SIGTERM, which the whole process group receives: the
 * shell waits for its children, then kills what is left of the group.  The handler is on the
 * first line of the script, so line numbers do not change. */
static int
make_script(struct dagnode *self)
{
	struct bytes text = { 0 };

	if (!self->node->lines)
		return 0;
	(void)bytes_add_text(&text, "trap 'wait; kill -KILL 0' TERM; ");
	for (struct dagfile_line *l = self->node->lines; l; l = l->next) {
		(void)bytes_add_text(&text, l->text);
		(void)bytes_add_text(&text, "\n");
	}
	self->script = text.data;
	return text.rc;
}

static const weft_type *
type_of(const struct dagfile_node *node)
{
	if (node->output == DAGFILE_OUTPUT_TEXT)
		return &weft_type_text;
	return node->output == DAGFILE_OUTPUT_LINES ? &weft_type_list : NULL;
}

static weft_value
fallback_of(const struct dagfile_node *node)
{
	const char *text = node->fallback ? node->fallback : "";

	if (!node->optional || !type_of(node))
		return (weft_value){ 0 };
	return node->output == DAGFILE_OUTPUT_LINES ? values_lines(text) : weft_value_text(text);
}

static int
add_node(struct dagrun *run, struct dagnode *self, const char **names)
{
	const struct dagfile_node *node = self->node;
	weft_dag_node set = {
		.name = node->name,
		.fn = node_run,
		.arg = self,
		.inputs = names,
		.type = type_of(node),
		.place = WEFT_DAG_LOOP,
		.condition = node->test == DAGFILE_ALWAYS ? NULL : node_when,
		.map = node->each,
		.optional = node->optional,
		.fallback = fallback_of(node),
		.priority = node->priority,
		.retries = node->retries,
		.backoff_ns = node->backoff_ns,
		.limit = node->limit ? node->limit : WINDOW,
	};
	size_t count = 0;

	for (struct dagfile_ref *r = node->refs; r; r = r->next)
		if (!(r->is_input && r->use == DAGFILE_STDIN))
			names[count++] = r->name;
	names[count] = NULL;
	return weft_dag_add(run->dag, &set);
}

static size_t
longest_list(const struct dagfile *file)
{
	size_t longest = 0, count;

	for (uint32_t i = 0; i < file->node_count; i++) {
		count = 0;
		for (struct dagfile_ref *r = file->nodes[i].refs; r; r = r->next)
			count++;
		longest = count > longest ? count : longest;
	}
	return longest;
}

static int
add_nodes(struct dagrun *run)
{
	struct dagfile *file = run->file;
	const char **names = calloc(longest_list(file) + 1, sizeof(*names));
	int rc = names ? 0 : weft_fail(WEFT_ENOMEM, "out of memory");

	for (uint32_t i = 0; i < file->node_count && rc >= 0; i++) {
		struct dagnode *self = &run->nodes[i];

		*self = (struct dagnode){ .run = run, .node = &file->nodes[i] };
		rc = make_script(self);
		if (rc == 0)
			rc = add_node(run, self, names);
	}
	free(names);
	return rc < 0 ? rc : 0;
}

/* --- the whole graph -------------------------------------------------------- */

static int
add_rest(struct dagrun *run)
{
	const struct dagfile *file = run->file;
	int rc = weft_dag_set_limit(run->dag, WINDOW, WINDOW_MAX);

	for (struct dagfile_limit *l = file->limits; l && rc >= 0; l = l->next)
		rc = weft_dag_set_limit(run->dag, l->name, l->max);
	for (uint32_t i = 0; i < file->input_count && rc >= 0; i++)
		if (file->inputs[i].is_list)
			rc = weft_dag_add_input(run->dag, file->inputs[i].name, &weft_type_list);
	return rc < 0 ? rc : 0;
}

int
graph_make(struct dagrun *run)
{
	struct dagfile *file = run->file;
	int rc;

	run->dag = weft_dag_new(file->name ? file->name : "dag");
	run->nodes = calloc(file->node_count, sizeof(*run->nodes));
	if (!run->dag || !run->nodes)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	rc = add_rest(run);
	if (rc == 0)
		rc = add_nodes(run);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < file->node_count; i++)
		make_key(run, &run->nodes[file->order[i]]);
	return weft_dag_check(run->dag);
}

void
graph_free(struct dagrun *run)
{
	(void)weft_dag_free(run->dag); /* its run is already freed */
	for (uint32_t i = 0; run->nodes && i < run->file->node_count; i++)
		free(run->nodes[i].script);
	free(run->nodes);
	run->dag = NULL;
	run->nodes = NULL;
}
