/* names.c - resolves the names in a DAG file, and reports what is inconsistent. */
#include <stdlib.h>
#include <string.h>
#include "file.h"

/* --- the table of names --------------------------------------------------- */

struct table {
	uint32_t *slots; /* 0: free; else an ID: inputs from 1, then nodes */
	uint32_t mask;
	struct dagfile *file;
	uint32_t *seen_by; /* for each node: the last node that needs it, plus 1 */
};

static uint32_t
hash_of(const char *name, size_t size)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	return hash ^ (hash >> 15);
}

static const char *
name_of(const struct table *table, uint32_t id, struct dagfile_at *at)
{
	const struct dagfile *file = table->file;

	if (id <= file->input_count) {
		*at = file->inputs[id - 1].at;
		return file->inputs[id - 1].name;
	}
	*at = file->nodes[id - 1 - file->input_count].at;
	return file->nodes[id - 1 - file->input_count].name;
}

/* The slot of a name, or the free slot where it belongs. */
static uint32_t *
dagfile_names_find(const struct table *table, const char *name, size_t size)
{
	uint32_t at = hash_of(name, size) & table->mask;
	struct dagfile_at place;

	while (table->slots[at]) {
		const char *there = name_of(table, table->slots[at], &place);

		if (strncmp(there, name, size) == 0 && there[size] == '\0')
			break;
		at = (at + 1) & table->mask;
	}
	return &table->slots[at];
}

static void
dagfile_names_add(struct table *table, uint32_t id)
{
	struct dagfile_at at, before;
	const char *name = name_of(table, id, &at);
	uint32_t *slot;

	if (!*name)
		return; /* invalid; the parser has reported it */
	if (strcmp(name, "item") == 0)
		dagfile_fail(table->file, at, "the name item is reserved for the items of each");
	slot = dagfile_names_find(table, name, strlen(name));
	if (*slot == 0) {
		*slot = id;
		return;
	}
	(void)name_of(table, *slot, &before);
	dagfile_fail(table->file, at, "%s is already defined in line %u", name, before.line);
}

static bool
make_table(struct table *table, struct dagfile *file)
{
	uint32_t count = file->input_count + file->node_count, room = 16;

	while (room < count * 2)
		room *= 2;
	*table = (struct table){
		.slots = calloc(room, sizeof(*table->slots)),
		.mask = room - 1,
		.file = file,
		.seen_by = calloc(count + 1, sizeof(*table->seen_by)),
	};
	if (!table->slots || !table->seen_by) {
		file->no_memory = true;
		return false;
	}
	for (uint32_t id = 1; id <= count; id++)
		dagfile_names_add(table, id);
	return true;
}

static void
free_table(struct table *table)
{
	free(table->slots);
	free(table->seen_by);
}

/* --- dependencies --------------------------------------------------------- */

static void
look_up_ref(struct table *table, struct dagfile_ref *ref)
{
	struct dagfile *file = table->file;
	uint32_t id = *dagfile_names_find(table, ref->name, strlen(ref->name));
	bool takes_input = ref->use == DAGFILE_EACH || ref->use == DAGFILE_STDIN;

	if (id == 0) {
		dagfile_fail(file, ref->at, "there is no node %s%s", ref->name,
		             takes_input ? ", and no input" : "");
		return;
	}
	ref->is_input = id <= file->input_count;
	ref->index = id - 1 - (ref->is_input ? 0 : file->input_count);
	if (ref->is_input && !takes_input) {
		dagfile_fail(file, ref->at,
		             "%s is an input; every node can use it without needs or after",
		             ref->name);
		return;
	}
	ref->known = true;
	if (ref->is_input && ref->use == DAGFILE_EACH)
		file->inputs[ref->index].is_list = true;
}

