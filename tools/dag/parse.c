/* parse.c - parses a DAG file.
 *
 * A line with an error is reported and skipped, and parsing continues with the next one, so one
 * run reports most of the errors in a file.  Names are resolved after all lines are read
 * (names.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "file.h"

#define BLOCK_BYTES ((size_t)64 << 10)

/* --- memory --------------------------------------------------------------- */

struct dagfile_block {
	struct dagfile_block *next;
	size_t used, room;
	_Alignas(16) char bytes[];
};

void *
dagfile_alloc(struct dagfile *file, size_t size)
{
	struct dagfile_block *block = file->blocks;
	size_t room;
	void *memory;

	size = (size + 15) & ~(size_t)15;
	if (!block || block->room - block->used < size) {
		room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		block = malloc(sizeof(*block) + room);
		if (!block) {
			file->no_memory = true;
			return NULL;
		}
		block->next = file->blocks;
		block->used = 0;
		block->room = room;
		file->blocks = block;
	}
	memory = block->bytes + block->used;
	block->used += size;
	return memory;
}

char *
dagfile_copy(struct dagfile *file, const char *text, size_t size)
{
	char *copy = dagfile_alloc(file, size + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	return copy;
}

void
dagfile_free(struct dagfile *file)
{
	struct dagfile_block *next;

	if (!file)
		return;
	for (struct dagfile_block *b = file->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(file->inputs);
	free(file->nodes);
	free(file);
}

/* Makes room for one more element after `count`; capacities are powers of 2.  Returns NULL if
 * out of memory. */
static void *
dagfile_parse_grow(struct dagfile *file, void *array, uint32_t count, size_t size)
{
	uint32_t room = count ? count * 2 : 8;
	void *more = array;

	if (count == 0 || (count >= 8 && (count & (count - 1)) == 0))
		more = realloc(array, room * size);
	if (!more)
		file->no_memory = true;
	return more;
}

/* --- errors --------------------------------------------------------------- */

static bool
is_before(struct dagfile_at a, struct dagfile_at b)
{
	return a.line != b.line ? a.line < b.line : a.column < b.column;
}

void
dagfile_fail(struct dagfile *file, struct dagfile_at at, const char *format, ...)
{
	struct dagfile_error *error, **link = &file->errors;
	char text[1024];
	va_list list;

	if (file->error_count++ >= DAGFILE_ERRORS_MAX)
		return;
	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	error = dagfile_alloc(file, sizeof(*error));
	if (!error)
		return;
	while (*link && !is_before(at, (*link)->at))
		link = &(*link)->next;
	*error = (struct dagfile_error){
		.next = *link,
		.at = at,
		.text = dagfile_copy(file, text, strlen(text)),
	};
	*link = error;
}

/* --- declarations --------------------------------------------------------- */

struct parser {
	struct dagfile *file;
	struct dagfile_lexer lexer;
	bool in_node;
	struct dagfile_at dag_at, server_at;
};

static void
require_once(struct parser *parser, struct dagfile_at at, struct dagfile_at before,
             const char *what)
{
	if (before.line)
		dagfile_fail(parser->file, at, "%s was already given in line %u", what,
		             before.line);
}

static void
read_dag(struct parser *parser)
{
	struct dagfile_at at;
	const char *name;

	if (!dagfile_read_name(&parser->lexer, "the name of the dag", &at, &name))
		return;
	require_once(parser, at, parser->dag_at, "its name");
	parser->dag_at = at;
	parser->file->name = name;
}

static void
read_server(struct parser *parser)
{
	struct dagfile_at at;
	const char *address;

	if (!dagfile_read_plain(&parser->lexer, "the address of the server", &at, &address))
		return;
	require_once(parser, at, parser->server_at, "the server");
	parser->server_at = at;
	parser->file->server = address;
}

static void
read_input(struct parser *parser)
{
	struct dagfile *file = parser->file;
	struct dagfile_input input = { 0 }, *inputs;
	struct dagfile_at at;

	if (!dagfile_read_name(&parser->lexer, "the name of the input", &input.at, &input.name))
		return;
	if (dagfile_take_mark(&parser->lexer, "=")) {
		if (dagfile_at_end(&parser->lexer))
			input.value = "";
		else if (!dagfile_read_plain(&parser->lexer, "the value", &at, &input.value))
			return;
	}
	if (file->input_count == DAGFILE_INPUTS_MAX) {
		dagfile_fail(file, input.at, "more than %u inputs", DAGFILE_INPUTS_MAX);
		return;
	}
	inputs = dagfile_parse_grow(file, file->inputs, file->input_count, sizeof(*inputs));
	if (!inputs)
		return;
	file->inputs = inputs;
	inputs[file->input_count++] = input;
}

static void
read_limit(struct parser *parser)
{
	struct dagfile *file = parser->file;
	struct dagfile_limit limit = { 0 }, *copy, **link = &file->limits;
	uint32_t count = 0;
	int64_t max;

	if (!dagfile_read_name(&parser->lexer, "the name of the limit", &limit.at, &limit.name))
		return;
	if (!dagfile_take_mark(&parser->lexer, "=")) {
		dagfile_fail(file, dagfile_where(&parser->lexer),
		             "a limit is declared as: limit NAME = NUMBER");
		return;
	}
	if (!dagfile_read_number(&parser->lexer, "the limit", 1, DAGFILE_LIMIT_MAX, &max))
		return;
	limit.max = (uint32_t)max;
	for (; *link; link = &(*link)->next, count++)
		if (strcmp((*link)->name, limit.name) == 0)
			require_once(parser, limit.at, (*link)->at, limit.name);
	if (count == DAGFILE_LIMITS_MAX)
		dagfile_fail(file, limit.at, "more than %u limits", DAGFILE_LIMITS_MAX);
	copy = dagfile_alloc(file, sizeof(*copy));
	if (!copy)
		return;
	*copy = limit;
	*link = copy;
}

/* --- nodes ---------------------------------------------------------------- */

static struct dagfile_node *
add_node(struct parser *parser)
{
	struct dagfile *file = parser->file;
	struct dagfile_node *nodes;

	if (file->node_count == DAGFILE_NODES_MAX) {
		dagfile_fail(file, dagfile_where(&parser->lexer), "more than %u nodes",
		             DAGFILE_NODES_MAX);
		return NULL;
	}
	nodes = dagfile_parse_grow(file, file->nodes, file->node_count, sizeof(*nodes));
	if (!nodes)
		return NULL;
	file->nodes = nodes;
	nodes += file->node_count++;
	*nodes = (struct dagfile_node){ .name = "" };
	return nodes;
}

static void
read_node(struct parser *parser)
{
	struct dagfile_lexer *lexer = &parser->lexer;
	struct dagfile_node *node = add_node(parser);
	struct dagfile_ref ref = { .use = DAGFILE_EACH };

	parser->in_node = true; /* even if the node is invalid, its options belong to it */
	if (!node || !dagfile_read_name(lexer, "the name of the node", &node->at, &node->name))
		return;
	if (dagfile_take_mark(lexer, "each")) {
		node->each = true;
		if (!dagfile_read_name(lexer, "the name of the list after each", &ref.at,
		                       &ref.name))
			return;
		dagfile_add_ref(parser->file, node, &ref);
	}
	dagfile_read_options(lexer, node);
}

/* --- lines ---------------------------------------------------------------- */

static const struct {
	const char *word;
	void (*read)(struct parser *parser);
} statements[] = {
	{ "dag", read_dag },
	{ "input", read_input },
	{ "server", read_server },
	{ "node", read_node },
};

/* In a node, "limit NAME" is an option; "limit NAME = NUMBER" is a declaration. */
static bool
declares_limit(const struct parser *parser)
{
	struct dagfile_lexer ahead = parser->lexer;

	if (!dagfile_take_mark(&ahead, "limit"))
		return false;
	if (!parser->in_node)
		return true;
	while (!dagfile_at_end(&ahead) && *ahead.at != ' ' && *ahead.at != '\t')
		ahead.at++;
	return dagfile_take_mark(&ahead, "=");
}

static bool
read_statement(struct parser *parser)
{
	if (declares_limit(parser)) {
		(void)dagfile_take_mark(&parser->lexer, "limit");
		parser->in_node = false;
		read_limit(parser);
		return true;
	}
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (dagfile_take_mark(&parser->lexer, statements[i].word)) {
			parser->in_node = false;
			statements[i].read(parser);
			return true;
		}
	return false;
}

static void
read_line(struct parser *parser)
{
	struct dagfile *file = parser->file;
	struct dagfile_lexer *lexer = &parser->lexer;
	uint32_t wrong = file->error_count;

	if (memchr(lexer->begin, '\0', (size_t)(lexer->end - lexer->begin))) {
		dagfile_fail(file, dagfile_where(lexer), "a zero byte: this is not a text file");
		return;
	}
	if (dagfile_at_end(lexer))
		return;
	if (!read_statement(parser)) {
		if (parser->in_node)
			dagfile_read_options(lexer, &file->nodes[file->node_count - 1]);
		else
			dagfile_fail(file, dagfile_where(lexer),
			             "this line must begin with dag, input, limit, server or node");
	}
	if (file->error_count == wrong && !dagfile_at_end(lexer))
		dagfile_fail(file, dagfile_where(lexer),
		             "unexpected word; put text with blanks in quotes");
}

static void
read_lines(struct parser *parser, const char *bytes, size_t size)
{
	const char *end = bytes + size, *stop;

	for (uint32_t line = 1; bytes < end && !parser->file->no_memory; line++) {
		stop = memchr(bytes, '\n', (size_t)(end - bytes));
		stop = stop ? stop : end;
		parser->lexer = (struct dagfile_lexer){
			.file = parser->file, .begin = bytes, .at = bytes, .end = stop, .line = line
		};
		if (stop > bytes && stop[-1] == '\r')
			parser->lexer.end--;
		if ((size_t)(stop - bytes) > DAGFILE_LINE_MAX)
			dagfile_fail(parser->file, dagfile_where(&parser->lexer),
			             "the line is longer than %zu bytes", DAGFILE_LINE_MAX);
		else
			read_line(parser);
		bytes = stop + (stop < end);
	}
}

struct dagfile *
dagfile_parse(const char *bytes, size_t size)
{
	struct parser parser = { .file = calloc(1, sizeof(*parser.file)) };
	struct dagfile *file = parser.file;
	const struct dagfile_at begin = { 1, 1 };

	if (!file)
		return NULL;
	file->scratch = dagfile_alloc(file, DAGFILE_LINE_MAX);
	if (size > DAGFILE_BYTES_MAX)
		dagfile_fail(file, begin, "the file is larger than %zu bytes", DAGFILE_BYTES_MAX);
	else if (file->scratch)
		read_lines(&parser, bytes, size);
	if (file->error_count == 0 && file->node_count == 0)
		dagfile_fail(file, begin, "the file has no nodes");
	if (!file->no_memory)
		dagfile_resolve(file);
	if (file->no_memory) {
		dagfile_free(file);
		return NULL;
	}
	return file;
}
