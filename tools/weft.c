/* weft.c - the program: run a script, or a line of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/js.h>
#include <weft/weft.h>

struct program {
	weft_loop *loop;
	weft_js *js;
	const char *file, *code; /* one of them */
	int rc;
};

static int
usage(FILE *to, int status)
{
	fprintf(to,
	        "usage: weft run FILE.js [ARGUMENT...]\n"
	        "       weft eval CODE [ARGUMENT...]\n"
	        "       weft --version | --help\n"
	        "\n"
	        "  run   run the module in FILE.js until nothing of it is left\n"
	        "  eval  run CODE as a script, and print what it comes to\n");
	return status;
}

static bool
on_error(weft_js *js, int error, const char *text, void *arg)
{
	struct program *program = arg;

	(void)js;
	(void)error;
	fflush(stdout);
	fprintf(stderr, "Uncaught %s\n", text);
	weft_loop_leave(program->loop);
	return false;
}

static void
on_exit_called(weft_js *js, int status, void *arg)
{
	struct program *program = arg;

	(void)js;
	(void)status;
	weft_loop_leave(program->loop);
}

static void
print(const weft_value *value)
{
	if (value->type == &weft_type_integer)
		printf("%lld\n", (long long)value->as.integer);
	else if (value->type == &weft_type_number)
		printf("%.17g\n", value->as.number);
	else if (value->type == &weft_type_text)
		puts(value->as.ptr);
}

/* In a callback of the loop, as all that the script does later. */
static void
begin(void *arg)
{
	struct program *program = arg;
	weft_value out = { 0 };

	if (program->file)
		program->rc = weft_js_load(program->js, program->file, NULL);
	else
		program->rc = weft_js_eval(program->js, program->code, "[eval]",
		                           &out);
	if (program->rc < 0 && program->rc != WEFT_ESHUTDOWN) {
		fprintf(stderr, "Uncaught %s\n", weft_detail());
		weft_loop_leave(program->loop);
		return;
	}
	print(&out);
	weft_value_drop(&out);
}

static int
run(struct program *program)
{
	int status;

	if (weft_loop_post(program->loop, begin, program) < 0
	    || weft_loop_run(program->loop) < 0)
		return 1;
	status = weft_js_status(program->js);
	return program->rc < 0 && program->rc != WEFT_ESHUTDOWN ? 1 : status;
}

int
main(int argc, char **argv)
{
	struct program program = { 0 };
	weft_js_opts opts = { .grants = WEFT_JS_FILES | WEFT_JS_NET,
		              .memory_bytes = (size_t)4 << 30,
		              .stack_bytes = (size_t)1 << 20,
		              .run_ns = WEFT_NEVER,
		              .on_error = on_error,
		              .on_exit = on_exit_called,
		              .arg = &program };
	int status = 1;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("weft %s\n", weft_version()) < 0;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	if (argc < 3)
		return usage(stderr, 2);
	if (strcmp(argv[1], "run") == 0)
		program.file = argv[2];
	else if (strcmp(argv[1], "eval") == 0)
		program.code = argv[2];
	else
		return usage(stderr, 2);
	argv[1] = argv[0];
	opts.argv = (const char *const *)argv + 1;
	program.loop = weft_loop_new(NULL);
	program.js = program.loop ? weft_js_new(program.loop, &opts) : NULL;
	if (program.js)
		status = run(&program);
	else
		fprintf(stderr, "weft: %s\n", weft_detail());
	fflush(stdout);
	exit(status & 0xff); /* all else ends with the process, and sooner */
}