/* If a node has no output option and another node uses its value, its output is text. */
static void
want_value(struct table *table, struct dagfile_ref *ref)
{
	struct dagfile *file = table->file;
	struct dagfile_node *from = &file->nodes[ref->index];

	if (!ref->known || ref->is_input || ref->use == DAGFILE_AFTER)
		return;
	if (!from->works)
		dagfile_fail(file, ref->at, "%s has no value; write after %s to wait for it",
		             ref->name, ref->name);
	else if (from->output == DAGFILE_OUTPUT_UNSET)
		from->output = DAGFILE_OUTPUT_TEXT;
	else if (from->output > DAGFILE_OUTPUT_LINES)
		dagfile_fail(file, ref->at,
		             "the output of %s is not kept; write after %s to wait for it",
		             ref->name, ref->name);
}

static void
check_list(struct table *table, struct dagfile_ref *ref)
{
	struct dagfile *file = table->file;
	const struct dagfile_node *from = &file->nodes[ref->index];

	if (ref->use == DAGFILE_EACH && ref->known && !ref->is_input && !from->each
	    && from->output == DAGFILE_OUTPUT_TEXT)
		dagfile_fail(file, ref->at, "%s is not a list: give it the option output lines",
		             ref->name);
}

/* Marks the nodes that this node needs: it may use their values as variables. */
static void
mark_needs(const struct table *table, const struct dagfile_node *node)
{
	for (const struct dagfile_ref *r = node->refs; r; r = r->next)
		if (r->known && !r->is_input && r->use == DAGFILE_NEEDS)
			table->seen_by[r->index] = (uint32_t)(node - table->file->nodes) + 1;
}

static bool
has_value(const struct table *table, const struct dagfile_node *node, uint32_t index)
{
	return table->seen_by[index] == (uint32_t)(node - table->file->nodes) + 1;
}

/* --- variables ------------------------------------------------------------ */

struct resolver {
	const struct table *table;
	struct dagfile_node *node;
	bool has_item;
};

static void
look_up_piece(const struct resolver *resolver, struct dagfile_piece *piece)
{
	struct dagfile *file = resolver->table->file;
	uint32_t id = *dagfile_names_find(resolver->table, piece->text, strlen(piece->text));

	if (strcmp(piece->text, "item") == 0) {
		piece->kind = DAGFILE_ITEM;
		if (!resolver->has_item)
			dagfile_fail(
				file, piece->at, "there is no $item %s",
				resolver->node->each
					? "in a condition, which is evaluated once for all items"
					: "in a node without each");
		return;
	}
	piece->kind = id <= file->input_count ? DAGFILE_INPUT : DAGFILE_SOURCE;
	piece->index = id - 1 - (id <= file->input_count ? 0 : file->input_count);
	if (id == 0)
		dagfile_fail(file, piece->at, "there is no node %s, and no input", piece->text);
	else if (id > file->input_count
	         && !has_value(resolver->table, resolver->node, piece->index))
		dagfile_fail(file, piece->at,
		             "$%s is the value of a node that this one does not need: add needs %s",
		             piece->text, piece->text);
}

static void
look_up_word(const struct resolver *resolver, struct dagfile_word *word)
{
	for (struct dagfile_piece *p = word->pieces; p; p = p->next)
		if (p->kind == DAGFILE_VARIABLE)
			look_up_piece(resolver, p);
}

static void
look_up_words(const struct table *table, struct dagfile_node *node)
{
	struct resolver resolver = { .table = table, .node = node, .has_item = node->each };

	for (struct dagfile_word *w = node->words; w; w = w->next)
		look_up_word(&resolver, w);
	for (struct dagfile_word *w = node->envs; w; w = w->next)
		look_up_word(&resolver, w);
	if (node->dir)
		look_up_word(&resolver, node->dir);
	resolver.has_item = false;
	look_up_word(&resolver, &node->when[0]);
	look_up_word(&resolver, &node->when[1]);
}

/* --- scripts -------------------------------------------------------------- */

/* Reports a variable that names a node which is not among the node's needs: the script would see
 * an empty value. */
