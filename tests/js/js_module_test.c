/* js_module_test.c - modules from files, and their permissions. */
#include <sys/stat.h>
#include <unistd.h>
#include "js/script.h"

#define DEEP 2000 /* nested imports: more than fit on the stack */

/* A temporary folder for the files of a test. */
struct folder {
	char path[256];
};

static void
make_folder(struct folder *folder)
{
	snprintf(folder->path, sizeof(folder->path), "/tmp/weft_js_XXXXXX");
	CHECK(mkdtemp(folder->path) != NULL);
}

static const char *
path_of(const struct folder *folder, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	return path;
}

static void
put_file(const struct folder *folder, const char *name, const char *text)
{
	FILE *file = fopen(path_of(folder, name), "w");

	CHECK(file != NULL);
	CHECK(fputs(text, file) >= 0);
	OK(fclose(file));
}

static void
remove_folder(const struct folder *folder, const char *const *names)
{
	for (; *names; names++)
		(void)remove(path_of(folder, *names));
	OK(rmdir(folder->path));
}

static void
begin_granted(struct script *s)
{
	weft_js_opts opts = { .grants = WEFT_JS_FILES };

	begin_with(s, &opts);
}

static void
load(struct script *s, const struct folder *folder, const char *name)
{
	if (weft_js_load(s->js, path_of(folder, name), NULL) < 0)
		test_fail(__FILE__, __LINE__, "%s", weft_detail());
	OK(weft_loop_run(s->loop));
}

