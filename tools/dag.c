/* dag.c - weft dag: check, draw and run DAG files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dag/run.h"
#include "verbs.h"

static const char help[] =
	"usage: weft dag run [OPTION...] FILE [NAME=VALUE...]\n"
	"       weft dag trace [OPTION...] [-o OUT] FILE [NAME=VALUE...]\n"
	"       weft dag check FILE\n"
	"       weft dag dot [--json] FILE\n"
	"\n"
	"  run    run the nodes of a DAG file, each after its dependencies\n"
	"  trace  run, and write a Chrome trace of the nodes; default FILE.trace.json\n"
	"  check  report errors in the file\n"
	"  dot    print the graph for Graphviz, or as JSON\n"
	"\n"
	"  --jobs N         run at most N commands at once; default: the number of CPUs\n"
	"  --deadline TIME  for the whole run, such as 90s, 5m or 1h\n"
	"  --grace TIME     between SIGTERM and SIGKILL when commands are ended; default 2s\n"
	"  --keep-going     after a failure, run all nodes that do not depend on it\n"
	"  --quiet          print only the output of commands, and failures\n"
	"  --resume         reuse the results of the last, failed run, from FILE.state\n"
	"  --redis URL      server for redis nodes; overrides the file's\n"
	"  --trace OUT      also write a Chrome trace\n"
	"\n"
	"NAME=VALUE sets an input of the file.  Exit status: 0; 1 if a node has failed; 2 if\n"
	"the file or the arguments are wrong; 130 after SIGINT; a second SIGINT kills.\n";

/* --- the file --------------------------------------------------------------- */

/* Returns the whole file, or DAGFILE_BYTES_MAX + 1 bytes if it is larger.  Returns NULL on
 * failure, after printing the error. */
