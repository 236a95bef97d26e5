/* file_test.c - parsing of DAG files; each mistake is reported with its position. */
#include "dag/file.h"
#include "test.h"

static struct dagfile *
parse(const char *text)
{
	struct dagfile *file = dagfile_parse(text, strlen(text));

	CHECK(file);
	return file;
}

/* Parses a file without mistakes.  The caller frees it. */
static struct dagfile *
parse_well(const char *text)
{
	struct dagfile *file = parse(text);

	if (file->errors)
		fprintf(stderr, "%u:%u: %s\n", file->errors->at.line, file->errors->at.column,
		        file->errors->text);
	CHECK_EQ(file->error_count, 0);
	return file;
}

static struct dagfile_node *
find(const struct dagfile *file, const char *name)
{
	for (uint32_t i = 0; i < file->node_count; i++)
		if (strcmp(file->nodes[i].name, name) == 0)
			return &file->nodes[i];
	CHECK(!"found");
	return NULL;
}

/* Check that the mistakes of a text, as lines of LINE:COLUMN: TEXT, are exactly `said`. */
static void
check_errors(const char *text, const char *said)
{
	struct dagfile *file = parse(text);
	char got[8192];
	size_t size = 0;

	got[0] = '\0';
	for (struct dagfile_error *e = file->errors; e; e = e->next)
		size += (size_t)snprintf(got + size, sizeof(got) - size, "%u:%u: %s\n", e->at.line,
		                         e->at.column, e->text);
	CHECK_STR(got, said);
	dagfile_free(file);
}

/* --- valid files ------------------------------------------------------------ */

TEST(file_with_all_statements_is_parsed)
{
	struct dagfile *file = parse_well(
		"# what is built\n"
		"dag build\n"
		"  input cc = gcc   # a comment\n"
		"\tinput mode\n"
		"input flags = \"-O2 -g # no comment\"\n"
		"input empty =\n"
		"limit link = 3\n"
		"server redis://127.0.0.1:6379\n"
		"node scan\n"
		"  run find src -name '*.c'  # the shell's\n"
		"  output lines\n"
		"node compile each scan timeout 1.5s retries 2 backoff 100ms\n"
		"  run $cc -c \"$item\"\n"
		"  limit link  optional \"none\"  priority -3\n"
		"  when $mode != \"no thing\"  dir ${mode}/x  env A=$cc\n"
		"node count\n"
		"  needs compile\n"
		"  redis SET \"builds of $cc\" \"a$$b\\t\\$\\\"\\\\\" $compile\n");
	struct dagfile_node *compile = find(file, "compile");
	struct dagfile_node *count = find(file, "count");

	CHECK_STR(file->name, "build");
	CHECK_STR(file->server, "redis://127.0.0.1:6379");
	CHECK_EQ(file->input_count, 4);
	CHECK_STR(file->inputs[0].value, "gcc");
	CHECK(!file->inputs[1].value);
	CHECK_STR(file->inputs[2].value, "-O2 -g # no comment");
	CHECK_STR(file->inputs[3].value, "");
	CHECK_EQ(file->limits->max, 3);
	CHECK_EQ(file->node_count, 3);
	CHECK_STR(find(file, "scan")->lines->text, "find src -name '*.c'  # the shell's");
	CHECK(compile->each);
	CHECK_EQ(compile->refs->index, 0);
	CHECK_EQ(compile->timeout_ns, 1500 * WEFT_MS);
	CHECK_EQ(compile->backoff_ns, 100 * WEFT_MS);
	CHECK_EQ(compile->retries, 2);
	CHECK_EQ(compile->priority, -3);
	CHECK_STR(compile->limit, "link");
	CHECK_STR(compile->fallback, "none");
	CHECK_EQ(compile->test, DAGFILE_OTHER);
	CHECK_EQ(compile->dir->pieces->kind, DAGFILE_INPUT);
	CHECK_STR(compile->dir->pieces->next->text, "/x");
	CHECK_STR(compile->envs->name, "A");
	CHECK_EQ(compile->output, DAGFILE_OUTPUT_TEXT);
	CHECK_EQ(count->output, DAGFILE_OUTPUT_SHOW);
	CHECK_STR(count->words->next->next->pieces->text, "a$b\t$\"\\");
	CHECK_EQ(count->words->next->next->next->pieces->kind, DAGFILE_SOURCE);
	dagfile_free(file);
}

TEST(several_run_lines_are_one_script)
{
	struct dagfile *file = parse_well("node a\nrun  cd x\n\n# no\nrun ls\n");

	CHECK_STR(file->nodes[0].lines->text, "cd x");
	CHECK_STR(file->nodes[0].lines->next->text, "ls");
	CHECK(!file->nodes[0].lines->next->next);
	dagfile_free(file);
}

