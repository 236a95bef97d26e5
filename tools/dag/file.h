/* file.h - DAG files: what is in one, once it has been read.
 *
 *     # what is built
 *     dag build
 *     input cc = gcc                    # NAME=VALUE on the command line sets another
 *     limit link = 1
 *     server redis://127.0.0.1:6379     # of redis nodes
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
 * The grammar, line by line; blanks at the begin of a line say nothing:
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
 *             | "run" all of the rest of the line, as the shell is to have it
 *
 * Those with NAMES, WORDS, and run, are the last of their line.  env is written without
 * blanks around its "=".  Several run lines are one script.  A NAME is of letters, digits
 * and _, and begins with no digit; inputs and nodes have their names together.  A TIME is
 * a number with us, ms, s, m or h.  A WORD ends at a blank; in "quotes" it may have
 * blanks, and \" \\ \$ \n \t.  $NAME or ${NAME} in a word is the value of an input, of a
 * node that is needed, or in a node with each its $item; $$ is a dollar sign.  Values
 * are put in after words have been told apart: one never becomes two.
 */
#ifndef WEFT_DAG_FILE_H
#define WEFT_DAG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds on what is read; docs/guide/dag-files.md tells them. */
#define DAGFILE_BYTES_MAX  ((size_t)16 << 20)
#define DAGFILE_LINE_MAX   ((size_t)64 << 10)
#define DAGFILE_SCRIPT_MAX ((size_t)96 << 10) /* a word of a command has 128 KiB */
#define DAGFILE_NODES_MAX  100000u
#define DAGFILE_REFS_MAX   1000000u /* of nodes to nodes, */
#define DAGFILE_PIECES_MAX 2000000u /* and of words, names too, in all */
#define DAGFILE_INPUTS_MAX 1000u
#define DAGFILE_NAME_MAX   64u
#define DAGFILE_ERRORS_MAX 20u
#define DAGFILE_LIMIT_MAX  1024u  /* of a limit, */
#define DAGFILE_LIMITS_MAX 1000u  /* and of how many */
#define DAGFILE_LEVELS     16u    /* different priorities */

struct dagfile_at {
	uint32_t line, column; /* from 1; in bytes */
};

struct dagfile_error {
	struct dagfile_error *next;
	struct dagfile_at at;
	const char *text;
};

/* A piece of a word: a text, or a variable. */
enum dagfile_kind {
	DAGFILE_TEXT,
	DAGFILE_VARIABLE, /* whose name is not looked up yet */
	DAGFILE_INPUT,    /* file->inputs[index] */
	DAGFILE_SOURCE,   /* the value of file->nodes[index], which the node has */
	DAGFILE_ITEM,
};

struct dagfile_piece {
	struct dagfile_piece *next;
	enum dagfile_kind kind;
	const char *text; /* or the name */
	uint32_t index;
	struct dagfile_at at;
};

struct dagfile_word {
	struct dagfile_word *next;
	struct dagfile_piece *pieces;
	const char *name; /* of an env */
	struct dagfile_at at;
	bool quoted;
};

/* Something before a node. */
enum dagfile_use { DAGFILE_EACH, DAGFILE_NEEDS, DAGFILE_AFTER, DAGFILE_STDIN };

struct dagfile_ref {
	struct dagfile_ref *next;
	enum dagfile_use use;
	const char *name;
	struct dagfile_at at;
	bool known, is_input;
	uint32_t index; /* of nodes, or of inputs */
};

struct dagfile_line { /* of a script */
	struct dagfile_line *next;
	const char *text;
	struct dagfile_at at;
};

enum dagfile_output {
	DAGFILE_OUTPUT_UNSAID, /* not after reading */
	DAGFILE_OUTPUT_TEXT,
	DAGFILE_OUTPUT_LINES,
	DAGFILE_OUTPUT_SHOW,
	DAGFILE_OUTPUT_NONE,
};

