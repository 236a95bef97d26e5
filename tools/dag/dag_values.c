/* dag_values.c - converts values of nodes to texts, and texts to values. */
#include <stdlib.h>
#include <string.h>
#include "run.h"

/* Joins the items of a list with newlines.  An item that is not a text becomes an empty line. */
static const char *
join(const weft_list *list, char **made)
{
	struct bytes text = { 0 };

	(void)bytes_add_text(&text, "");
	for (size_t i = 0; i < list->count; i++) {
		(void)bytes_add_text(&text, i > 0 ? "\n" : "");
		if (list->items[i].type == &weft_type_text)
			(void)bytes_add_text(&text, list->items[i].as.ptr);
	}
	if (text.rc < 0) {
		bytes_free(&text);
		return NULL;
	}
	*made = text.data;
	return text.data;
}

const char *
values_text(const weft_value *value, char **made)
{
	*made = NULL;
	if (value && value->type == &weft_type_text)
		return value->as.ptr;
	if (value && value->type == &weft_type_list)
		return join(value->as.ptr, made);
	return "";
}

static size_t
count_lines(const char *text)
{
	size_t count = 0;

	for (; *text; count++) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return count;
}

weft_value
values_lines(const char *text)
{
	size_t count = count_lines(text);
	weft_value *items = calloc(count + 1, sizeof(*items)), list;
	char *copy = strdup(text), *at = copy;

	if (!items || !copy) {
		free(items);
		free(copy);
		return weft_value_error(WEFT_ENOMEM);
	}
	for (size_t i = 0; i < count; i++) {
		size_t size = strcspn(at, "\n");
		bool more = at[size] == '\n';

		at[size] = '\0';
		items[i] = weft_value_text(at);
		at += size + more;
	}
	list = weft_value_list(items, count);
	free(items);
	free(copy);
	return list;
}
