/* embed_js.c - a script awaits a C function; an endless one is interrupted. */
#include <stdio.h>
#include <weft/js.h>
#include <weft/weft.h>

/* lookup(id): runs on a threadlet; the script gets a promise. */
static int
lookup(weft_js *js, const weft_value *args, size_t count, weft_value *out,
       void *arg)
{
	int rc = weft_sleep(100 * WEFT_MS);

	(void)js, (void)arg;
	if (rc < 0)
		return rc;
	if (count != 1 || args[0].type != &weft_type_integer)
		return WEFT_EINVAL;
	*out = weft_value_integer(args[0].as.integer * 2);
	return 0;
}

static int
print(weft_js *js, const weft_value *args, size_t count, weft_value *out,
      void *arg)
{
	(void)js, (void)out, (void)arg;
	for (size_t i = 0; i < count; i++)
		if (args[i].type == &weft_type_text)
			puts(args[i].as.ptr);
	return 0;
}

static void
interrupt(void *js)
{
	weft_js_interrupt(js);
}

/* limit(ms): interrupts the script that runs then.  Its loop cannot do that,
 * because the script occupies it; another loop does. */
static int
limit(weft_js *js, const weft_value *args, size_t count, weft_value *out,
      void *guard)
{
	uint64_t delay_ns;
	int64_t id;

	(void)out;
	if (count != 1 || args[0].type != &weft_type_integer)
		return WEFT_EINVAL;
	delay_ns = (uint64_t)args[0].as.integer * WEFT_MS;
	id = weft_schedule_timeout(guard, delay_ns, interrupt, js);
	return id < 0 ? (int)id : 0;
}

static int
run_endless(weft_js *js)
{
	weft_loop *guard = weft_loop_new(NULL);
	int rc;

	if (!guard || weft_loop_start(guard) < 0)
		return WEFT_ENOMEM;
	weft_js_expose(js, "limit", false, limit, guard);
	rc = weft_js_eval(js, "limit(50); for (;;);", NULL, NULL);
	puts(rc == WEFT_EINTR ? "interrupted" : "not interrupted");
	weft_loop_shutdown(guard);
	weft_loop_wait_stopped(guard, WEFT_NEVER);
	return weft_loop_free(guard);
}

int
main(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_js *js = loop ? weft_js_new(loop, NULL) : NULL;
	int rc;

	if (!js)
		return 1;
	weft_js_expose(js, "lookup", true, lookup, NULL);
	weft_js_expose(js, "print", false, print, NULL);
	rc = weft_js_eval(js,
	                  "setTimeout(async () => {"
	                  "  print('answer: ' + await lookup(21));"
	                  "}, 10);",
	                  "inline.js", NULL);
	if (rc == 0)
		rc = weft_loop_run(
			loop); /* until the script has no work left */
	if (rc == 0)
		rc = weft_js_failed(js); /* the first unhandled error */
	if (rc == 0)
		rc = run_endless(js);
	if (rc < 0)
		fprintf(stderr, "%s\n", weft_detail());
	weft_js_free(js);
	weft_loop_free(loop);
	return rc < 0;
}