TEST(unused_output_is_shown_and_used_output_is_kept)
{
	struct dagfile *file = parse_well("node a\nrun x\nnode b\nneeds a\nrun x\nnode c\nafter b\n"
	                                  "node d\nrun x\nnode e\nrun x\nstdin d\noutput none\n");

	CHECK_EQ(find(file, "a")->output, DAGFILE_OUTPUT_TEXT);
	CHECK_EQ(find(file, "b")->output, DAGFILE_OUTPUT_SHOW);
	CHECK_EQ(find(file, "c")->output, DAGFILE_OUTPUT_NONE);
	CHECK_EQ(find(file, "d")->output, DAGFILE_OUTPUT_TEXT);
	CHECK_EQ(find(file, "e")->output, DAGFILE_OUTPUT_NONE);
	dagfile_free(file);
}

TEST(order_puts_each_node_after_its_dependencies)
{
	struct dagfile *file = parse_well("node a\nafter c b\nnode b\nrun x\n"
	                                  "after c\nnode c\nrun x\n");

	CHECK_EQ(file->order[0], 2);
	CHECK_EQ(file->order[1], 1);
	CHECK_EQ(file->order[2], 0);
	dagfile_free(file);
}

TEST(crlf_and_a_missing_last_newline_are_accepted)
{
	struct dagfile *file = parse_well("node a\r\n  run x y\r\n  timeout 1s");

	CHECK_STR(file->nodes[0].lines->text, "x y");
	CHECK_EQ(file->nodes[0].timeout_ns, WEFT_S);
	dagfile_free(file);
}

TEST(times_have_a_unit)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = {
		{ "1us", 1000 },        { "250ms", 250 * WEFT_MS }, { "1.5s", 1500 * WEFT_MS },
		{ "2m", 120 * WEFT_S }, { "1h", 3600 * WEFT_S },    { "0.001s", WEFT_MS },
	};
	static const char *const wrong[] = { "",    "1",   "s",    "-1s",       "1 s",     "0s",
		                             "1.s", ".5s", "1sec", "99999999s", "1.2345s", "0x1s" };
	uint64_t ns;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		CHECK(dagfile_parse_time(times[i].text, &ns));
		CHECK_EQ(ns, times[i].ns);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!dagfile_parse_time(wrong[i], &ns));
}

/* --- mistakes --------------------------------------------------------------- */

TEST(mistakes_in_words_are_reported_with_their_position)
{
	check_errors("node a\nrun x\n  dir \"x\n", "3:7: the quotes are not closed\n");
	check_errors("node a\nredis \"x\n", "2:7: the quotes are not closed\n");
	check_errors("node a\nrun x\ndir \"x\\y\"\n",
	             "3:7: a backslash in quotes must be followed by one of \" \\ $ n t\n");
}

TEST(mistakes_in_statements_are_reported_with_their_position)
{
	check_errors("what is this\nnode a\nrun x\n",
	             "1:1: this line must begin with dag, input, limit, server or node\n");
	check_errors("node a\nrun x\n  jump 3\n", "3:3: unknown option or statement\n");
	check_errors("input a = b c\nnode x\nrun y\n",
	             "1:13: unexpected word; put text with blanks in quotes\n");
	check_errors("node a\nrun x\ntimeout 1\n",
	             "3:9: the timeout must be a number above 0 with us, ms, s, m or h\n");
	check_errors("node a\nrun x\nretries 1001\n",
	             "3:9: the count of retries must be a number from 0 to 1000\n");
	check_errors("node a\nrun x\nretries 1 retries 1\n",
	             "3:11: the node already has the option retries\n");
	check_errors("node a\nrun x\npriority 1x\n",
	             "3:10: the priority must be a number from -1000 to 1000\n");
	check_errors("node a\nrun x\noutput all\n",
	             "3:8: the output must be text, lines, show or none\n");
	check_errors("node a\nrun x\nenv A B\n", "3:5: a variable is set by: env NAME=VALUE\n");
	check_errors("node a\nrun x\ndir\n", "3:4: a folder is missing\n");
	check_errors("node a\n  run\n  run x\n", "2:6: a command is missing\n");
	check_errors("limit a 3\nnode a\nrun x\n",
	             "1:9: a limit is declared as: limit NAME = NUMBER\n");
	check_errors("limit a = 0\nnode a\nrun x\n",
	             "1:11: the limit must be a number from 1 to 1024\n");
	check_errors("dag a\ndag b\nnode a\nrun x\n",
	             "2:5: its name was already given in line 1\n");
	check_errors("node 1a\nrun x\n",
	             "1:6: the name of the node must consist of letters, digits and _, "
	             "not begin with a digit, and have at most 64 bytes\n");
	check_errors("", "1:1: the file has no nodes\n");
}

