/* route.c - choose the handler of a request: patterns as a tree of segments.
 *
 * A segment of a path is matched first by a literal pattern segment, then by {x}, then by
 * {x...}.  If a choice leads to no handler for the method, the search backtracks.  A node has a
 * fixed depth, and so matches only one segment of a path: a search visits each node at most
 * once.
 */
#include "http/server/http_server.h"

#define DEPTH_MAX 64

/* --- adding ---------------------------------------------------------------- */

static int
bad(const char *why)
{
	return weft_fail(WEFT_EINVAL, "weft_http_route: %s", why);
}

static struct weft__http_node *
make_node(const char *text, size_t size)
{
	struct weft__http_node *node = weft_alloc(sizeof(*node) + size + 1);

	if (!node)
		return NULL;
	memset(node, 0, sizeof(*node));
	memcpy(node->text, text, size);
	node->text[size] = '\0';
	node->size = (uint32_t)size;
	return node;
}

static struct weft__http_node *
literal_child(const struct weft__http_node *node, struct text text)
{
	struct weft__http_node *child = node->literals;

	while (child && !text_equal((struct text){ child->text, child->size }, text))
		child = child->next;
	return child;
}

/* The node for one more segment, created if necessary; NULL without memory. */
static struct weft__http_node *
descend(struct weft__http_node *node, struct text segment, bool is_param)
{
	struct weft__http_node *child = is_param ? node->param : literal_child(node, segment);

	if (child)
		return child;
	child = make_node(segment.data, is_param ? 0 : segment.size);
	if (!child)
		return NULL;
	if (is_param) {
		node->param = child;
	} else {
		child->next = node->literals;
		node->literals = child;
	}
	return child;
}

/* Parse a segment of a pattern.  *name becomes the name of the parameter; empty for a literal. */
static int
read_segment(struct text segment, struct text *name, bool *is_rest)
{
	struct text inside = { segment.data + 1, segment.size - 2 };

	*name = (struct text){ NULL, 0 };
	*is_rest = false;
	if (!memchr(segment.data, '{', segment.size) && !memchr(segment.data, '}', segment.size))
		return 0;
	if (segment.size < 3 || segment.data[0] != '{' || segment.data[segment.size - 1] != '}')
		return bad("a parameter must be a whole segment");
	if (inside.size > 3 && memcmp(inside.data + inside.size - 3, "...", 3) == 0) {
		*is_rest = true;
		inside.size -= 3;
	}
	for (size_t i = 0; i < inside.size; i++)
		if (!byte_is(inside.data[i], BYTE_ALPHA | BYTE_DIGIT) && inside.data[i] != '_')
			return bad("a parameter name may only have letters, digits and _");
	*name = inside;
	return 0;
}

/* Allocate the route, with its texts behind it. */
static struct weft__http_route *
make_route(struct text method, size_t pattern_size)
{
	struct weft__http_route *route = weft_alloc(sizeof(*route) + method.size + pattern_size
	                                            + 2);
	char *text;

	if (!route)
		return NULL;
	memset(route, 0, sizeof(*route));
	text = (char *)(route + 1);
	if (method.size > 0)
		memcpy(text, method.data, method.size);
	text[method.size] = '\0';
	route->method = text;
	route->method_size = (uint32_t)method.size;
	return route;
}

static int
add_name(struct weft__http_route *route, struct text name, char **at)
{
	if (route->count == WEFT__HTTP_PARAMS)
		return bad("more than 16 parameters");
	memcpy(*at, name.data, name.size);
	(*at)[name.size] = '\0';
	for (uint32_t i = 0; i < route->count; i++)
		if (strcmp(route->names[i], *at) == 0)
			return bad("two parameters have the same name");
	route->names[route->count++] = *at;
	*at += name.size + 1;
	return 0;
}

static int
link_route(struct weft__http_route **list, struct weft__http_route *route)
{
	for (; *list; list = &(*list)->next)
		if (strcmp((*list)->method, route->method) == 0)
			return weft_fail(WEFT_EEXIST,
			                 "weft_http_route: this pattern already has a route");
	*list = route;
	return 0;
}

/* Insert the route at the end of `path`, which is given without its first slash. */
static int
insert_route(struct weft__http_node *node, struct weft__http_route *route, struct text path)
{
	char *names = (char *)(route + 1) + route->method_size + 1;
	bool more = true, is_rest = false;

	for (int depth = 0; more; depth++) {
		const char *slash = memchr(path.data, '/', path.size);
		struct text segment = { path.data,
			                slash ? (size_t)(slash - path.data) : path.size };
		struct text name;
		int rc = read_segment(segment, &name, &is_rest);

		more = slash != NULL;
		if (rc == 0 && name.data)
			rc = add_name(route, name, &names);
		if (rc == 0 && is_rest && more)
			rc = bad("{x...} must be the last segment");
		if (rc == 0 && depth == DEPTH_MAX)
			rc = bad("more than 64 segments");
		if (rc < 0)
			return rc;
		if (is_rest)
			return link_route(&node->rest, route);
		node = descend(node, segment, name.data != NULL);
		if (!node)
			return weft_fail(WEFT_ENOMEM, "weft_http_route: no memory");
		if (more)
			path = (struct text){ slash + 1, path.size - segment.size - 1 };
	}
	return link_route(&node->here, route);
}

