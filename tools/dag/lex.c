/* lex.c - splits one line of a DAG file into words.
 *
 * Columns count bytes, which matches editors that count bytes.
 */
#include <stdio.h>
#include <string.h>
#include "file.h"

struct dagfile_at
dagfile_where(const struct dagfile_lexer *lexer)
{
	return (struct dagfile_at){
		.line = lexer->line,
		.column = (uint32_t)(lexer->at - lexer->begin) + 1,
	};
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
begins_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
goes_on_name(char c)
{
	return begins_name(c) || (c >= '0' && c <= '9');
}

size_t
dagfile_name_size(const char *text)
{
	size_t size = 0;

	if (begins_name(*text))
		while (goes_on_name(text[size]))
			size++;
	return size;
}

bool
dagfile_is_name(const char *text)
{
	size_t size = dagfile_name_size(text);

	return size > 0 && size <= DAGFILE_NAME_MAX && text[size] == '\0';
}

bool
dagfile_at_end(struct dagfile_lexer *lexer)
{
	while (lexer->at < lexer->end && is_blank(*lexer->at))
		lexer->at++;
	return lexer->at == lexer->end || *lexer->at == '#';
}

/* --- words ---------------------------------------------------------------- */

/* A word under construction. */
struct maker {
	struct dagfile_lexer *lexer;
	struct dagfile_piece **end; /* where the next piece is linked */
	char *text;                 /* text of the current piece; the file's scratch buffer */
	size_t size;
	struct dagfile_at at;
};

static void
add_piece(struct maker *maker, enum dagfile_kind kind, const char *text, size_t size)
{
	struct dagfile *file = maker->lexer->file;
	struct dagfile_piece *piece;
	char *copy;

	if (file->piece_count == DAGFILE_PIECES_MAX)
		dagfile_fail(file, maker->at,
		             "the words of the file have more than %u pieces in all",
		             DAGFILE_PIECES_MAX);
	if (file->piece_count++ >= DAGFILE_PIECES_MAX)
		return;
	piece = dagfile_alloc(file, sizeof(*piece));
	copy = dagfile_copy(file, text, size);
	if (!piece || !copy)
		return;
	*piece = (struct dagfile_piece){ .kind = kind, .text = copy, .at = maker->at };
	*maker->end = piece;
	maker->end = &piece->next;
}

static void
end_text(struct maker *maker)
{
	if (maker->size > 0)
		add_piece(maker, DAGFILE_TEXT, maker->text, maker->size);
	maker->size = 0;
}

/* Called at a dollar sign: reads $NAME, ${NAME} or $$. */
static bool
read_variable(struct maker *maker)
{
	struct dagfile_lexer *lexer = maker->lexer;
	struct dagfile_at at = dagfile_where(lexer);
	const char *name = lexer->at + 1;
	bool braces = name < lexer->end && *name == '{';
	const char *end = name += braces;

	if (end < lexer->end && *end == '$' && !braces) {
		maker->text[maker->size++] = '$';
		lexer->at += 2;
		return true;
	}
	while (end < lexer->end && goes_on_name(*end))
		end++;
	if (end == name || !begins_name(*name) || (size_t)(end - name) > DAGFILE_NAME_MAX
	    || (braces && (end == lexer->end || *end != '}'))) {
		dagfile_fail(lexer->file, at,
		             "a name must follow the dollar sign; write $$ for a literal one");
		return false;
	}
	end_text(maker);
	maker->at = at;
	add_piece(maker, DAGFILE_VARIABLE, name, (size_t)(end - name));
	lexer->at = end + braces;
	return true;
}

/* Called at a backslash inside quotes. */
static bool
read_escape(struct maker *maker)
{
	static const char codes[] = "\"\\$nt", means[] = "\"\\$\n\t";
	struct dagfile_lexer *lexer = maker->lexer;
	char code = '\0';
	const char *found;

	if (lexer->at + 1 < lexer->end)
		code = lexer->at[1];
	found = code ? strchr(codes, code) : NULL;
	if (!found) {
		dagfile_fail(lexer->file, dagfile_where(lexer),
		             "a backslash in quotes must be followed by one of \" \\ $ n t");
		return false;
	}
	maker->text[maker->size++] = means[found - codes];
	lexer->at += 2;
	return true;
}

/* Reads one byte, a variable or an escape. */
static bool
read_part(struct maker *maker, bool in_quotes)
{
	struct dagfile_lexer *lexer = maker->lexer;

	if (*lexer->at == '$')
		return read_variable(maker);
	if (in_quotes && *lexer->at == '\\')
		return read_escape(maker);
	maker->text[maker->size++] = *lexer->at++;
	return true;
}

static bool
read_quoted(struct maker *maker)
{
	struct dagfile_lexer *lexer = maker->lexer;
	struct dagfile_at at = dagfile_where(lexer);

	lexer->at++;
	while (lexer->at < lexer->end && *lexer->at != '"')
		if (!read_part(maker, true))
			return false;
	if (lexer->at == lexer->end) {
		dagfile_fail(lexer->file, at, "the quotes are not closed");
		return false;
	}
	lexer->at++;
	return true;
}

static bool
read_parts(struct maker *maker)
{
	struct dagfile_lexer *lexer = maker->lexer;

	while (lexer->at < lexer->end && !is_blank(*lexer->at)) {
		bool fine = *lexer->at == '"' ? read_quoted(maker) : read_part(maker, false);

		if (!fine)
			return false;
	}
	return true;
}

bool
dagfile_read_word(struct dagfile_lexer *lexer, const char *what, struct dagfile_word *out)
{
	struct maker maker = { .lexer = lexer };
	bool missing = dagfile_at_end(lexer);

	*out = (struct dagfile_word){ .at = dagfile_where(lexer) };
	if (missing) {
		dagfile_fail(lexer->file, out->at, "%s is missing", what);
		return false;
	}
	maker.end = &out->pieces;
	maker.at = out->at;
	maker.text = lexer->file->scratch;
	if (!read_parts(&maker))
		return false;
	end_text(&maker);
	return lexer->file->piece_count <= DAGFILE_PIECES_MAX;
}

/* --- types of words ------------------------------------------------------- */

bool
dagfile_read_plain(struct dagfile_lexer *lexer, const char *what, struct dagfile_at *at,
                   const char **text)
{
	struct dagfile_word word;

	if (!dagfile_read_word(lexer, what, &word))
		return false;
	*at = word.at;
	*text = word.pieces ? word.pieces->text : "";
	for (struct dagfile_piece *p = word.pieces; p; p = p->next)
		if (p->kind != DAGFILE_TEXT) {
			dagfile_fail(lexer->file, p->at,
			             "%s cannot contain variables; write $$ for a dollar sign",
			             what);
			return false;
		}
	return true;
}

bool
dagfile_read_name(struct dagfile_lexer *lexer, const char *what, struct dagfile_at *at,
                  const char **text)
{
	if (!dagfile_read_plain(lexer, what, at, text))
		return false;
	if (dagfile_is_name(*text))
		return true;
	dagfile_fail(lexer->file, *at,
	             "%s must consist of letters, digits and _, not begin with a digit, "
	             "and have at most %u bytes",
	             what, DAGFILE_NAME_MAX);
	return false;
}

bool
dagfile_read_number(struct dagfile_lexer *lexer, const char *what, int64_t min, int64_t max,
                    int64_t *out)
{
	struct dagfile_at at;
	const char *text, *digit;
	int64_t number = 0;

	if (!dagfile_read_plain(lexer, what, &at, &text))
		return false;
	digit = text + (*text == '-');
	for (; *digit >= '0' && *digit <= '9' && number <= max; digit++)
		number = number * 10 + (*digit - '0');
	number = *text == '-' ? -number : number;
	if (*digit || digit == text + (*text == '-') || number < min || number > max) {
		dagfile_fail(lexer->file, at, "%s must be a number from %lld to %lld", what,
		             (long long)min, (long long)max);
		return false;
	}
	*out = number;
	return true;
}

/* The nanoseconds of a unit; 0 if it is unknown. */
static uint64_t
unit_of(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", 1000000000 },
		{ "m", UINT64_C(60) * 1000000000 },
		{ "h", UINT64_C(3600) * 1000000000 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].name, unit) == 0)
			return units[i].ns;
	return 0;
}

