/* js_event_test.c - errors are reported to the script first; console output goes to the host.
 *
 * Events and the console are written in JavaScript.  Without that part of the library there is
 * nothing to test.
 */
#include "js/script.h"

static bool
has(const char *name)
{
	char source[128];
	struct script s;
	bool is;

	snprintf(source, sizeof(source), "typeof %s != 'undefined'", name);
	begin(&s);
	is = eval_integer(&s, source);
	end(&s);
	return is;
}

TEST(js_script_can_handle_its_rejections)
{
	if (!has("addEventListener"))
		return;
	check_says("addEventListener('unhandledrejection', e => { e.preventDefault();"
	           "  say(e.type, e.reason, e.promise === p) });"
	           "addEventListener('rejectionhandled', e => say(e.type, e.promise === p));"
	           "const p = Promise.reject('why'); setTimeout(() => p.catch(() => {}), 1)",
	           "unhandledrejection why 1 rejectionhandled 1 ");
	check_says("globalThis.onunhandledrejection = e => { say(e.reason); return false };"
	           "Promise.reject('by property')",
	           "by property ");
}

TEST(js_script_can_handle_its_errors)
{
	if (!has("addEventListener"))
		return;
	check_says("addEventListener('error', e => { e.preventDefault();"
	           "  say(e.message, e.filename, e.lineno > 0, e.error.name) });"
	           "setTimeout(() => { throw new RangeError('far') }, 1);",
	           "RangeError: far test.js 1 RangeError ");
	check_says("addEventListener('error', e => { e.preventDefault(); say(e.error) });"
	           "reportError('told'); queueMicrotask(() => { throw 'job' });"
	           "process.nextTick(() => { throw 'tick' })",
	           "told tick job ");
}

TEST(js_errors_that_the_script_does_not_handle_reach_the_host)
{
	struct script s;

	if (!has("addEventListener"))
		return;
	begin(&s);
	run(&s, "addEventListener('error', e => { say('heard'); throw new Error('again') });"
	        "setTimeout(() => { throw new Error('first') }, 1);"
	        "addEventListener('unhandledrejection', () => say('also'));"
	        "Promise.reject(1)");
	CHECK_STR(s.said, "also heard ");
	CHECK_EQ(s.errors, 3);
	CHECK_STR(s.text, "1");
	end(&s);
}

TEST(js_rejection_handled_in_the_listener_of_another_is_not_reported)
{
	if (!has("addEventListener"))
		return;
	check_says("addEventListener('unhandledrejection', e => { e.preventDefault();"
	           "  say(e.reason); q.catch(() => {}) });"
	           "const p = Promise.reject('p'), q = Promise.reject('q')",
	           "p ");
}

/* --- the console ------------------------------------------------------------------- */

struct output {
	char text[2][256];
};

static void
write_text(weft_js *js, int fd, weft_span text, void *arg)
{
	struct output *output = arg;
	char *to = output->text[fd - 1];

	(void)js;
	CHECK(text.size + strlen(to) < sizeof(output->text[0]));
	strncat(to, text.data, text.size);
}

TEST(js_console_writes_to_the_function_of_the_host)
{
	struct output output = { 0 };
	weft_js_opts opts = { .write = write_text, .arg = &output };
	weft_loop *loop;
	weft_js *js;

	if (!has("console"))
		return;
	loop = weft_loop_new(NULL);
	js = weft_js_new(loop, &opts);
	CHECK(js != NULL);
	OK(weft_js_eval(js, "console.log('out', 1); console.error('\\ud800 alone')", NULL, NULL));
	CHECK_STR(output.text[0], "out 1\n");
	CHECK_STR(output.text[1], "\xef\xbf\xbd alone\n");
	OK(weft_js_free(js));
	OK(weft_loop_free(loop));
}
