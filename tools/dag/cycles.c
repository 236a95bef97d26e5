/* cycles.c - the nodes of a DAG file in an order, or the cycles because of which there is none.
 *
 * A walk to the depth, with a stack of its own: a chain may be as long as a file has nodes.
 */
#include <stdlib.h>
#include <string.h>
#include "file.h"

enum { NEW, OPEN, CLOSED };

struct walk {
	struct dagfile *file;
	unsigned char *state;
	struct dagfile_ref **next; /* what is to be followed of each node */
	uint32_t *path, depth;
	uint32_t closed; /* so many nodes stand in file->order */
};

/* From where it comes back to: "a needs b needs a", as far as there is room. */
static void
tell_cycle(struct walk *walk, const struct dagfile_ref *ref)
{
	const struct dagfile_node *nodes = walk->file->nodes;
	char text[600];
	size_t size = 0;
	uint32_t i = walk->depth;

	if (walk->file->error_count >= DAGFILE_ERRORS_MAX) {
		walk->file->error_count++; /* nobody reads how it goes */
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
	dagfile_fail(walk->file, ref->at, "a cycle, each behind the next: %s%s%s", text,
	             i < walk->depth ? "... -> " : "", ref->name);
}

static void
enter(struct walk *walk, uint32_t index)
{
	walk->state[index] = OPEN;
	walk->next[index] = walk->file->nodes[index].refs;
	walk->path[walk->depth++] = index;
}

static void
visit(struct walk *walk, uint32_t root)
{
	enter(walk, root);
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
			enter(walk, ref->index);
		else if (walk->state[ref->index] == OPEN)
			tell_cycle(walk, ref);
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
