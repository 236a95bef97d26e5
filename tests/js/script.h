/* script.h - shared by the tests of the JavaScript adapter: an engine whose output is recorded.
 *
 * In a script, say(...) appends its arguments to `said`, as text with a space after each.
 * Errors that the script does not handle are counted, and the first of them is kept.
 */
#ifndef WEFT_TEST_SCRIPT_H
#define WEFT_TEST_SCRIPT_H

#include <weft/js.h>
#include "unit/probe.h"

struct script {
	weft_loop *loop;
	weft_js *js;
	char said[8192];
	int errors, error; /* their number, and the first code */
	char text[2048];
	bool ends; /* the script ends at an unhandled error */
	int exits, status;
};

static inline void
add_said(struct script *script, const weft_value *value)
{
	size_t used = strlen(script->said);
	size_t room = sizeof(script->said) - used;
	int size;

	if (!value->type)
		size = snprintf(script->said + used, room, "none ");
	else if (value->type == &weft_type_text)
		size = snprintf(script->said + used, room, "%s ",
		                (char *)value->as.ptr);
	else if (value->type == &weft_type_integer)
		size = snprintf(script->said + used, room, "%lld ",
		                (long long)value->as.integer);
	else if (value->type == &weft_type_number)
		size = snprintf(script->said + used, room, "%g ",
		                value->as.number);
	else
		size = snprintf(script->said + used, room, "<%s> ",
		                value->type->name);
	CHECK(size > 0 && (size_t)size < room);
}

static inline int
say(weft_js *js, const weft_value *args, size_t count, weft_value *out,
    void *arg)
{
	(void)js;
	(void)out;
	for (size_t i = 0; i < count; i++)
		add_said(arg, &args[i]);
	return 0;
}

static inline bool
on_error(weft_js *js, int error, const char *text, void *arg)
{
	struct script *script = arg;

	(void)js;
	if (script->errors++ == 0) {
		script->error = error;
		snprintf(script->text, sizeof(script->text), "%s", text);
	}
	return !script->ends;
}

static inline void
on_exit_called(weft_js *js, int status, void *arg)
{
	struct script *script = arg;

	(void)js;
	script->exits++;
	script->status = status;
}

static inline void
begin_with(struct script *script, const weft_js_opts *like)
{
	weft_js_opts opts = WEFT_INIT;

	if (like)
		opts = *like;
	if (opts.run_ns == 0) /* no time limit: a busy machine is slow */
		opts.run_ns = WEFT_NEVER;
	opts.on_error = on_error;
	opts.on_exit = on_exit_called;
	opts.arg = script;
	memset(script, 0, sizeof(*script));
	script->loop = weft_loop_new(NULL);
	script->js = weft_js_new(script->loop, &opts);
	CHECK(script->js != NULL);
	OK(weft_js_expose(script->js, "say", false, say, script));
}

static inline void
begin(struct script *script)
{
	begin_with(script, NULL);
}

static inline void
end(struct script *script)
{
	OK(weft_js_free(script->js));
	stop_idle(script->loop);
}

/* Evaluates a script that must succeed. */
static inline void
eval(struct script *script, const char *source)
{
	if (weft_js_eval(script->js, source, "test.js", NULL) < 0)
		test_fail(__FILE__, __LINE__, "%s", weft_detail());
}

/* Evaluates a script, and runs the loop until nothing is left. */
static inline void
run(struct script *script, const char *source)
{
	eval(script, source);
	OK(weft_loop_run(script->loop));
}

/* Runs a script in its own engine.  It must produce exactly `want`, without an unhandled
 * error. */
static inline void
check_says(const char *source, const char *want)
{
	struct script *script = malloc(sizeof(*script));

	begin(script);
	run(script, source);
	CHECK_STR(script->text, "");
	CHECK_STR(script->said, want);
	end(script);
	free(script);
}

/* Evaluates a script that must fail with `error`, and with a text that contains `part`. */
static inline void
check_fails(struct script *script, const char *source, int error,
            const char *part)
{
	CHECK_EQ(weft_js_eval(script->js, source, "test.js", NULL), error);
	if (!strstr(weft_detail(), part))
		test_fail(__FILE__, __LINE__, "no \"%s\" in \"%s\"", part,
		          weft_detail());
}

static inline int64_t
eval_integer(struct script *script, const char *source)
{
	weft_value value = { 0 };

	OK(weft_js_eval(script->js, source, "test.js", &value));
	CHECK(value.type == &weft_type_integer);
	return value.as.integer;
}

#endif