TEST(mistakes_in_variables_are_reported_with_their_position)
{
	check_errors("node a\nredis GET $b\n", "2:11: there is no node b, and no input\n");
	check_errors("node a\nredis GET x$\n",
	             "2:12: a name must follow the dollar sign; write $$ for a literal one\n");
	check_errors("input b =\nnode a\nredis GET ${b\n",
	             "3:11: a name must follow the dollar sign; write $$ for a literal one\n");
	check_errors("input b = $c\nnode a\nrun x\n",
	             "1:11: the value cannot contain variables; write $$ for a dollar sign\n");
}

TEST(script_that_uses_a_node_it_does_not_need_is_reported)
{
	check_errors("node b\nrun x\nnode a\nrun x; echo \"$b\"\n",
	             "4:14: $b is the value of a node that this one does not need: add needs b\n");
	check_errors("node b\nrun x\nnode a\nafter b\nrun x ${b}\n",
	             "5:7: $b is the value of a node that this one does not need: add needs b\n");
	dagfile_free(parse_well("node b\nrun x\nnode a\nrun x '$b' \\$b $$b\n"
	                        "run x \"a'\" 'x\nrun $b' $HOME $bb\n"));
}

TEST(mistakes_in_names_are_reported_with_their_position)
{
	check_errors("node a\nrun x\nneeds b\n", "3:7: there is no node b\n");
	check_errors("node a each b\nrun x\n", "1:13: there is no node b, and no input\n");
	check_errors("input b = 1\nnode a\nrun x\nafter b\n",
	             "4:7: b is an input; every node can use it without needs or after\n");
	check_errors("node a\nrun x\nnode a\nrun y\n", "3:6: a is already defined in line 1\n");
	check_errors("input a = 1\nnode a\nrun y\n", "2:6: a is already defined in line 1\n");
	check_errors("node item\nrun y\n",
	             "1:6: the name item is reserved for the items of each\n");
	check_errors("node a\nrun x\nlimit b\n",
	             "3:7: there is no limit b: declare it as limit b = NUMBER\n");
	check_errors("node a\nredis GET $item\n",
	             "2:11: there is no $item in a node without each\n");
	check_errors(
		"input l =\nnode a each l\nrun x\nwhen $item\n",
		"4:6: there is no $item in a condition, which is evaluated once for all items\n");
}

TEST(outputs_that_do_not_fit_their_use_are_reported)
{
	check_errors("node a\nrun x\nnode b each a\nrun x\n",
	             "3:13: a is not a list: give it the option output lines\n");
	check_errors("node a\nrun x\noutput none\nnode b\nneeds a\nrun x\n",
	             "5:7: the output of a is not kept; write after a to wait for it\n");
	check_errors("node a\nrun x\nnode c\nafter a\nnode b\nneeds c\nrun x\n",
	             "6:7: c has no value; write after c to wait for it\n");
	check_errors("input l =\nnode a each l\nrun x\noutput lines\n",
	             "4:8: with each the output is already a list, one value for "
	             "each item: use output text\n");
	check_errors("node a\nrun x\nredis GET a\n", "1:6: a has both run and redis\n");
	check_errors("node a\noptional\n", "1:6: a has nothing to do: run or redis is missing\n");
	check_errors("node a\nrun x\noptional \"b\"\n",
	             "1:6: a has a fallback value, but no node uses its value\n");
}

TEST(cycles_are_reported_with_their_path)
{
	check_errors("node a\nrun x\nneeds a\n", "3:7: the dependencies form a cycle: a -> a\n");
	check_errors("node a\nrun x\nafter b\nnode b\nrun x\nafter c\n"
	             "node c\nrun x\nafter a\nnode d\nrun x\nafter a\n",
	             "9:7: the dependencies form a cycle: a -> b -> c -> a\n");
}

TEST(several_mistakes_are_reported_in_order)
{
	check_errors("node a\n  run x\n  timeout x\n  retries y\n"
	             "node b\n  needs nothing\n  run x\n  jump\n",
	             "3:11: the timeout must be a number above 0 with us, ms, s, m or h\n"
	             "4:11: the count of retries must be a number from 0 to 1000\n"
	             "6:9: there is no node nothing\n"
	             "8:3: unknown option or statement\n");
}

