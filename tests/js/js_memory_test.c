/* js_memory_test.c - memory runs out: the host's while an engine is created, the script's
 * own. */
#include "base/sys.h"
#include "js/script.h"

static struct weft__sys failing;
static const struct weft__sys *real;
static uint64_t made, fails_from, fails_to;

static bool
fails(void)
{
	made++;
	return made >= fails_from && made < fails_to;
}

static void *
alloc(size_t size)
{
	return fails() ? NULL : real->alloc(size);
}

static void *
resize(void *mem, size_t size)
{
	return fails() ? NULL : real->resize(mem, size);
}

static void
begin_failing(uint64_t from, uint64_t count)
{
	real = weft__sys;
	failing = *real;
	failing.alloc = alloc;
	failing.resize = resize;
	made = 0;
	fails_from = from;
	fails_to = count > UINT64_MAX - from ? UINT64_MAX : from + count;
	weft__sys = &failing;
}

static void
end_failing(void)
{
	weft__sys = real;
}

TEST(js_engine_is_created_completely_or_not_at_all)
{
	weft_loop *loop = make();
	weft_js *js = NULL;

	for (uint64_t n = 1; !js; n++) {
		begin_failing(n, UINT64_MAX);
		js = weft_js_new(loop, NULL);
		end_failing();
	}
	OK(weft_js_free(js));
	stop_idle(loop);
}

/* --- memory bombs ----------------------------------------------------------------- */

/* The script ends with an error, and the engine is usable afterwards. */
static void
check_bomb(const char *source, size_t limit)
{
	weft_js_opts opts = { .memory_bytes = limit, .run_ns = WEFT_S };
	struct script s;
	int rc;

	begin_with(&s, &opts);
	eval(&s, "var all; function reset() { all = null }");
	rc = weft_js_eval(s.js, source, "test.js", NULL);
	if (rc != WEFT_ENOMEM && rc != WEFT_ETIMEDOUT)
		test_fail(__FILE__, __LINE__, "%s: %d, %s", source, rc, weft_detail());
	if (rc == WEFT_ENOMEM)
		CHECK(strstr(weft_detail(), "out of memory") != NULL);
	OK(weft_js_call(s.js, "reset", NULL, 0, NULL));
	CHECK_EQ(eval_integer(&s, "[1, 2, 3].map(x => x + 1).length"), 3);
	end(&s);
}

TEST(js_memory_bombs_of_all_sizes_are_refused)
{
	static const char *const bombs[] = {
		"all = []; for (;;) all.push({})",
		"all = {}; for (;;) all = { all }",
		"all = []; for (let i = 0;; i++) all.push('text ' + i)",
		"all = []; for (;;) all.push(new Array(1000).fill(1.5))",
		"all = []; for (;;) all.push(new Uint8Array(10000))",
		"all = {}; for (let i = 0;; i++) all['name' + i] = i",
		"all = new Map(); for (let i = 0;; i++) all.set(i, [i])",
		"all = []; for (;;) all.push(() => all)",
		"all = []; for (;;) all.push(Promise.resolve(all))",
		"all = []; for (;;) all.push(new Promise(r => all.push(r)))",
		"all = ''; for (;;) all += String(Math.random()).repeat(100) + all.length",
		"all = 'x'.repeat(5e8)",
		"all = new Uint8Array(1e9)",
		"all = 'x'.repeat(3e6).split('').map(c => [c])",
		"all = []; for (;;) all.push(Object.entries('x'.repeat(1000)))",
		"all = []; for (;;) all.push(new RegExp('(?<a>b)|(?<c>d)'.repeat(9)))",
		"all = []; for (;;) all.push(JSON.parse('[' + '{},'.repeat(999) + '0]'))",
	};

	for (size_t i = 0; i < sizeof(bombs) / sizeof(*bombs); i++)
		for (size_t limit = 1 << 20; limit <= 4 << 20; limit *= 4)
			check_bomb(bombs[i], limit);
}

TEST(js_script_that_ignores_a_failed_allocation_is_ended)
{
	check_bomb("all = []; for (;;) try { all.push(new Array(5000).fill(1.5)) } catch { }",
	           4 << 20);
	check_bomb("all = []; for (;;) try { all.push({ a: 1 }) } catch { eval('let x = 1; x') }",
	           4 << 20);
	check_bomb("all = []; for (;;) try { all.push([1]) } catch { new Function('a', 'a()') }",
	           1 << 20);
}

/* All of the memory is used by arguments and timer entries. */
TEST(js_timers_and_their_arguments_count_as_memory)
{
	weft_js_opts opts = { .memory_bytes = 4 << 20, .run_ns = HOUR };
	struct script s;

	begin_with(&s, &opts);
	eval(&s, "const f = () => {}, few = Array(1000).fill(0);"
	         "let all = []; all[9999] = 0");
	check_fails(&s, "for (let i = 0; i < 2000; i++) all[i] = setTimeout(f, 1e9, ...few)",
	            WEFT_ENOMEM, "out of memory");
	eval(&s, "all.forEach(clearTimeout)");
	check_fails(&s, "for (let i = 0; i < 2000; i++) all[i] = setImmediate(f, ...few)",
	            WEFT_ENOMEM, "out of memory");
	eval(&s, "all.forEach(clearImmediate)");
	check_fails(&s, "for (let i = 0; i < 1e5; i++) setTimeout(f, 1e9)", WEFT_ENOMEM,
	            "out of memory");
	end(&s);
}

/* Parses sources of many lengths, up to 2 MiB, while so much memory is in use that the
 * parser needs more than is left.  Functions with the same name take quadratic time: only up
 * to 256 KiB of them. */
static void
check_parse(const char *piece, unsigned eighths)
{
	unsigned most = strncmp(piece, "function", 8) == 0 ? 1 << 18 : 2 << 20;
	weft_js_opts opts = { .memory_bytes = 8 << 20, .run_ns = HOUR };
	struct script s;
	char source[512];
	int rc;

	begin_with(&s, &opts);
	snprintf(source, sizeof(source),
	         "globalThis.fill = new Uint8Array(%u << 20); const p = '%s';"
	         "for (let k = 65536; k < %u; k = k * 1.9 | 0)"
	         "  try { (0, eval)('var a,b,c;if(0){' + p.repeat(k / p.length)"
	         "    + '}') } catch { }",
	         eighths, piece, most);
	rc = weft_js_eval(s.js, source, "test.js", NULL);
	CHECK(rc == 0 || rc == WEFT_ENOMEM);
	eval(&s, "fill = null");
	CHECK_EQ(eval_integer(&s, "[1, 2, 3].map(x => x + 1).length"), 3);
	end(&s);
}

TEST(js_parser_survives_running_out_of_memory)
{
	static const char *const pieces[] = {
		"a(1);",  "if(a){b()}else{c()};", "for(;a;)b();",   "a||b&&c;",

		"a?b:c,", "function f(){}",       "x={a:1,b(){}};", "/a/,",     "[a]=b;", "{;}",
	};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		check_parse(pieces[i], 0);
		check_parse(pieces[i], 6);
		check_parse(pieces[i], 7);
	}
}

/* Cyclic garbage is collected before an allocation is refused because of it. */
TEST(js_garbage_does_not_count_as_memory)
{
	weft_js_opts opts = { .memory_bytes = 2 << 20, .run_ns = HOUR };
	struct script s;

	begin_with(&s, &opts);
	eval(&s, "for (let i = 0; i < 50000; i++) { const o = { text: [i, i, i] }; o.self = o }");
	end(&s);
}
