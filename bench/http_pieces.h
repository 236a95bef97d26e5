/* http_pieces.h - storage for the results of a parser that reports by callbacks. */
#define PIECES_MAX 100

struct piece {
	const char *data;
	size_t size;
};

static struct pieces {
	struct piece target, names[PIECES_MAX], values[PIECES_MAX];
	size_t count;
	bool done;
} pieces;

static inline int
piece_name(const char *data, size_t size)
{
	if (pieces.count == PIECES_MAX)
		return 1;
	pieces.names[pieces.count] = (struct piece){ data, size };
	return 0;
}

static inline int
piece_value(const char *data, size_t size)
{
	pieces.values[pieces.count++] = (struct piece){ data, size };
	return 0;
}
