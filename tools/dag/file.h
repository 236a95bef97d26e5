/* file.h - DAG files: the contents of one after parsing.
 *
 *     # an example
 *     dag build
 *     input cc = gcc                    # NAME=VALUE on the command line overrides it
 *     limit link = 1
 *     server redis://127.0.0.1:6379     # for redis nodes
 *
 *     node scan
 *         run     find src -name '*.c'
 *         output  lines
 *     node compile each scan
 *         run     $cc -c "$item" -o "$item.o"
 *         timeout 30s  retries 2  backoff 100ms
 *     node count
 *         after   compile
 *         redis   INCR "builds of $cc"
 *
 * The grammar, line by line; blanks at the start of a line are ignored:
 *
 *     file    = { line }
 *     line    = [ declare | node | options ] [ comment ]
 *     comment = "#" to the end of the line, where a word could begin
 *     declare = "dag" NAME | "input" NAME [ "=" WORD ] | "limit" NAME "=" NUMBER
 *             | "server" WORD
 *     node    = "node" NAME [ "each" NAME ] [ options ]
 *     options = { option }, of the last node
 *     option  = "timeout" TIME | "retries" NUMBER | "backoff" TIME | "limit" NAME
 *             | "optional" [ QUOTED ] | "priority" NUMBER | "dir" WORD
 *             | "when" WORD [ ( "=" | "!=" ) WORD ] | "env" NAME "=" WORD
 *             | "output" ( "text" | "lines" | "show" | "none" ) | "stdin" NAME
 *             | "needs" NAMES | "after" NAMES | "redis" WORDS
 *             | "run" rest of the line, passed to the shell unchanged
 *
 * Options with NAMES or WORDS, and run, must be the last on their line.  env has no blanks
 * around its "=".  Several run lines form one script.  A NAME consists of letters, digits and
 * _, and does not begin with a digit; inputs and nodes share one namespace.  A TIME is a
 * number with us, ms, s, m or h.  A WORD ends at a blank; "quotes" allow blanks, and the
 * escapes \" \\ \$ \n \t.  $NAME or ${NAME} in a word is the value of an input or of a node
 * that is needed; in a node with each, $item is the item; $$ is a dollar sign.  Variables are
 * expanded after the line is split into words: one word never becomes two.
 */
#ifndef WEFT_DAG_FILE_H
#define WEFT_DAG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits on the input; docs/guide/dag-files.md documents them. */
#define DAGFILE_BYTES_MAX  ((size_t)16 << 20)
#define DAGFILE_LINE_MAX   ((size_t)64 << 10)
#define DAGFILE_SCRIPT_MAX ((size_t)96 << 10) /* the kernel allows 128 KiB for one argument */
#define DAGFILE_NODES_MAX  100000u
#define DAGFILE_REFS_MAX   1000000u /* dependencies of all nodes */
#define DAGFILE_PIECES_MAX 2000000u /* pieces of all words, names included */
#define DAGFILE_INPUTS_MAX 1000u
#define DAGFILE_NAME_MAX   64u
#define DAGFILE_ERRORS_MAX 20u
#define DAGFILE_LIMIT_MAX  1024u  /* largest value of a limit */
#define DAGFILE_LIMITS_MAX 1000u  /* number of limits */
#define DAGFILE_LEVELS     16u    /* number of different priorities */

struct dagfile_at {
	uint32_t line, column; /* from 1; the column is in bytes */
};

struct dagfile_error {
	struct dagfile_error *next;
	struct dagfile_at at;
	const char *text;
};

/* A piece of a word: literal text, or a variable. */
enum dagfile_kind {
	DAGFILE_TEXT,
	DAGFILE_VARIABLE, /* its name is not resolved yet */
	DAGFILE_INPUT,    /* file->inputs[index] */
	DAGFILE_SOURCE,   /* the value of file->nodes[index], which this node needs */
	DAGFILE_ITEM,
};

struct dagfile_piece {
	struct dagfile_piece *next;
	enum dagfile_kind kind;
	const char *text; /* literal text, or the variable's name */
	uint32_t index;
	struct dagfile_at at;
};

struct dagfile_word {
	struct dagfile_word *next;
	struct dagfile_piece *pieces;
	const char *name; /* of an env variable */
	struct dagfile_at at;
};

/* A dependency of a node. */
enum dagfile_use { DAGFILE_EACH, DAGFILE_NEEDS, DAGFILE_AFTER, DAGFILE_STDIN };

struct dagfile_ref {
	struct dagfile_ref *next;
	enum dagfile_use use;
	const char *name;
	struct dagfile_at at;
	bool known, is_input;
	uint32_t index; /* in file->inputs if is_input, else in file->nodes */
};

struct dagfile_line { /* one line of a script */
	struct dagfile_line *next;
	const char *text;
	struct dagfile_at at;
};

