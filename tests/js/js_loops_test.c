/* js_loops_test.c - many engines: one after another, and at once on several loops. */
#include "js/script.h"

#define THREADS 4

TEST(js_engines_are_created_and_freed_many_times_without_leaks)
{
	weft_loop *loop = make();

	for (int i = 0; i < ENGINES; i++) {
		weft_js *js = weft_js_new(loop, NULL);

		CHECK(js != NULL);
		if (i % 100 == 0) {
			OK(weft_js_eval(js,
			                "let o = {}; o.self = o; setTimeout(() => o, 9);"
			                "Promise.reject(o); setImmediate(() => o);"
			                "process.nextTick(() => o); (async () => {"
			                "await new Promise(() => {}) })(); globalThis.o = o",
			                NULL, NULL));
			turn(loop);
		}
		OK(weft_js_free(js));
	}
	stop_idle(loop);
}

TEST(js_several_engines_share_a_loop)
{
	struct script first, second;
	weft_js *other;

	begin(&first);
	memset(&second, 0, sizeof(second));
	other = weft_js_new(first.loop, NULL);
	CHECK(other != NULL);
	OK(weft_js_expose(other, "say", false, say, &second));
	OK(weft_js_eval(other, "setTimeout(() => say('two'), 1); Promise.resolve('p').then(say)",
	                NULL, NULL));
	run(&first, "setTimeout(() => say('one'), 1); say(typeof globalThis.x); x = 1");
	CHECK_STR(first.said, "undefined one ");
	CHECK_STR(second.said, "p two ");
	OK(weft_js_free(other));
	end(&first);
}

static void *
run_alone(void *arg)
{
	struct script *s = arg;

	for (int i = 0; i < 5; i++) {
		begin(s);
		run(s, "let n = 0; for (let i = 0; i < 100; i++) setTimeout(async () => {"
		       "  await null; n += [1, 2, 3].map(x => x * 2).length }, i % 3);"
		       "const end = setInterval(() => { if (n == 300) { say(n);"
		       "  clearInterval(end) } }, 1)");
		CHECK_STR(s->said, "300 ");
		end(s);
	}
	return NULL;
}

TEST(js_engines_on_several_loops_do_not_affect_each_other)
{
	static struct script scripts[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = thread(run_alone, &scripts[i]);
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
}
