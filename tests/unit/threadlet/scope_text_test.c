/* scope_text_test.c - the detail text of a failure reaches joins, selects and the scope's
 * close. */
#include "threadlet/threadlet.h"
#include "unit/threadlet/sched.h"

static int
fail_with_text(void *arg)
{
	return weft_fail(WEFT_ENOENT, "no %s", (const char *)arg);
}

static void
fail_in_cleanup(void *node)
{
	(void)weft_fail(WEFT_EPERM, "in a cleanup");
	free(node);
}

/* Texts that its cleanups and its open scopes set later do not belong to its failure. */
static int
fail_before_cleanup(void *arg)
{
	struct weft__node *node = calloc(1, sizeof(*node));
	weft_scope open;

	node->fn = fail_in_cleanup;
	node->arg = node;
	weft__cleanup_push(node);
	OK(weft_scope_open(&open, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&open, fail_with_text, (void *)(uintptr_t) "child") > 0);
	return fail_with_text(arg);
}

/* The library sets the text of a failed call, without weft_fail(). */
static int
fail_in_a_call(void *arg)
{
	(void)arg;
	return weft_join(INT64_MAX, NULL, WEFT_NEVER);
}

static int
fail_without_text(void *arg)
{
	(void)arg;
	(void)weft_fail(WEFT_EPERM, "of another error");
	return WEFT_ENOENT;
}

struct failing {
	weft_threadlet_fn fn;
	void *arg;
	int error;
	const char *text;
	weft_loop *loop; /* of the threadlet; NULL: the same */
};

static weft_threadlet
start_failing(const struct failing *failing, weft_scope *scope)
{
	weft_go_opts opts = { .scope = scope, .loop = failing->loop };
	weft_threadlet id = weft_go_with(&opts, failing->fn, failing->arg);

	CHECK(id > 0);
	return id;
}

static void
check_text(const char *text)
{
	CHECK_STR(weft_detail(), text);
	(void)weft_fail(WEFT_EINVAL, "something else");
}

static int
join_and_close(void *arg)
{
	const struct failing *failing = arg;
	weft_threadlet id;
	weft_scope scope;
	int out = 0;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	id = start_failing(failing, &scope);
	OK(weft_join(id, &out, WEFT_NEVER));
	CHECK_EQ(out, failing->error);
	check_text(failing->text);
	OK(weft_join(id, &out, WEFT_NOWAIT)); /* it has ended */
	CHECK_EQ(out, failing->error);
	check_text(failing->text);
	CHECK_EQ(weft_scope_close(&scope), failing->error);
	check_text(failing->text);
	return 0;
}

static int
close_only(void *arg)
{
	const struct failing *failing = arg;
	weft_scope scope;

	OK(weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER));
	(void)start_failing(failing, &scope);
	CHECK_EQ(weft_scope_close(&scope), failing->error);
	check_text(failing->text);
	return 0;
}

static int
select_join(void *arg)
{
	const struct failing *failing = arg;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	weft_case choice = { .joined = start_failing(failing, &scope) };
	for (int i = 0; i < 2; i++) { /* before it has ended, and after */
		CHECK_EQ(weft_select(&choice, 1, WEFT_NEVER), 0);
		CHECK_EQ(choice.result, failing->error);
		check_text(failing->text);
	}
	CHECK_EQ(weft_scope_close(&scope), failing->error);
	return 0;
}

static void
check_all(struct failing failing)
{
	run_threadlet(join_and_close, &failing);
	run_threadlet(close_only, &failing);
	run_threadlet(select_join, &failing);
	failing.loop = make_started();
	run_threadlet(join_and_close, &failing);
	run_threadlet(close_only, &failing);
	run_threadlet(select_join, &failing);
	stop_and_free(failing.loop);
}

TEST(detail_text_of_a_failure_reaches_joins_selects_and_scope_close)
{
	check_all((struct failing){ fail_with_text, (void *)(uintptr_t) "file", WEFT_ENOENT,
	                            "no file", NULL });
}

TEST(detail_text_set_by_cleanups_does_not_replace_that_of_the_failure)
{
	check_all((struct failing){ fail_before_cleanup, (void *)(uintptr_t) "file", WEFT_ENOENT,
	                            "no file", NULL });
}

TEST(detail_text_of_a_failed_call_is_passed_on_with_its_error)
{
	check_all((struct failing){ fail_in_a_call, NULL, WEFT_ESRCH,
	                            "weft_join: there is no such threadlet in an open scope",
	                            NULL });
}

TEST(failure_without_a_detail_text_has_the_text_of_its_error)
{
	check_all((struct failing){ fail_without_text, NULL, WEFT_ENOENT,
	                            weft_strerror(WEFT_ENOENT), NULL });
}

static int
fail_through(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, fail_with_text, arg) > 0);
	return weft_scope_close(&scope);
}

TEST(detail_text_is_passed_up_through_nested_scopes)
{
	check_all((struct failing){ fail_through, (void *)(uintptr_t) "backoff", WEFT_ENOENT,
	                            "no backoff", NULL });
}

static int
close_after_two(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, fail_with_text, (void *)(uintptr_t) "first") > 0);
	CHECK(weft_scope_go(&scope, fail_with_text, (void *)(uintptr_t) "second") > 0);
	CHECK_EQ(weft_scope_close(&scope), WEFT_ENOENT);
	check_text("no first");
	return 0;
}

TEST(scope_close_has_the_detail_text_of_the_failure_it_returns)
{
	run_threadlet(close_after_two, NULL);
}