static char *
read_whole(const char *path, size_t *out)
{
	size_t room = DAGFILE_BYTES_MAX + 1, size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = fd >= 0 ? malloc(room) : NULL;
	ssize_t n = bytes ? 1 : -1;

	while (n > 0 && size < room) {
		n = read(fd, bytes + size, room - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (n < 0) {
		fprintf(stderr, "weft: %s: %s\n", path, strerror(errno));
		free(bytes);
		bytes = NULL;
	}
	if (fd >= 0)
		(void)close(fd);
	*out = size;
	return bytes;
}

static void
tell_errors(const struct dagrun *run)
{
	const struct dagfile *file = run->file;

	for (struct dagfile_error *e = file->errors; e; e = e->next)
		fprintf(stderr, "%s:%u:%u: %s\n", run->path, e->at.line, e->at.column, e->text);
	if (file->error_count > DAGFILE_ERRORS_MAX)
		fprintf(stderr, "%s: and %u more\n", run->path,
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
dag_load(struct dagrun *run)
{
	size_t size;
	char *bytes = read_whole(run->path, &size);

	if (!bytes)
		return 2;
	run->file = dagfile_parse(bytes, size);
	run->folder = folder_of(run->path);
	free(bytes);
	if (!run->file || !run->folder) {
		fprintf(stderr, "weft: out of memory\n");
		return 1;
	}
	tell_errors(run);
	if (run->file->error_count > 0)
		return 2;
	run->values = calloc(run->file->input_count + 1, sizeof(char *));
	if (!run->values)
		return 1;
	for (uint32_t i = 0; i < run->file->input_count; i++)
		run->values[i] = run->file->inputs[i].value;
	return 0;
}

static void
unload(struct dagrun *run)
{
	if (run->file)
		graph_free(run);
	dagfile_free(run->file);
	free(run->values);
	free(run->folder);
}

/* --- the command line ------------------------------------------------------- */

static int
misused(const char *format, const char *word)
{
	fputs("weft dag: ", stderr);
	fprintf(stderr, format, word);
	fputs("\n\n", stderr);
	fputs(help, stderr);
	return 2;
}

static bool
read_jobs(const char *text, uint32_t *out)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number == 0 || number > 10000)
		return false;
	*out = (uint32_t)number;
	return true;
}

/* Reads an option that takes a value.  Returns false if either is not valid. */
static bool
read_value(struct dagrun_opts *opts, const char *name, const char *value)
{
	if (strcmp(name, "--jobs") == 0)
		return read_jobs(value, &opts->jobs);
	if (strcmp(name, "--deadline") == 0)
		return dagfile_parse_time(value, &opts->deadline_ns);
	if (strcmp(name, "--grace") == 0)
		return dagfile_parse_time(value, &opts->grace_ns);
	if (strcmp(name, "--trace") == 0 || strcmp(name, "-o") == 0)
		opts->trace = value;
	else if (strcmp(name, "--redis") == 0)
		opts->server = value;
	else
		return false;
	return true;
}

static bool
read_flag(struct dagrun_opts *opts, const char *name)
{
	if (strcmp(name, "--keep-going") == 0)
		opts->keep_going = true;
	else if (strcmp(name, "--quiet") == 0)
		opts->quiet = true;
	else if (strcmp(name, "--resume") == 0)
		opts->resume = true;
	else
		return false;
	return true;
}

/* Options may be anywhere.  The first other argument is the file; the rest are inputs, which
 * read_words() collects here. */
struct words {
	char **inputs;
	int count;
};

static int
read_words(struct dagrun *run, int argc, char **argv, struct words *words)
{
	words->inputs = argv;
	for (int i = 0; i < argc; i++) {
		const char *word = argv[i];

		if (*word == '-') {
			if (read_flag(&run->opts, word))
				continue;
			if (i + 1 == argc)
				return misused(
					"unknown command or option, or missing or invalid value: "
					"%s",
					word);
			if (!read_value(&run->opts, word, argv[++i]))
				return misused(
					"unknown command or option, or missing or invalid value: "
					"%s",
					word);
		} else if (!run->path) {
			run->path = word;
		} else {
			words->inputs[words->count++] = argv[i];
		}
	}
	return run->path ? 0 : misused("%s is missing", "FILE");
}

static int
set_input(struct dagrun *run, const char *word)
{
	const struct dagfile *file = run->file;
	const char *equals = strchr(word, '=');
	size_t size = equals ? (size_t)(equals - word) : 0;

	if (!equals)
		return misused("%s is not NAME=VALUE", word);
	for (uint32_t i = 0; i < file->input_count; i++)
		if (strncmp(file->inputs[i].name, word, size) == 0 && !file->inputs[i].name[size]) {
			run->values[i] = equals + 1;
			return 0;
		}
	fprintf(stderr, "weft: %s has no input %.*s\n", run->path, (int)size, word);
	return 2;
}

static int
set_inputs(struct dagrun *run, const struct words *words)
{
	int status = 0;

	for (int i = 0; i < words->count && status == 0; i++)
		status = set_input(run, words->inputs[i]);
	for (uint32_t i = 0; i < run->file->input_count && status == 0; i++)
		if (!run->values[i]) {
			fprintf(stderr, "%s:%u:%u: the input %s has no value: pass %s=VALUE\n",
			        run->path, run->file->inputs[i].at.line,
			        run->file->inputs[i].at.column, run->file->inputs[i].name,
			        run->file->inputs[i].name);
			status = 2;
		}
	return status;
}

/* --- the verbs -------------------------------------------------------------- */

static int
make_graph(struct dagrun *run)
{
	int rc = graph_make(run);

	if (rc == 0)
		return 0;
	fprintf(stderr, "%s: %s\n", run->path, weft_detail());
	return rc == WEFT_ENOMEM ? 1 : 2;
}

static int
verb_dag_run(struct dagrun *run, int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct words words = { 0 };
	int status;

	run->opts.jobs = cpus > 0 ? (uint32_t)cpus : 1;
	run->opts.grace_ns = 2 * WEFT_S;
	status = read_words(run, argc, argv, &words);
	if (status == 0)
		status = dag_load(run);
	if (status == 0)
		status = set_inputs(run, &words);
	if (status == 0)
		status = make_graph(run);
	return status == 0 ? dagrun_run(run) : status;
}

static int
verb_dag_trace(struct dagrun *run, int argc, char **argv)
{
	static char path[4096];
	const char *file = NULL;

	for (int i = 0; i < argc && !file; i++)
		if (*argv[i] != '-')
			file = argv[i];
		else if (!read_flag(&(struct dagrun_opts){ 0 }, argv[i]))
			i++;
	if (file && strlen(file) < sizeof(path) - 32) {
		(void)snprintf(path, sizeof(path), "%s.trace.json", file);
		run->opts.trace = path;
	}
	return verb_dag_run(run, argc, argv);
}

/* check and dot do not run anything, so inputs without a value are empty. */
static int
load_only(struct dagrun *run, const char *path)
{
	int status;

	run->path = path;
	status = dag_load(run);
	for (uint32_t i = 0; status == 0 && i < run->file->input_count; i++)
		if (!run->values[i])
			run->values[i] = "";
	return status == 0 ? make_graph(run) : status;
}

static int
verb_dag_check(struct dagrun *run, int argc, char **argv)
{
	int status;

	if (argc != 1 || *argv[0] == '-')
		return misused("%s takes one file", "check");
	status = load_only(run, argv[0]);
	if (status == 0)
		printf("%s: %u nodes\n", run->path, run->file->node_count);
	return status;
}

static int
verb_dag_dot(struct dagrun *run, int argc, char **argv)
{
	bool json = argc > 0 && strcmp(argv[0], "--json") == 0;
	weft_value text = { 0 };
	int status;

	if (argc != 1 + json || *argv[json] == '-')
		return misused("%s takes one file", "dot");
	status = load_only(run, argv[json]);
	if (status != 0)
		return status;
	if (weft_dag_write(run->dag, json ? WEFT_DAG_JSON : WEFT_DAG_DOT, &text) < 0) {
		fprintf(stderr, "weft: %s\n", weft_detail());
		return 1;
	}
	status = fputs(text.as.ptr, stdout) < 0 || fflush(stdout) != 0;
	weft_value_drop(&text);
	return status;
}

int
verb_dag(int argc, char **argv)
{
	static const struct {
		const char *word;
		int (*run)(struct dagrun *run, int argc, char **argv);
	} words[] = {
		{ "run", verb_dag_run },
		{ "trace", verb_dag_trace },
		{ "check", verb_dag_check },
		{ "dot", verb_dag_dot },
	};
	struct dagrun run = { .state = { .fd = -1 } };
	int status;

	if (argc < 3)
		return misused("%s is missing", "run, trace, check or dot");
	if (strcmp(argv[2], "--help") == 0)
		return fputs(help, stdout) < 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(argv[2], words[i].word) == 0) {
			status = words[i].run(&run, argc - 3, argv + 3);
			unload(&run);
			return status;
		}
	return misused("unknown command or option, or missing or invalid value: %s", argv[2]);
}
