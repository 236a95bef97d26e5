/* dag.c - weft dag: check, draw and run DAG files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dag/run.h"
#include "verbs.h"

static struct dagrun run = { .state = { .fd = -1 } };

/* --- the file --------------------------------------------------------------- */

/* Reads the whole file, or DAGFILE_BYTES_MAX + 1 bytes if it is larger.  Returns 0, or an exit
 * status after printing the error. */
static int
read_whole(const char *path, struct bytes *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : bytes_read(out, fd, DAGFILE_BYTES_MAX + 1);

	if (fd >= 0)
		(void)close(fd);
	if (rc < 0)
		fprintf(stderr, "weft: %s: %s\n", path, strerror(-rc));
	return rc < 0 ? 2 : 0;
}

static void
print_errors(void)
{
	const struct dagfile *file = run.file;

	for (struct dagfile_error *e = file->errors; e; e = e->next)
		fprintf(stderr, "%s:%u:%u: %s\n", run.path, e->at.line, e->at.column, e->text);
	if (file->error_count > DAGFILE_ERRORS_MAX)
		fprintf(stderr, "%s: and %u more\n", run.path,
		        file->error_count - DAGFILE_ERRORS_MAX);
}

static char *
folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Reads and parses the file.  Returns 0 or an exit status. */
static int
dag_load(void)
{
	struct bytes text = { 0 };
	int status = read_whole(run.path, &text);

	if (status == 0) {
		run.file = dagfile_parse(text.data ? text.data : "", text.size);
		run.folder = folder_of(run.path);
	}
	bytes_free(&text);
	if (status != 0)
		return status;
	if (!run.file || !run.folder) {
		fprintf(stderr, "weft: out of memory\n");
		return 1;
	}
	print_errors();
	if (run.file->error_count > 0)
		return 2;
	run.values = calloc(run.file->input_count + 1, sizeof(char *));
	if (!run.values)
		return 1;
	for (uint32_t i = 0; i < run.file->input_count; i++)
		run.values[i] = run.file->inputs[i].value;
	return 0;
}

static void
unload(void)
{
	if (run.file)
		graph_free(&run);
	dagfile_free(run.file);
	free(run.values);
	free(run.folder);
}

/* --- the command line ------------------------------------------------------- */

#define RUNS "run trace"

static const char *
read_time(const struct args_option *option, const char *value)
{
	return dagfile_parse_time(value, option->out)
	               ? NULL
	               : "the value must be a number above 0 with us, ms, s, m or h";
}

static bool dot_json;

static const struct args_option options[] = {
	{ "--jobs", "N", "run at most N commands at once; default: the number of CPUs", args_number,
	  &run.opts.jobs, 1, 10000, RUNS },
	{ "--deadline", "TIME", "for the whole run, such as 90s, 5m or 1h", read_time,
	  &run.opts.deadline_ns, 0, 0, RUNS },
	{ "--grace", "TIME", "between SIGTERM and SIGKILL when commands are ended; default 2s",
	  read_time, &run.opts.grace_ns, 0, 0, RUNS },
	{ "--keep-going", NULL, "after a failure, run all nodes that do not depend on it",
	  args_flag, &run.opts.keep_going, 0, 0, RUNS },
	{ "--quiet", NULL, "print only the output of commands, and failures", args_flag,
	  &run.opts.quiet, 0, 0, RUNS },
	{ "--resume", NULL, "reuse the results of the last, failed run, from FILE.state", args_flag,
	  &run.opts.resume, 0, 0, RUNS },
	{ "--redis", "URL", "server for redis nodes; overrides the file's", args_text,
	  &run.opts.server, 0, 0, RUNS },
	{ "--trace", "OUT", "also write a Chrome trace", args_text, &run.opts.trace, 0, 0, RUNS },
	{ "-o", "OUT", "the same, for weft dag trace", args_text, &run.opts.trace, 0, 0, RUNS },
	{ "--json", NULL, "print the graph as JSON, not for Graphviz", args_flag, &dot_json, 0, 0,
	  "dot" },
	{ 0 },
};

static int
set_input(const char *word)
{
	const struct dagfile *file = run.file;
	const char *equals = strchr(word, '=');
	size_t size = equals ? (size_t)(equals - word) : 0;

	if (!equals)
		return args_misused(&verb_dag, "%s is not NAME=VALUE", word);
	for (uint32_t i = 0; i < file->input_count; i++)
		if (strncmp(file->inputs[i].name, word, size) == 0 && !file->inputs[i].name[size]) {
			run.values[i] = equals + 1;
			return 0;
		}
	fprintf(stderr, "weft: %s has no input %.*s\n", run.path, (int)size, word);
	return 2;
}

