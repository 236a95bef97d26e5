/* resp_build.c - build the tree of a scanned reply.
 *
 * The nodes of all elements are one array, and the items of a list are adjacent in it: a list
 * reserves its items at the front of the free nodes before they are filled.  So an item is
 * found by its index, and everything is freed at once.
 *
 * Texts stay where they are, in a copy of the bytes or in the bytes themselves.  The '\r' after
 * each text becomes its NUL.  It is overwritten only after the element was read, and is not
 * read again.
 */
#include "resp.h"

/* A list that is being filled: its next item, and how many are to come. */
struct open_list {
	weft_redis_reply *next;
	uint64_t left;
};

struct build {
	char *at;               /* the next byte */
	weft_redis_reply *free; /* the next node */
	struct open_list open[WEFT__RESP_DEPTH + 1];
	size_t depth;
};

/* --- parsing what the scan has checked ------------------------------------- */

/* The number up to the line end, and the line end. */
static int64_t
take_integer(struct build *b)
{
	bool negative = *b->at == '-';
	uint64_t number = 0;

	for (b->at += negative; *b->at != '\r'; b->at++)
		number = number * 10 + (uint64_t)(*b->at - '0');
	b->at += 2;
	return negative ? (int64_t)-number : (int64_t)number;
}

static void
set(weft_redis_reply *node, weft_redis_type kind, uint64_t size)
{
	node->kind = (unsigned)kind & 0xff;
	node->size = size & (UINT64_MAX >> 8);
}

static void
set_text(weft_redis_reply *node, weft_redis_type kind, char *text, size_t size)
{
	text[size] = '\0';
	node->as.data = text;
	set(node, kind, size);
}

static void
set_integer(weft_redis_reply *node, weft_redis_type kind, int64_t integer)
{
	node->as.integer = integer;
	set(node, kind, 0);
}

/* The rest of a line. */
static void
take_line(struct build *b, weft_redis_reply *node, weft_redis_type kind)
{
	char *text = b->at;

	while (*b->at != '\r')
		b->at++;
	set_text(node, kind, text, (size_t)(b->at - text));
	b->at += 2;
}

/* Bytes after their length.  A verbatim text begins with a format of four bytes, which is
 * skipped. */
static void
take_bytes(struct build *b, weft_redis_reply *node, char type)
{
	int64_t length = take_integer(b);
	size_t skip = type == '=' ? 4 : 0;
	char *text = b->at;

	if (length < 0) {
		set_integer(node, WEFT_REDIS_NIL, 0);
		return;
	}
	b->at += (size_t)length + 2;
	set_text(node, type == '!' ? WEFT_REDIS_ERROR : WEFT_REDIS_TEXT, text + skip,
	         (size_t)length - skip);
}

static void
take_items(struct build *b, weft_redis_reply *node, char type)
{
	weft_redis_type kind = type == '*'   ? WEFT_REDIS_LIST
	                       : type == '~' ? WEFT_REDIS_SET
	                       : type == '>' ? WEFT_REDIS_PUSH
	                                     : WEFT_REDIS_MAP;
	int64_t count = take_integer(b);

	if (count < 0) {
		set_integer(node, WEFT_REDIS_NIL, 0);
		return;
	}
	count *= type == '%' ? 2 : 1;
	node->as.items = b->free;
	set(node, kind, (uint64_t)count);
	if (count == 0)
		return;
	b->open[b->depth++] = (struct open_list){ b->free, (uint64_t)count };
	b->free += count;
}

/* Skip attributes and everything in them. */
static void
skip_attributes(struct build *b)
{
	uint64_t left = 0;

	while (left > 0 || *b->at == '|') {
		char type = *b->at++;
		weft_redis_reply ignored;
		int64_t count;

		left -= type != '|';
		switch (type) {
		case '|':
		case '%':
			left += 2 * (uint64_t)take_integer(b);
			break;
		case '*':
		case '~':
		case '>':
			count = take_integer(b);
			left += count > 0 ? (uint64_t)count : 0;
			break;
		case '$':
		case '!':
		case '=':
			take_bytes(b, &ignored, type);
			break;
		default:
			take_line(b, &ignored, WEFT_REDIS_TEXT);
		}
	}
}