int
weft__http_route_add(struct weft__http_node *root, const char *pattern, weft_http_fn fn, void *arg)
{
	struct text method = { pattern, strcspn(pattern, " /") };
	struct weft__http_route *route;
	const char *path = pattern + method.size;
	int rc;

	if (method.size > 0
	    && (*path++ != ' ' || method.size > WEFT__HTTP_METHOD_MAX
	        || !weft__http_is_token(method)))
		return bad("a pattern must be \"METHOD /path\" or \"/path\"");
	if (*path != '/')
		return bad("the path must begin with a slash");
	route = make_route(method, strlen(path));
	if (!route)
		return weft_fail(WEFT_ENOMEM, "weft_http_route: no memory");
	route->fn = fn;
	route->arg = arg;
	path++;
	rc = insert_route(root, route, (struct text){ path, strlen(path) });
	if (rc < 0)
		weft_release(route);
	return rc;
}

static void
free_routes(struct weft__http_route *route)
{
	while (route) {
		struct weft__http_route *next = route->next;

		weft_release(route);
		route = next;
	}
}

/* The recursion depth is bounded by DEPTH_MAX. */
void
weft__http_routes_free(struct weft__http_node *node)
{
	while (node) {
		struct weft__http_node *next = node->next;

		weft__http_routes_free(node->literals);
		weft__http_routes_free(node->param);
		free_routes(node->here);
		free_routes(node->rest);
		weft_release(node);
		node = next;
	}
}

/* --- searching ------------------------------------------------------------- */

struct search {
	const char *end;    /* of the path */
	struct text method; /* of the request */
	struct text values[WEFT__HTTP_PARAMS];
	const struct weft__http_route *found;
	struct methods *methods; /* NULL: search for a route */
};

/* A comma-separated list of methods; a method that does not fit is left out. */
struct methods {
	char *text;
	size_t size, room;
};

/* How well a route matches the method; 0: not at all. */
static int
rank(const struct weft__http_route *route, struct text method)
{
	if (route->method_size == 0)
		return 1;
	if (text_is(method, route->method))
		return 3;
	return text_is(method, "HEAD") && strcmp(route->method, "GET") == 0 ? 2 : 0;
}

static bool
has(const struct methods *methods, const char *method)
{
	struct text list = { methods->text, methods->size }, element;

	while (weft__http_list_next(&list, &element))
		if (text_is(element, method))
			return true;
	return false;
}

/* Add a method to the list, unless it is there or does not fit. */
static void
note(struct methods *methods, const char *method)
{
	size_t size = strlen(method);

	if (methods->size + size + 3 > methods->room || has(methods, method))
		return;
	if (methods->size > 0) {
		memcpy(methods->text + methods->size, ", ", 2);
		methods->size += 2;
	}
	memcpy(methods->text + methods->size, method, size + 1);
	methods->size += size;
}

static void
note_all(struct methods *methods, const struct weft__http_route *route)
{
	if (!route)
		return;
	for (; route; route = route->next) {
		if (route->method_size > 0)
			note(methods, route->method);
		if (strcmp(route->method, "GET") == 0)
			note(methods, "HEAD");
	}
	note(methods, "OPTIONS");
}

/* Consider the routes of a node that matches.  True: the search is over. */
static bool
choose(struct search *search, const struct weft__http_route *route)
{
	int best = 0;

	if (search->methods) {
		note_all(search->methods, route);
		return false;
	}
	for (; route; route = route->next) {
		int suits = rank(route, search->method);

		if (suits > best) {
			best = suits;
			search->found = route;
		}
	}
	return best > 0;
}

/* Search below `node`, from the segment at `at` on; `at` is beyond the end if there is none.
 * `count` parameters were matched so far. */
static bool
walk(struct search *search, const struct weft__http_node *node, const char *at, uint32_t count)
{
	const struct weft__http_node *child;
	const char *stop, *end = search->end;
	struct text segment;

	if (at > end)
		return choose(search, node->here);
	stop = memchr(at, '/', (size_t)(end - at));
	stop = stop ? stop : end;
	segment = (struct text){ at, (size_t)(stop - at) };
	child = literal_child(node, segment);
	if (child && walk(search, child, stop + 1, count))
		return true;
	if (node->param && segment.size > 0) {
		search->values[count] = segment;
		if (walk(search, node->param, stop + 1, count + 1))
			return true;
	}
	if (!node->rest)
		return false;
	search->values[count] = (struct text){ at, (size_t)(end - at) };
	return choose(search, node->rest);
}

const struct weft__http_route *
weft__http_route_find(const struct weft__http_node *root, weft_http *http)
{
	struct search search;

	search.end = http->in.path + http->in.path_size;
	search.method = part_text(http->in.text, http->in.head.method);
	search.methods = NULL;
	if (http->in.path[0] != '/' || !walk(&search, root, http->in.path + 1, 0))
		return NULL;
	http->param_count = (uint8_t)search.found->count;
	for (uint32_t i = 0; i < search.found->count; i++)
		http->params[i] = (struct weft__http_param){ search.found->names[i],
			                                     search.values[i].data,
			                                     (uint32_t)search.values[i].size,
			                                     NULL };
	return search.found;
}

/* Collect all methods of all routes. */
static void
walk_all(struct methods *methods, const struct weft__http_node *node)
{
	for (; node; node = node->next) {
		note_all(methods, node->here);
		note_all(methods, node->rest);
		walk_all(methods, node->literals);
		walk_all(methods, node->param);
	}
}

const char *
weft__http_route_methods(const struct weft__http_node *root, weft_http *http)
{
	struct methods methods = { .room = 512 };
	struct search search = { .methods = &methods };

	methods.text = weft__http_arena_take(&http->arena, methods.room);
	if (!methods.text)
		return NULL;
	methods.text[0] = '\0';
	search.end = http->in.path + http->in.path_size;
	if (http->in.path[0] == '/')
		(void)walk(&search, root, http->in.path + 1, 0);
	else
		walk_all(&methods, root);
	return methods.text;
}
