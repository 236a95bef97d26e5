/* cycles.c - sorts the nodes of a DAG file topologically, and reports cycles.
 *
 * A depth-first search with an explicit stack, because a chain may be as long as the file has
 * nodes.
 */
#include <stdlib.h>
#include <string.h>
#include "file.h"

enum { NEW, OPEN, CLOSED };

struct walk {
	struct dagfile *file;
	unsigned char *state;
	struct dagfile_ref **next; /* for each node: the next dependency to visit */
	uint32_t *path, depth;
	uint32_t closed; /* number of nodes in file->order */
};

/* Reports the cycle that `ref` closes, as "a -> b -> a", truncated if it is long. */
static void
report_cycle(struct walk *walk, const struct dagfile_ref *ref)
{
	const struct dagfile_node *nodes = walk->file->nodes;
	char text[600];
	size_t size = 0;
	uint32_t i = walk->depth;

	if (walk->file->error_count >= DAGFILE_ERRORS_MAX) {
		walk->file->error_count++; /* the text would not be kept */
		return;
	}
	while (walk->path[--i] != ref->index)
		continue;
	for (; i < walk->depth && size < sizeof(text) - 100; i++) {
		const char *name = nodes[walk->path[i]].name;

		memcpy(text + size, name, strlen(name));
		size += strlen(name);
		memcpy(text + size, " -> ", 4);
		size += 4;
	}
	text[size] = '\0';
	dagfile_fail(walk->file, ref->at, "the dependencies form a cycle: %s%s%s", text,
	             i < walk->depth ? "... -> " : "", ref->name);
}

static void
cycles_enter(struct walk *walk, uint32_t index)
{
	walk->state[index] = OPEN;
	walk->next[index] = walk->file->nodes[index].refs;
	walk->path[walk->depth++] = index;
}

static void
visit(struct walk *walk, uint32_t root)
{
	cycles_enter(walk, root);
	while (walk->depth > 0) {
		uint32_t top = walk->path[walk->depth - 1];
		struct dagfile_ref *ref = walk->next[top];

		if (!ref) {
			walk->state[top] = CLOSED;
			walk->file->order[walk->closed++] = top;
			walk->depth--;
			continue;
		}
		walk->next[top] = ref->next;
		if (!ref->known || ref->is_input)
			continue;
		if (walk->state[ref->index] == NEW)
			cycles_enter(walk, ref->index);
		else if (walk->state[ref->index] == OPEN)
			report_cycle(walk, ref);
	}
}

void
dagfile_sort(struct dagfile *file)
{
	uint32_t count = file->node_count;
	struct walk walk = {
		.file = file,
		.state = calloc(count + 1, 1),
		.next = calloc(count + 1, sizeof(struct dagfile_ref *)),
		.path = calloc(count + 1, sizeof(uint32_t)),
	};

	file->order = dagfile_alloc(file, (count + 1) * sizeof(uint32_t));
	if (!walk.state || !walk.next || !walk.path)
		file->no_memory = true;
	for (uint32_t i = 0; i < count && !file->no_memory; i++)
		if (walk.state[i] == NEW)
			visit(&walk, i);
	free(walk.state);
	free(walk.next);
	free(walk.path);
}