enum dagfile_output {
	DAGFILE_OUTPUT_UNSET, /* not specified; never after parsing */
	DAGFILE_OUTPUT_TEXT,
	DAGFILE_OUTPUT_LINES,
	DAGFILE_OUTPUT_SHOW,
	DAGFILE_OUTPUT_NONE,
};

enum dagfile_test { DAGFILE_ALWAYS, DAGFILE_TRUE, DAGFILE_EQUAL, DAGFILE_OTHER };

struct dagfile_node {
	const char *name;
	struct dagfile_at at;
	uint32_t options_seen;     /* bit mask */
	bool works;                /* has run or redis, valid or not */
	struct dagfile_line *lines, *last_line; /* of its script; NULL: none */
	size_t script_bytes;
	struct dagfile_word *words; /* of its Redis command; NULL: none */
	struct dagfile_ref *refs, *last_ref; /* the one of `each` comes first */
	bool each;
	enum dagfile_output output;
	struct dagfile_at output_at;
	uint64_t timeout_ns, backoff_ns;
	uint32_t retries;
	int priority;
	const char *limit;
	struct dagfile_at limit_at;
	bool optional;
	const char *fallback;      /* or NULL */
	enum dagfile_test test;
	struct dagfile_word when[2];
	struct dagfile_word *dir;  /* or NULL */
	struct dagfile_word *envs, *last_env;
};

struct dagfile_input {
	const char *name;
	struct dagfile_at at;
	const char *value; /* NULL: the user must set it */
	bool is_list;      /* some node with `each` iterates over its lines */
};

struct dagfile_limit {
	struct dagfile_limit *next;
	const char *name;
	struct dagfile_at at;
	uint32_t max;
};

struct dagfile {
	const char *name;   /* NULL: not specified */
	const char *server; /* NULL: not specified */
	struct dagfile_limit *limits;
	struct dagfile_input *inputs;
	uint32_t input_count;
	struct dagfile_node *nodes;
	uint32_t node_count;
	uint32_t *order;    /* indices of nodes, each after all its dependencies */
	uint32_t ref_count, piece_count;
	struct dagfile_error *errors; /* sorted by position in the file */
	uint32_t error_count;         /* includes those that are not kept */
	struct dagfile_block *blocks; /* the memory of all of this */
	char *scratch;                /* DAGFILE_LINE_MAX bytes, used while parsing */
	bool no_memory;
};

/* Parse `size` bytes.  Returns NULL if out of memory.  If the file has errors, only the errors
 * may be used. */
struct dagfile *dagfile_parse(const char *bytes, size_t size);

/* Accepts NULL. */
void dagfile_free(struct dagfile *file);

/* The size of the NAME at the beginning of `text`, 0 if there is none; and whether it is one. */
size_t dagfile_name_size(const char *text);
bool   dagfile_is_name(const char *text);

/* --- shared by the files that parse --------------------------------------- */

/* Memory that lives as long as the file.  Returns NULL and sets file->no_memory if there is
 * none. */
void *dagfile_alloc(struct dagfile *file, size_t size);
char *dagfile_copy(struct dagfile *file, const char *text, size_t size);

/* Report an error at a position. */
void dagfile_fail(struct dagfile *file, struct dagfile_at at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The line being parsed. */
struct dagfile_lexer {
	struct dagfile *file;
	const char *begin, *at, *end; /* the line, without its terminator */
	uint32_t line;
};

struct dagfile_at dagfile_where(const struct dagfile_lexer *lexer);

/* Skip blanks.  Returns whether nothing but a comment is left. */
bool dagfile_at_end(struct dagfile_lexer *lexer);

/* Read the next word.  Returns false, after reporting the error, if there is none or it is not
 * valid.  A plain word has no variables, and its text is stored in `text`; a name is a plain
 * word. */
bool dagfile_read_word(struct dagfile_lexer *lexer, const char *what,
                       struct dagfile_word *out);
bool dagfile_read_plain(struct dagfile_lexer *lexer, const char *what,
                        struct dagfile_at *at, const char **text);
bool dagfile_read_name(struct dagfile_lexer *lexer, const char *what,
                       struct dagfile_at *at, const char **text);
bool dagfile_read_number(struct dagfile_lexer *lexer, const char *what, int64_t min,
                         int64_t max, int64_t *out);
bool dagfile_read_time(struct dagfile_lexer *lexer, const char *what, uint64_t *out);

/* Consume `mark` if it is the next word. */
bool dagfile_take_mark(struct dagfile_lexer *lexer, const char *mark);

/* Parse a duration such as "1.5s".  Returns false if it is not one. */
bool dagfile_parse_time(const char *text, uint64_t *out);

/* Read options up to the end of the line. */
void dagfile_read_options(struct dagfile_lexer *lexer, struct dagfile_node *node);
void dagfile_add_ref(struct dagfile *file, struct dagfile_node *node,
                     const struct dagfile_ref *ref);

/* Sort the nodes into file->order; report cycles. */
void dagfile_sort(struct dagfile *file);

/* Resolve names, and report what is inconsistent. */
void dagfile_resolve(struct dagfile *file);

#endif