/* At most seven digits before the point and three after it, so `number` cannot overflow. */
bool
dagfile_parse_time(const char *text, uint64_t *out)
{
	uint64_t number = 0, unit;
	int digits = 0, behind = 0;

	for (; *text >= '0' && *text <= '9' && digits < 7; text++, digits++)
		number = number * 10 + (uint64_t)(*text - '0');
	if (digits == 0)
		return false;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9' && behind < 3; text++, behind++)
			number = number * 10 + (uint64_t)(*text - '0');
	unit = unit_of(text);
	if (unit == 0 || number == 0 || (text[-1] == '.'))
		return false;
	for (; behind > 0; behind--)
		unit /= 10;
	*out = number > UINT64_MAX / 2 / unit ? UINT64_MAX / 2 : number * unit;
	return true;
}

bool
dagfile_read_time(struct dagfile_lexer *lexer, const char *what, uint64_t *out)
{
	struct dagfile_at at;
	const char *text;

	if (!dagfile_read_plain(lexer, what, &at, &text))
		return false;
	if (dagfile_parse_time(text, out))
		return true;
	dagfile_fail(lexer->file, at, "%s must be a number above 0 with us, ms, s, m or h", what);
	return false;
}

bool
dagfile_take_mark(struct dagfile_lexer *lexer, const char *mark)
{
	size_t size = strlen(mark);

	if (dagfile_at_end(lexer) || (size_t)(lexer->end - lexer->at) < size
	    || memcmp(lexer->at, mark, size) != 0
	    || (lexer->at + size < lexer->end && !is_blank(lexer->at[size])))
		return false;
	lexer->at += size;
	return true;
}
