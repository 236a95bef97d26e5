/* plugin.c - a plugin that uses weft, and frees everything of it that can be freed. */
#include <weft/weft.h>

static void
count(void *arg)
{
	(*(int *)arg)++;
}

static int
sleep_and_count(void *arg)
{
	int rc = weft_sleep_until(weft_after(WEFT_US));

	count(arg);
	return rc;
}

/* Runs a post and a threadlet that sleeps.  Returns 2, as each of them counts once, or an
 * error. */
WEFT_API int plugin_use(void);

int
plugin_use(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };
	int counted = 0, rc;

	if (!loop)
		return WEFT_ENOMEM;
	(void)weft_go_with(&opts, sleep_and_count, &counted);
	(void)weft_loop_post(loop, count, &counted);
	(void)weft_loop_run(loop);
	weft_loop_shutdown(loop);
	rc = weft_loop_free(loop);
	return rc < 0 ? rc : counted;
}