static void
take_element(struct build *b, weft_redis_reply *node)
{
	char type;

	if (*b->at == '|')
		skip_attributes(b);
	type = *b->at++;
	switch (type) {
	case '$':
	case '!':
	case '=':
		take_bytes(b, node, type);
		break;
	case '*':
	case '%':
	case '~':
	case '>':
		take_items(b, node, type);
		break;
	case ':':
		set_integer(node, WEFT_REDIS_INTEGER, take_integer(b));
		break;
	case '#':
		set_integer(node, WEFT_REDIS_BOOL, *b->at == 't');
		b->at += 3;
		break;
	case '_':
		set_integer(node, WEFT_REDIS_NIL, 0);
		b->at += 2;
		break;
	default: /* + - , ( */
		take_line(b, node,
		          type == '-'   ? WEFT_REDIS_ERROR
		          : type == ',' ? WEFT_REDIS_NUMBER
		                        : WEFT_REDIS_TEXT);
	}
}

static void
resp_build_fill(struct weft__resp_block *block, char *data)
{
	struct build b;

	b.at = data;
	b.free = block->nodes + 1;
	b.depth = 0;
	take_element(&b, block->nodes);
	while (b.depth > 0) {
		struct open_list *list = &b.open[b.depth - 1];
		weft_redis_reply *node = list->next++;

		/* Close the list before its last item is read, which may open another list. */
		if (--list->left == 0)
			b.depth--;
		take_element(&b, node);
	}
}

/* --- blocks ------------------------------------------------------------------ */

/* A block for `nodes` nodes with `more` bytes behind them, or NULL. */
static struct weft__resp_block *
block_new(uint32_t nodes, size_t more)
{
	struct weft__resp_block *block;
	size_t size = sizeof(*block) + nodes * sizeof(block->nodes[0]);

	if (more > SIZE_MAX - size)
		return NULL;
	block = weft_alloc(size + more);
	if (!block)
		return NULL;
	block->refs = WEFT__REFS_ONE;
	block->bytes = size + more;
	block->taken = NULL;
	return block;
}

/* A single text: only its bytes are stored. */
static int
build_text(const char *data, size_t size, weft_redis_reply **out)
{
	size_t at = 2;
	struct weft__resp_block *block;
	char *text;

	while (data[at] != '\r')
		at++;
	at += 2;
	size -= at + 2;
	block = block_new(1, size + 1);
	if (!block)
		return WEFT_ENOMEM;
	text = (char *)(block->nodes + 1);
	memcpy(text, data + at, size);
	set_text(block->nodes, WEFT_REDIS_TEXT, text, size);
	*out = block->nodes;
	return 0;
}

int
weft__resp_build(const struct weft__resp_scan *scan, const char *data, size_t size,
                 weft_redis_reply **out)
{
	struct weft__resp_block *block;
	char *copy;

	if (data[0] == '$' && data[1] != '-')
		return build_text(data, size, out);
	block = block_new(scan->nodes, size);
	if (!block)
		return WEFT_ENOMEM;
	copy = (char *)(block->nodes + scan->nodes);
	memcpy(copy, data, size);
	resp_build_fill(block, copy);
	*out = block->nodes;
	return 0;
}

int
weft__resp_build_taking(const struct weft__resp_scan *scan, char *data, size_t size,
                        weft_redis_reply **out)
{
	struct weft__resp_block *block = block_new(scan->nodes, 0);

	if (!block)
		return WEFT_ENOMEM;
	block->bytes += size;
	block->taken = data;
	resp_build_fill(block, data);
	*out = block->nodes;
	return 0;
}

weft_redis_reply *
weft__resp_ref(weft_redis_reply *reply)
{
	weft__refs_add(&weft__resp_block(reply)->refs);
	return reply;
}

size_t
weft__resp_bytes(const weft_redis_reply *reply)
{
	return weft__resp_block(reply)->bytes;
}

void
weft_redis_reply_free(weft_redis_reply *reply)
{
	struct weft__resp_block *block;

	if (!reply)
		return;
	block = weft__resp_block(reply);
	if (!weft__refs_drop_sole(&block->refs))
		return;
	weft_release(block->taken);
	weft_release(block);
}