/* --- limits ----------------------------------------------------------------- */

TEST(first_mistakes_are_kept_and_all_are_counted)
{
	struct dagfile *file;
	char text[600] = "";
	uint32_t kept = 0;

	for (int i = 0; i < 50; i++)
		memcpy(text + i * 6, "wrong\n", 7);
	file = parse(text);
	for (struct dagfile_error *e = file->errors; e; e = e->next)
		kept++;
	CHECK_EQ(file->error_count, 50);
	CHECK_EQ(kept, DAGFILE_ERRORS_MAX);
	dagfile_free(file);
}

/* The text is `head`, filled up to `size` with `byte`. */
static void
check_filled(const char *head, char byte, size_t size, const char *said)
{
	char *text = malloc(size + 1);

	CHECK(text);
	memset(text, byte, size);
	memcpy(text, head, strlen(head));
	text[size] = '\0';
	check_errors(text, said);
	free(text);
}

TEST(files_lines_and_names_have_a_maximum_size)
{
	check_filled("node a\nrun x", '\n', DAGFILE_BYTES_MAX, "");
	check_filled("node a\nrun x", '\n', DAGFILE_BYTES_MAX + 1,
	             "1:1: the file is larger than 16777216 bytes\n");
	check_filled("node a\nrun x", 'x', DAGFILE_LINE_MAX + 7, "");
	check_filled("node a\nrun x\nrun x", 'x', DAGFILE_LINE_MAX + 14,
	             "3:1: the line is longer than 65536 bytes\n");
	check_errors("node a23456789_123456789_123456789_123456789_123456789_"
	             "12345678901234\nrun x\n",
	             "");
	check_errors("node a23456789_123456789_123456789_123456789_123456789_"
	             "123456789012345\nrun x\n",
	             "1:6: the name of the node must consist of letters, digits and _, "
	             "not begin with a digit, and have at most 64 bytes\n");
}

/* The text is `head` and `max` times `word`, which is valid, and then with one `word` more. */
static void
check_repeated(const char *head, const char *word, uint32_t max, const char *said)
{
	size_t room = strlen(head) + (size_t)max * strlen(word) + 100, size;
	char *text = malloc(room);

	CHECK(text);
	size = (size_t)snprintf(text, room, "%s", head);
	for (uint32_t i = 0; i < max; i++)
		size += (size_t)snprintf(text + size, room - size, "%s", word);
	check_errors(text, "");
	(void)snprintf(text + size, room - size, "%s", word);
	check_errors(text, said);
	free(text);
}

TEST(total_edges_and_words_have_a_limit)
{
	check_repeated("node a\nrun x\nnode b\nrun x\n", "after a\n", DAGFILE_REFS_MAX,
	               "1000005:7: the nodes have more than 1000000 dependencies in all\n");
	check_repeated("node a\nrun x\n", "env A=x\n", DAGFILE_PIECES_MAX - 1,
	               "2000002:7: the words of the file have more than 2000000 pieces in all\n");
}

TEST(nul_byte_is_a_mistake)
{
	static const char text[] = "node a\nrun x\nrun y\0z\n";
	struct dagfile *file = dagfile_parse(text, sizeof(text) - 1);

	CHECK_EQ(file->error_count, 1);
	CHECK_EQ(file->errors->at.line, 3);
	dagfile_free(file);
}

TEST(at_most_sixteen_different_priorities_are_allowed)
{
	char text[2000] = "";
	size_t size = 0;

	for (int i = 0; i < 17; i++) {
		if (i == 16)
			check_errors(text, "");
		size += (size_t)snprintf(text + size, sizeof(text) - size,
		                         "node n%d\nrun x\npriority %d\n", i, i);
	}
	check_errors(text, "49:6: more than 16 different priorities\n");
}

/* The chain stands for all inputs for which a parser could take quadratic time. */
TEST(file_with_100000_nodes_is_parsed_in_linear_time)
{
	size_t room = (size_t)4 << 20, size = 0;
	char *text = malloc(room);
	struct dagfile *file;

	CHECK(text);
	for (int i = 0; i < 100000; i++)
		size += (size_t)snprintf(text + size, room - size, "node n%d\nrun x $n%d\n%s%d\n",
		                         i, i ? i - 1 : 100001, i ? "needs n" : "priority ",
		                         i ? i - 1 : 0);
	file = dagfile_parse(text, size);
	CHECK_EQ(file->error_count, 0);
	CHECK_EQ(file->node_count, 100000);
	CHECK_EQ(file->order[99999], 99999);
	dagfile_free(file);
	free(text);
}