enum dagfile_test { DAGFILE_ALWAYS, DAGFILE_TRUE, DAGFILE_EQUAL, DAGFILE_OTHER };

struct dagfile_node {
	const char *name;
	struct dagfile_at at;
	uint32_t said;             /* bits of options */
	bool works;                /* has run or redis, right or wrong */
	struct dagfile_line *lines, *last_line; /* of its script; NULL: none */
	size_t script_bytes;
	struct dagfile_word *words; /* of its Redis command; NULL: none */
	struct dagfile_ref *refs, *last_ref; /* the one of each first */
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
	const char *value; /* NULL: has to be set */
	bool is_list;      /* something goes over its lines */
};

struct dagfile_limit {
	struct dagfile_limit *next;
	const char *name;
	struct dagfile_at at;
	uint32_t max;
};

struct dagfile {
	const char *name;   /* NULL: not said */
	const char *server; /* NULL: not said */
	struct dagfile_limit *limits;
	struct dagfile_input *inputs;
	uint32_t input_count;
	struct dagfile_node *nodes;
	uint32_t node_count;
	uint32_t *order;    /* indices of nodes, each behind all that it waits for */
	uint32_t ref_count, piece_count;
	struct dagfile_error *errors; /* in their order in the file */
	uint32_t error_count;         /* also those above the bound, which are not kept */
	struct dagfile_block *blocks; /* the memory of all this */
	char *scratch;                /* of a line's size; while it is read */
	bool no_memory;
};

/* Read `size` bytes.  NULL without memory.  A file with errors is good for nothing but
 * telling them. */
struct dagfile *dagfile_parse(const char *bytes, size_t size);

/* Accepts NULL. */
void dagfile_free(struct dagfile *file);

/* What can stand between blanks as a name. */
bool dagfile_is_name(const char *text);

/* --- between the files that read ------------------------------------------ */

/* Memory that ends with the file; NULL, and file->no_memory, if there is none. */
void *dagfile_alloc(struct dagfile *file, size_t size);
char *dagfile_copy(struct dagfile *file, const char *text, size_t size);

/* Tell a mistake, at a place. */
void dagfile_fail(struct dagfile *file, struct dagfile_at at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One line that is being read. */
struct dagfile_lexer {
	struct dagfile *file;
	const char *begin, *at, *end; /* the line, without its end */
	uint32_t line;
};

struct dagfile_at dagfile_where(const struct dagfile_lexer *lexer);

/* Whether nothing but a comment is left; skips blanks. */
bool dagfile_at_end(struct dagfile_lexer *lexer);

/* The next word; false, and told, if there is none or it is wrong.  A plain one has no
 * variables, and its text is in `text`; a name is one, too. */
bool dagfile_read_word(struct dagfile_lexer *lexer, const char *what,
                       struct dagfile_word *out);
bool dagfile_read_plain(struct dagfile_lexer *lexer, const char *what,
                        struct dagfile_at *at, const char **text);
bool dagfile_read_name(struct dagfile_lexer *lexer, const char *what,
                       struct dagfile_at *at, const char **text);
bool dagfile_read_number(struct dagfile_lexer *lexer, const char *what, int64_t min,
                         int64_t max, int64_t *out);
bool dagfile_read_time(struct dagfile_lexer *lexer, const char *what, uint64_t *out);

/* Take the mark, if it stands there as a word. */
bool dagfile_take_mark(struct dagfile_lexer *lexer, const char *mark);

/* A duration, "1.5s"; false if it is none. */
bool dagfile_parse_time(const char *text, uint64_t *out);

/* Options to the end of the line. */
void dagfile_read_options(struct dagfile_lexer *lexer, struct dagfile_node *node);
void dagfile_add_ref(struct dagfile *file, struct dagfile_node *node,
                     const struct dagfile_ref *ref);

/* Put nodes in file->order; tell cycles. */
void dagfile_sort(struct dagfile *file);

/* Look up names, and say what does not fit together. */
void dagfile_resolve(struct dagfile *file);

#endif
