/* script.c - weft run and weft eval: run a script file, or code from the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/js.h>
#include <weft/weft.h>
#include "verbs.h"

struct program {
	weft_loop *loop;
	weft_js *js;
	const char *file; /* NULL: evaluate the code in the first argument */
	bool exited;      /* the script called exit: errors are no longer reported */
	int rc;
};

static void
script_notify(struct program *program, const char *text)
{
	if (program->exited)
		return;
	fflush(stdout);
	fprintf(stderr, "Uncaught %s\n", text);
	weft_loop_break(program->loop);
}

static bool
on_error(weft_js *js, int error, const char *text, void *arg)
{
	(void)js;
	(void)error;
	script_notify(arg, text);
	return false;
}

static void
on_exit_called(weft_js *js, int status, void *arg)
{
	struct program *program = arg;

	(void)js;
	(void)status;
	program->exited = true;
	weft_loop_break(program->loop);
}

/* Evaluates the program's first argument and prints the result as console.log does.  The script
 * prints the result itself because a weft_value cannot distinguish true from 1, or null from
 * undefined. */
static const char evaluate[] =
	"(() => {"
	" const show = (value) => { if (value !== undefined) console.log(value); };"
	" const value = (0, eval)(process.argv[1]);"
	" return value instanceof Promise ? value.then(show) : show(value);"
	" })()";

/* The script dropped the promise, so it can never settle.  That is not an error: other work
 * continues. */
static bool
is_forgotten(const weft_value *reason)
{
	return reason->type == &weft_type_error && reason->as.integer == WEFT_ECLOSED
	       && strcmp(weft_detail(), "the script dropped its promise without settling it") == 0;
}

/* A rejection reason that is not an error is printed as String() formats it. */
static int
on_rejected(const weft_value *in, weft_value *out, void *arg)
{
	struct program *program = arg;
	weft_value text = { 0 };

	(void)out;
	if (is_forgotten(in))
		return 0;
	program->rc = WEFT_ESCRIPT;
	if (in->type == &weft_type_error)
		script_notify(program, weft_detail());
	else if (weft_js_call(program->js, "String", in, 1, &text) == 0
	         && text.type == &weft_type_text)
		script_notify(program, text.as.ptr);
	else
		script_notify(program, "an error without a message");
	weft_value_drop(&text);
	return 0;
}

/* Takes ownership of `promise`. */
static void
script_wait_for(struct program *program, weft_promise *promise)
{
	promise = weft_promise_then(promise, NULL, on_rejected, program);
	if (!promise) {
		program->rc = WEFT_ENOMEM;
		script_notify(program, "out of memory");
	}
	(void)weft_promise_unref(promise);
}

/* Runs as a callback of the loop, like everything the script does later. */
static void
script_begin(void *arg)
{
	struct program *program = arg;
	weft_value out = { 0 };

	if (program->file)
		program->rc = weft_js_load(program->js, program->file, NULL);
	else
		program->rc = weft_js_eval(program->js, evaluate, "weft:eval", &out);
	if (program->rc < 0)
		script_notify(program, weft_detail());
	else if (out.type == &weft_type_promise)
		script_wait_for(program, weft_promise_ref(out.as.ptr));
	weft_value_drop(&out);
}

static int
script_run(struct program *program)
{
	if (weft_loop_post(program->loop, script_begin, program) < 0
	    || weft_loop_run(program->loop) < 0)
		return 1;
	if (program->rc < 0 && !program->exited)
		return 1;
	return weft_js_status(program->js);
}

static int
script(struct program *program, char **words)
{
	weft_js_opts opts = { .grants = WEFT_JS_FILES | WEFT_JS_NET,
		              .memory_bytes = (size_t)4 << 30,
		              .stack_bytes = (size_t)1 << 20,
		              .run_ns = WEFT_NEVER,
		              .on_error = on_error,
		              .on_exit = on_exit_called,
		              .arg = program };
	int status = 1;

	words[-1] = words[-2]; /* main()'s argv: the program's name takes the place of the verb */
	opts.argv = (const char *const *)words - 1;
	program->loop = weft_loop_new(NULL);
	program->js = program->loop ? weft_js_new(program->loop, &opts) : NULL;
	if (program->js)
		status = script_run(program);
	else
		fprintf(stderr, "weft: %s\n", weft_detail());
	fflush(stdout);
	exit(status & 0xff); /* the process frees the rest, and faster */
}

/* `words` are the arguments of the verb, of which the first is the file or the code. */
static int
script_start(const struct args_verb *verb, int argc, char **words)
{
	bool runs = verb == &verb_run;
	struct program program = { .file = runs ? words[0] : NULL };

	if (argc < 1)
		return args_misused(verb, "%s is missing", runs ? "FILE.js" : "CODE");
	if (strcmp(words[0], "--help") == 0)
		return args_help(verb);
	if (runs && words[0][0] == '-')
		return args_misused(verb, "unknown option %s; to run a file of that name, use ./%s",
		                    words[0], words[0]);
	return script(&program, words);
}

static int
run_file(int argc, char **argv)
{
	return script_start(&verb_run, argc, argv);
}

static int
run_code(int argc, char **argv)
{
	return script_start(&verb_eval, argc, argv);
}

const struct args_verb verb_run = {
	.name = "run",
	.run = run_file,
	.usage = "run FILE.js [ARGUMENT...]",
	.summary = "run the module in FILE.js until it has no work left",
	.about = "Run the module in FILE.js until it has no work left.\n"
		 "process.argv has the arguments.  Exit status: the script's;\n"
		 "1 after an uncaught error.",
};

const struct args_verb verb_eval = {
	.name = "eval",
	.run = run_code,
	.usage = "eval CODE [ARGUMENT...]",
	.summary = "run CODE as a script and print its result",
	.about = "Run CODE as a script and print its result; a promise is awaited first.",
};