static void
check_variable(const struct table *table, const struct dagfile_node *node,
               const struct dagfile_line *line, const char *dollar)
{
	const char *name = dollar + 1 + (dollar[1] == '{');
	size_t size = dagfile_name_size(name);
	uint32_t id = *dagfile_names_find(table, name, size);
	struct dagfile_at at = line->at;

	if (size == 0 || id <= table->file->input_count
	    || has_value(table, node, id - 1 - table->file->input_count))
		return;
	at.column += (uint32_t)(dollar - line->text);
	dagfile_fail(table->file, at,
	             "$%.*s is the value of a node that this one does not need: add needs %.*s",
	             (int)size, name, (int)size, name);
}

/* Follows the shell's quoting rules as far as needed to find variables. */
static void
check_script(const struct table *table, const struct dagfile_node *node)
{
	char quote = '\0';

	for (const struct dagfile_line *l = node->lines; l; l = l->next)
		for (const char *at = l->text; *at; at++) {
			if (quote == '\'' && *at != '\'')
				continue;
			if (*at == '\\' && at[1])
				at++;
			else if (*at == quote)
				quote = '\0';
			else if (!quote && (*at == '\'' || *at == '"'))
				quote = *at;
			else if (*at == '$' && at[1] == '$')
				at++;
			else if (*at == '$')
				check_variable(table, node, l, at);
		}
}

/* --- nodes ---------------------------------------------------------------- */

static void
check_limit(struct dagfile *file, const struct dagfile_node *node)
{
	const struct dagfile_limit *limit = file->limits;

	if (!node->limit)
		return;
	while (limit && strcmp(limit->name, node->limit) != 0)
		limit = limit->next;
	if (!limit)
		dagfile_fail(file, node->limit_at,
		             "there is no limit %s: declare it as limit %s = NUMBER", node->limit,
		             node->limit);
}

static void
check_node(struct dagfile *file, struct dagfile_node *node)
{
	if (!*node->name)
		return;
	check_limit(file, node);
	if (node->lines && node->words)
		dagfile_fail(file, node->at, "%s has both run and redis", node->name);
	else if (!node->works && (!node->refs || node->each))
		dagfile_fail(file, node->at, "%s has nothing to do: run or redis is missing",
		             node->name);
	if (node->each && node->output == DAGFILE_OUTPUT_LINES)
		dagfile_fail(file, node->output_at,
		             "with each the output is already a list, one value for "
		             "each item: use output text");
	if (node->output == DAGFILE_OUTPUT_UNSET)
		node->output = node->works ? DAGFILE_OUTPUT_SHOW : DAGFILE_OUTPUT_NONE;
	if (node->fallback && node->output > DAGFILE_OUTPUT_LINES)
		dagfile_fail(file, node->at, "%s has a fallback value, but no node uses its value",
		             node->name);
}

static void
check_priorities(struct dagfile *file)
{
	int levels[DAGFILE_LEVELS];
	uint32_t count = 0, k;

	for (uint32_t i = 0; i < file->node_count; i++) {
		for (k = 0; k < count; k++)
			if (levels[k] == file->nodes[i].priority)
				break;
		if (k < count)
			continue;
		if (count == DAGFILE_LEVELS) {
			dagfile_fail(file, file->nodes[i].at, "more than %u different priorities",
			             DAGFILE_LEVELS);
			return;
		}
		levels[count++] = file->nodes[i].priority;
	}
}

/* --- the whole file ------------------------------------------------------- */

static void
each_ref(struct table *table, void (*fn)(struct table *table, struct dagfile_ref *ref))
{
	for (uint32_t i = 0; i < table->file->node_count; i++)
		for (struct dagfile_ref *r = table->file->nodes[i].refs; r; r = r->next)
			fn(table, r);
}

void
dagfile_resolve(struct dagfile *file)
{
	struct table table;

	if (!make_table(&table, file)) {
		free_table(&table);
		return;
	}
	each_ref(&table, look_up_ref);
	each_ref(&table, want_value);
	each_ref(&table, check_list);
	for (uint32_t i = 0; i < file->node_count; i++) {
		mark_needs(&table, &file->nodes[i]);
		look_up_words(&table, &file->nodes[i]);
		check_script(&table, &file->nodes[i]);
		check_node(file, &file->nodes[i]);
	}
	check_priorities(file);
	dagfile_sort(file);
	free_table(&table);
}