static int
set_inputs(char **words, int count)
{
	int status = 0;

	for (int i = 0; i < count && status == 0; i++)
		status = set_input(words[i]);
	for (uint32_t i = 0; i < run.file->input_count && status == 0; i++)
		if (!run.values[i]) {
			const struct dagfile_input *input = &run.file->inputs[i];

			fprintf(stderr, "%s:%u:%u: the input %s has no value: pass %s=VALUE\n",
			        run.path, input->at.line, input->at.column, input->name,
			        input->name);
			status = 2;
		}
	return status;
}

/* --- the commands ----------------------------------------------------------- */

static int
make_graph(void)
{
	int rc = graph_make(&run);

	if (rc == 0)
		return 0;
	fprintf(stderr, "%s: %s\n", run.path, weft_detail());
	return rc == WEFT_ENOMEM ? 1 : 2;
}

static int
command_run(char **words, int count)
{
	int status = dag_load();

	if (status == 0)
		status = set_inputs(words, count);
	if (status == 0)
		status = make_graph();
	return status == 0 ? dagrun_run(&run) : status;
}

static int
command_trace(char **words, int count)
{
	static char path[4096];

	if (!run.opts.trace) {
		if (snprintf(path, sizeof(path), "%s.trace.json", run.path) >= (int)sizeof(path))
			return args_misused(&verb_dag, "the path of the file is too long");
		run.opts.trace = path;
	}
	return command_run(words, count);
}

/* check and dot do not run anything, so inputs without a value are empty. */
static int
load_only(void)
{
	int status = dag_load();

	for (uint32_t i = 0; status == 0 && i < run.file->input_count; i++)
		if (!run.values[i])
			run.values[i] = "";
	return status == 0 ? make_graph() : status;
}

static int
command_check(char **words, int count)
{
	int status = load_only();

	(void)words, (void)count;
	if (status == 0)
		printf("%s: %u nodes\n", run.path, run.file->node_count);
	return status;
}

static int
command_dot(char **words, int count)
{
	weft_value text = { 0 };
	int status = load_only();

	(void)words, (void)count;
	if (status != 0)
		return status;
	if (weft_dag_write(run.dag, dot_json ? WEFT_DAG_JSON : WEFT_DAG_DOT, &text) < 0) {
		fprintf(stderr, "weft: %s\n", weft_detail());
		return 1;
	}
	status = fputs(text.as.ptr, stdout) < 0 || fflush(stdout) != 0;
	weft_value_drop(&text);
	return status;
}

static const struct command {
	const char *name;
	int (*run)(char **words, int count); /* with the words after the file */
	bool takes_inputs;
} commands[] = {
	{ "run", command_run, true },
	{ "trace", command_trace, true },
	{ "check", command_check, false },
	{ "dot", command_dot, false },
};

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int
run_dag(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct command *command;
	int count, status;

	run.opts.jobs = cpus > 0 ? (uint32_t)cpus : 1;
	run.opts.grace_ns = 2 * WEFT_S;
	if (argc > 0 && *argv[0] != '-' && !find_command(argv[0]))
		return args_misused(&verb_dag, "%s: unknown command", argv[0]);
	count = args_read(&verb_dag, argc, argv);
	if (count < 0)
		return args_status(count);
	command = count > 0 ? find_command(argv[0]) : NULL;
	if (!command)
		return args_misused(&verb_dag, "run, trace, check or dot is missing");
	if (count < 2)
		return args_misused(&verb_dag, "%s: FILE is missing", command->name);
	if (count > 2 && !command->takes_inputs)
		return args_misused(&verb_dag, "%s takes one file", command->name);
	run.path = argv[1];
	status = command->run(argv + 2, count - 2);
	unload();
	return status;
}

const struct args_verb verb_dag = {
	.name = "dag",
	.run = run_dag,
	.usage = "dag run [OPTION...] FILE [NAME=VALUE...]\n"
		 "dag trace [OPTION...] [-o OUT] FILE [NAME=VALUE...]\n"
		 "dag check FILE\n"
		 "dag dot [--json] FILE",
	.summary = "run the commands of a DAG file in dependency order, or check it",
	.about = "  run    run the nodes of a DAG file, each after its dependencies\n"
		 "  trace  run, and write a Chrome trace of the nodes; default FILE.trace.json\n"
		 "  check  report errors in the file\n"
		 "  dot    print the graph for Graphviz, or as JSON",
	.options = options,
	.notes = "NAME=VALUE sets an input of the file.  Exit status: 0; 1 if a node has failed;\n"
		 "2 if the file or the arguments are wrong; 130 after SIGINT;\n"
		 "a second SIGINT kills.",
};