TEST(js_modules_import_each_other_relative_to_their_files)
{
	static const char *const names[] = { "main.js", "in/a.js", "in/b.js", "in", "c.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	OK(mkdir(path_of(&folder, "in"), 0700));
	put_file(&folder, "main.js",
	         "import { a } from './in/a.js'; import * as c from './in/.././c.js';"
	         "say(a, c.c, import.meta.main, import.meta.url.slice(-8))");
	put_file(&folder, "in/a.js",
	         "import { b } from './b.js'; import { c } from '../c.js';"
	         "export const a = 'a' + b + c; say('a', import.meta.main)");
	put_file(&folder, "in/b.js", "export let b = 'b'");
	put_file(&folder, "c.js", "say('once'); export const c = 'c'");
	begin_granted(&s);
	load(&s, &folder, "main.js");
	CHECK_STR(s.said, "once a 0 abc c 1 /main.js ");
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_module_can_await_and_import_later)
{
	static const char *const names[] = { "main.js", "later.js", NULL };
	struct folder folder;
	struct script s;
	weft_value out = { 0 };

	make_folder(&folder);
	put_file(&folder, "main.js",
	         "say('begin'); await new Promise(r => setTimeout(r, 2));"
	         "const later = await import('./later.js'); say(later.default);"
	         "try { await import('./none.js') } catch (e) { say(e.code) }"
	         "try { await import('bare') } catch (e) { say(e.name) }");
	put_file(&folder, "later.js", "export default 'later'");
	begin_granted(&s);
	OK(weft_js_load(s.js, path_of(&folder, "main.js"), &out));
	CHECK(out.type == &weft_type_promise);
	CHECK_STR(s.said, "begin ");
	OK(weft_loop_run(s.loop));
	CHECK_EQ(weft_promise_state(out.as.ptr, NULL), WEFT_FULFILLED);
	CHECK_STR(s.said, "begin later WEFT_ENOENT TypeError ");
	weft_value_drop(&out);
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_module_runs_its_jobs_before_its_ticks)
{
	static const char *const names[] = { "main.js", "timer.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	put_file(&folder, "main.js",
	         "process.nextTick(() => say('tick')); queueMicrotask(() => say('job'));");
	put_file(&folder, "timer.js",
	         "setTimeout(() => { queueMicrotask(() => say('late job'));"
	         " process.nextTick(() => say('late tick')) }, 1)");
	begin_granted(&s);
	load(&s, &folder, "main.js");
	load(&s, &folder, "timer.js");
	CHECK_STR(s.said, "job tick late tick late job ");
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_imports_need_a_grant_and_the_main_file_does_not)
{
	static const char *const names[] = { "main.js", "alone.js", "late.js", "other.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	put_file(&folder, "main.js", "import './other.js'");
	put_file(&folder, "other.js", "say('never')");
	put_file(&folder, "alone.js", "say('alone')");
	put_file(&folder, "late.js", "import('./other.js').catch(e => say(e.code))");
	begin(&s);
	load(&s, &folder, "alone.js");
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "main.js"), NULL), WEFT_EPERM);
	load(&s, &folder, "late.js");
	CHECK_STR(s.said, "alone WEFT_EPERM ");
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_load_returns_the_error_of_a_module)
{
	static const char *const names[] = { "broken.js", "throws.js", "missing.js", "names.js",
		                             NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	put_file(&folder, "broken.js", "\n\nlet = ;");
	put_file(&folder, "throws.js", "\nthrow new Error('body')");
	put_file(&folder, "missing.js", "import './none.js'");
	put_file(&folder, "names.js", "import { none } from './throws.js'");
	begin_granted(&s);
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "none.js"), NULL), WEFT_ENOENT);
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "broken.js"), NULL), WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "broken.js:3") != NULL);
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "throws.js"), NULL), WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "Error: body\n    at") != NULL);
	CHECK(strstr(weft_detail(), "throws.js:2") != NULL);
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "missing.js"), NULL), WEFT_ENOENT);
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "names.js"), NULL), WEFT_ESCRIPT);
	OK(weft_loop_run(s.loop));
	CHECK_STR(s.text, ""); /* the caller of load got the errors */
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_module_that_fails_after_an_await_is_reported)
{
	static const char *const names[] = { "main.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	put_file(&folder, "main.js", "await 1; throw new Error('late')");
	begin_granted(&s);
	load(&s, &folder, "main.js");
	CHECK_EQ(s.errors, 1);
	CHECK(strstr(s.text, "Error: late") == s.text);
	end(&s);
	remove_folder(&folder, names);
}

/* Imports modules one after another, by absolute paths, and says the outcome of each. */
static void
import_each(struct script *s, const struct folder *folder, const char *names)
{
	char source[1024];

	snprintf(source, sizeof(source),
	         "(async () => { for (const name of '%s'.split(' '))"
	         "  await import('%s/' + name).then("
	         "    (m) => say(name, m.default ?? 'ran'),"
	         "    (e) => say(name, e.code ?? e.name));"
	         "})()",
	         names, folder->path);
	run(s, source);
	CHECK_STR(s->text, "");
}

TEST(js_import_cycle_with_a_missing_file_stays_consistent)
{
	static const char *const names[] = { "a.js", "b.js", "good.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	put_file(&folder, "a.js",
	         "import './good.js'; import './b.js'; import { x } from"
	         " './none.js'; export default x; say('never')");
	put_file(&folder, "b.js", "import a from './a.js'; export default () => a; say('never')");
	put_file(&folder, "good.js", "export default 'good'; say('here')");
	begin_granted(&s);
	import_each(&s, &folder, "a.js b.js good.js none.js a.js b.js");
	CHECK(strstr(s.said, "a.js WEFT_ENOENT b.js ") == s.said);
	CHECK(strstr(s.said, "here good.js good none.js WEFT_ENOENT"
	                     " a.js WEFT_ENOENT b.js ")
	      != NULL);
	CHECK(strstr(s.said, "never") == NULL);
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_import_cycle_of_three_with_a_syntax_error_stays_consistent)
{
	static const char *const names[] = { "a.js", "b.js", "c.js", "bad.js", NULL };
	struct folder folder;
	struct script s;
	int rc;

	make_folder(&folder);
	put_file(&folder, "a.js", "import './b.js'; import './bad.js'");
	put_file(&folder, "b.js", "import './c.js'; import 'bare'");
	put_file(&folder, "c.js", "import './a.js'; import 'bare'");
	put_file(&folder, "bad.js", "\n\nlet = ;");
	begin_granted(&s);
	import_each(&s, &folder, "c.js a.js b.js bad.js c.js");
	CHECK_STR(s.said, "c.js TypeError a.js TypeError b.js TypeError "
	                  "bad.js SyntaxError c.js TypeError ");
	rc = weft_js_load(s.js, path_of(&folder, "a.js"), NULL);
	CHECK_EQ(rc, WEFT_ESCRIPT);
	end(&s);
	begin_granted(&s);
	rc = weft_js_load(s.js, path_of(&folder, "bad.js"), NULL);
	CHECK_EQ(rc, WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "SyntaxError") == weft_detail());
	CHECK(strstr(weft_detail(), "bad.js:3") != NULL);
	put_file(&folder, "b.js", "import './c.js'");
	put_file(&folder, "c.js", "import './a.js'");
	rc = weft_js_load(s.js, path_of(&folder, "a.js"), NULL);
	CHECK_EQ(rc, WEFT_ESCRIPT);
	CHECK(strstr(weft_detail(), "SyntaxError") == weft_detail());
	CHECK(strstr(weft_detail(), "bad.js:3") != NULL);
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_import_cycle_with_a_throwing_module_fails_for_all)
{
	static const char *const names[] = { "a.js", "b.js", "c.js", "good.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	put_file(&folder, "a.js", "import './b.js'; export default 'a'");
	put_file(&folder, "b.js", "import './good.js'; import './c.js'; throw new RangeError");
	put_file(&folder, "c.js", "import './a.js'; say('c')");
	put_file(&folder, "good.js", "export default 'good'");
	begin_granted(&s);
	import_each(&s, &folder, "a.js b.js c.js good.js a.js");
	CHECK_STR(s.said, "c a.js RangeError b.js RangeError c.js RangeError "
	                  "good.js good a.js RangeError ");
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_missing_module_can_be_imported_once_it_exists)
{
	static const char *const names[] = { "late.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	begin_granted(&s);
	import_each(&s, &folder, "late.js");
	put_file(&folder, "late.js", "export default 'late'");
	import_each(&s, &folder, "late.js");
	CHECK_STR(s.said, "late.js WEFT_ENOENT late.js late ");
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_module_must_be_a_regular_file_within_the_size_limit)
{
	static const char *const names[] = { "fifo.js", "in", "big.js", "main.js", NULL };
	struct folder folder;
	struct script s;

	make_folder(&folder);
	OK(mkfifo(path_of(&folder, "fifo.js"), 0600));
	OK(mkdir(path_of(&folder, "in"), 0700));
	put_file(&folder, "big.js", "say('never')");
	OK(truncate(path_of(&folder, "big.js"), ((off_t)16 << 20) + 1));
	put_file(&folder, "main.js", "import './fifo.js'");
	begin_granted(&s);
	import_each(&s, &folder, "fifo.js in big.js main.js");
	CHECK_STR(s.said, "fifo.js WEFT_EINVAL in WEFT_EINVAL "
	                  "big.js WEFT_EMSGSIZE main.js WEFT_EINVAL ");
	CHECK_EQ(weft_js_load(s.js, path_of(&folder, "fifo.js"), NULL), WEFT_EINVAL);
	CHECK(strstr(weft_detail(), "not a regular file") != NULL);
	end(&s);
	remove_folder(&folder, names);
}

TEST(js_too_deeply_nested_imports_fail_and_others_do_not)
{
	static const char *const names[] = { "good.js", NULL };
	struct folder folder;
	struct script s;
	char name[32], text[64];

	make_folder(&folder);
	for (int i = 0; i < DEEP; i++) {
		snprintf(name, sizeof(name), "%d.js", i);
		snprintf(text, sizeof(text), "import './%d.js'", i + 1);
		put_file(&folder, name, text);
	}
	put_file(&folder, "good.js", "export default 'good'");
	begin_granted(&s);
	import_each(&s, &folder, "0.js 1.js good.js");
	CHECK_STR(s.said, "0.js RangeError 1.js RangeError good.js good ");
	end(&s);
	for (int i = 0; i < DEEP; i++) {
		snprintf(name, sizeof(name), "%d.js", i);
		(void)remove(path_of(&folder, name));
	}
	remove_folder(&folder, names);
}
