/* dns_test.c - name resolution with either resolver: answers, waiting, caching. */
#include "dns_query.h"

static struct query a, b;

/* --- without a query ---------------------------------------------------- */

TEST(dns_resolves_literal_addresses_to_themselves)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK_EQ(find(loop, &a, "tcp://192.0.2.7:80"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.7:80");
	CHECK_EQ(find(loop, &a, "udp://[2001:db8::7]:53"), 1);
	CHECK_STR(text_of(&a.out[0]), "udp://[2001:db8::7]:53");
	CHECK_EQ(find(loop, &a, "unix:/tmp/x"), 1);
	CHECK_STR(text_of(&a.out[0]), "unix:/tmp/x");
	CHECK_EQ(weft_loop_free(loop), 0);
}

TEST(dns_resolves_localhost_without_a_query)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK(find(loop, &a, "udp://localhost:9") == 2);
	CHECK_EQ(a.out[0].kind, SOCK_DGRAM);
	CHECK_EQ(weft__addr_port(&a.out[1]), 9);
	CHECK(find(loop, &a, "tcp://Some.LocalHost.:9") == 2);
	CHECK_EQ(weft__addr_family(&a.out[0]) + weft__addr_family(&a.out[1]), AF_INET + AF_INET6);
	query_start_max(loop, &a, "tcp://localhost:9", 1, WEFT_NEVER);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 1);
	CHECK_EQ(world_count("localhost"), 0);
	CHECK_EQ(world_count("some.localhost"), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

static void
refused(const char *host, const char *why)
{
	char address[600], out[WEFT__DNS_HOST_MAX] = "as it was";
	weft_loop *loop = weft_loop_new(NULL);
	weft_op op;

	CHECK_EQ(weft__dns_check(host, strlen(host), out), WEFT_EINVAL);
	if (!strstr(weft_detail(), why))
		test_fail(__FILE__, __LINE__, "\"%s\" for %s, not \"%s\"", weft_detail(), host,
		          why);
	CHECK_STR(out, "as it was");
	(void)snprintf(address, sizeof(address), "tcp://%s:1", host);
	CHECK_EQ(weft_op_init(&op, loop, NULL, NULL), 0);
	a.out[0].size = 77;
	CHECK_EQ(weft__dns_resolve_op(address, a.out, 1, &op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(a.out[0].size, 77);
	CHECK_EQ(weft_loop_free(loop), 0);
}

TEST(dns_refuses_invalid_names_with_a_reason)
{
	char name[400], out[WEFT__DNS_HOST_MAX];

	memset(name, 'a', sizeof(name));
	for (int i = 50; i < 400; i += 50)
		name[i] = '.';
	name[254] = 0;
	refused(name, "253");
	CHECK_EQ(weft__dns_check(name, 253, out), 0);
	memset(name, 'a', 64);
	name[64] = 0;
	refused(name, "63");
	CHECK_EQ(weft__dns_check(name, 63, out), 0);
	CHECK_EQ(weft__dns_check("A.b-c_d.", 8, out), 0);
	CHECK_STR(out, "a.b-c_d.");
	CHECK_EQ(weft__dns_check("a\0b", 3, out), WEFT_EINVAL);
	CHECK_EQ(weft__dns_check("", 0, out), WEFT_EINVAL);
	CHECK_EQ(weft__dns_check(".", 1, out), WEFT_EINVAL);
	refused("a..b", "empty");
	refused(".a", "empty");
	refused("a b", "character");
	refused("a\tb", "character");
	refused("b\303\274cher.test", "xn--");
	CHECK(strstr(weft_detail(), "xn--") != NULL); /* the op reports it, too */
}

TEST(dns_refuses_misuse)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_op op;

	CHECK_EQ(weft_op_init(&op, loop, NULL, NULL), 0);
	CHECK_MISUSE(weft__dns_resolve_op(NULL, a.out, 1, &op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft__dns_resolve_op("tcp://a:1", NULL, 1, &op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft__dns_resolve_op("tcp://a:1", a.out, 0, &op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft__dns_resolve_op("tcp://a:1", a.out, 1, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft__dns_resolve_op("fd:0", a.out, 1, &op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_dns_resolve("tcp://a:1", a.out, 1, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_loop_free(loop), 0);
}

/* --- answers ------------------------------------------------------------ */

TEST(dns_resolves_names_to_addresses)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://v4.test:80"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.1:80");
	CHECK_EQ(find(loop, &a, "udp://V6.Test:81"), 1);
	CHECK_STR(text_of(&a.out[0]), "udp://[2001:db8::1]:81");
	CHECK_EQ(find(loop, &a, "tls://both.test:82"), 2);
	CHECK_EQ(weft__addr_family(&a.out[0]) + weft__addr_family(&a.out[1]), AF_INET + AF_INET6);
	CHECK_EQ(a.out[0].kind, SOCK_STREAM);
	CHECK_EQ(weft__addr_port(&a.out[1]), 82);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_errors_name_the_host)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://nx.test:80"), WEFT_ENONAME);
	CHECK(strstr(a.text, "nx.test") != NULL);
	CHECK_EQ(find(loop, &a, "tcp://nodata.test:80"), WEFT_ENONAME);
	CHECK_EQ(find(loop, &a, "tcp://fail.test:80"), WEFT_EAGAIN);
	CHECK(strstr(a.text, "fail.test") != NULL);
	CHECK_EQ(a.out[0].size, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_errors_of_concurrent_lookups_name_their_own_host)
{
	static struct query other;
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	for (int i = 0; i < 2; i++) { /* first queried, then cached */
		query_start(loop, &a, "tcp://nx.test:80");
		query_start(loop, &other, "tcp://nodata.test:80");
		CHECK_EQ(weft_loop_run(loop), 0);
		CHECK_EQ(a.result, WEFT_ENONAME);
		CHECK_EQ(other.result, WEFT_ENONAME);
		CHECK(strstr(a.text, "nx.test") != NULL);
		CHECK(strstr(other.text, "nodata.test") != NULL);
	}
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

/* --- caching ------------------------------------------------------------ */

TEST(dns_caches_answers_but_not_failures)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(find(loop, &a, "tcp://v4.test:80"), 1);
		CHECK_EQ(find(loop, &a, "tcp://nx.test:80"), WEFT_ENONAME);
		CHECK_EQ(find(loop, &a, "tcp://fail.test:80"), WEFT_EAGAIN);
	}
	CHECK_EQ(world_count("v4.test"), 1);
	CHECK_EQ(world_count("nx.test"), 1);
	CHECK(world_count("fail.test") >= 3);
	world_warp(4000 * WEFT_S); /* longer than any of them is cached */
	CHECK_EQ(find(loop, &a, "tcp://v4.test:80"), 1);
	CHECK_EQ(find(loop, &a, "tcp://nx.test:80"), WEFT_ENONAME);
	CHECK_EQ(world_count("v4.test"), 2);
	CHECK_EQ(world_count("nx.test"), 2);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_cache_evicts_the_least_recently_used_name)
{
	struct weft__dns_setup set = { .known_max = 3 };
	weft_loop *loop;

	world_begin();
	loop = world_loop(&set);
	CHECK_EQ(find(loop, &a, "tcp://1.many.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://2.many.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://3.many.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://1.many.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://4.many.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://1.many.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://3.many.test:1"), 1);
	CHECK_EQ(world_count("1.many.test"), 1);
	CHECK_EQ(world_count("3.many.test"), 1);
	CHECK_EQ(find(loop, &a, "tcp://2.many.test:1"), 1);
	CHECK_EQ(world_count("2.many.test"), 2);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

static void
run_threadlet(weft_loop *loop, weft_threadlet_fn fn, void *arg)
{
	weft_go_opts opts = { .loop = loop };

	CHECK(weft_go_with(&opts, fn, arg) > 0);
	CHECK_EQ(weft_loop_run(loop), 0);
}

/* --- waiting ------------------------------------------------------------ */

TEST(dns_lookups_of_one_name_share_a_query)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	query_start(loop, &b, "udp://HELD.test:2");
	drive_to(loop, "held.test");
	world_release();
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(world_count("held.test"), 1);
	CHECK_EQ(a.results + b.results, 2);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.1:1");
	CHECK_STR(text_of(&b.out[0]), "udp://192.0.2.1:2");
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(canceled_dns_lookup_ends_at_once_and_leaves_the_others_waiting)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	query_start(loop, &b, "tcp://held.test:2");
	weft_op_cancel(&a.op); /* before the query is sent */
	drive_to(loop, "held.test");
	CHECK_EQ(a.results, 1);
	CHECK_EQ(a.result, WEFT_ECANCELED);
	CHECK_EQ(a.out[0].size, 0);
	query_start(loop, &a, "tcp://held.test:1");
	weft_op_cancel(&a.op); /* after it was sent */
	while (a.results == 0)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
	CHECK_EQ(a.result, WEFT_ECANCELED);
	CHECK_EQ(b.results, 0);
	world_release();
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(b.result, 1);
	CHECK_EQ(a.results, 1);
	CHECK_EQ(a.out[0].size, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_caches_an_answer_that_no_lookup_waits_for)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	drive_to(loop, "held.test");
	weft_op_cancel(&a.op);
	CHECK_EQ(weft_loop_run(loop), 0); /* the query does not keep the loop alive */
	CHECK_EQ(a.result, WEFT_ECANCELED);
	world_release();
	CHECK_EQ(find(loop, &b, "tcp://held.test:1"), 1);
	CHECK_EQ(world_count("held.test"), 1);
	CHECK_EQ(a.results, 1);
	CHECK_EQ(a.out[0].size, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_lookup_ends_at_its_deadline)
{
	uint64_t begun = weft_now();
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start_max(loop, &a, "tcp://held.test:1", 1, weft_after(20 * WEFT_MS));
	query_start_max(loop, &b, "tcp://held.test:1", 1, WEFT_NOWAIT);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, WEFT_ETIMEDOUT);
	CHECK_EQ(b.result, WEFT_ETIMEDOUT);
	CHECK(weft_now() - begun >= 20 * WEFT_MS);
	world_release();
	CHECK_EQ(find(loop, &b, "tcp://held.test:1"), 1);
	CHECK_EQ(a.results, 1);
	CHECK_EQ(a.out[0].size, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_returns_known_answers_without_waiting)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://v4.test:1"), 1);
	query_start_max(loop, &a, "tcp://v4.test:1", 1, WEFT_NOWAIT);
	query_start_max(loop, &b, "tcp://127.0.0.1:1", 1, WEFT_NOWAIT);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 1);
	CHECK_EQ(b.result, 1);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

static void
on_resolved_then_release(weft_op *op, int64_t result, void *arg)
{
	on_resolved(op, result, arg);
	world_release();
}

/* Each waiting lookup ends before the answer arrives.  The loop may have to wait for the
 * answer. */
TEST(dns_lookups_end_when_the_loop_stops)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	query_start(loop, &b, "tcp://held2.test:1");
	a.op.on_done = on_resolved_then_release;
	drive_to(loop, "held2.test");
	weft_loop_shutdown(loop);
	CHECK(weft_loop_run_once(loop, WEFT_NOWAIT) >= 0);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_EQ(a.result, WEFT_ESHUTDOWN);
	CHECK_EQ(b.result, WEFT_ESHUTDOWN);
	CHECK_EQ(a.out[0].size, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(loop_can_be_freed_while_no_dns_lookup_waits)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	drive_to(loop, "held.test");
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	weft_op_cancel(&a.op);
	CHECK_EQ(weft_loop_run(loop), 0);
	world_release();
	while (weft_loop_free(loop) == WEFT_EBUSY) /* a pool thread is still busy */
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
	world_end();
}

TEST(dns_leaves_no_timer_when_no_query_is_pending)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://v4.test:1"), 1);
	CHECK_EQ(find(loop, &a, "tcp://nx.test:1"), WEFT_ENONAME);
	CHECK_EQ(find(loop, &a, "tcp://localhost:1"), 2);
	CHECK_EQ(weft__count_get(&loop->wheel.count), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_limits_the_number_of_concurrent_queries)
{
	static struct query started[4];
	struct weft__dns_setup set = { .queries_max = 2 };
	char address[64];
	weft_loop *loop;

	world_begin();
	loop = world_loop(&set);
	for (int i = 0; i < 4; i++) {
		(void)snprintf(address, sizeof(address), "tcp://held%d.test:1", i);
		query_start(loop, &started[i], address);
	}
	drive_to(loop, "held0.test");
	drive_to(loop, "held1.test");
	for (int i = 0; i < 10; i++)
		CHECK(weft_loop_run_once(loop, WEFT_NOWAIT) > 0);
	CHECK_EQ(weft__dns_of(loop)->queries, 2);
	CHECK_EQ(world_count("held2.test") + world_count("held3.test"), 0);
	weft_op_cancel(&started[3].op); /* its query is never sent */
	world_release();
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(started[2].result, 1);
	CHECK_EQ(started[3].result, WEFT_ECANCELED);
	CHECK_EQ(world_count("held3.test"), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

/* --- many --------------------------------------------------------------- */

enum { CROWD = 10000 };

struct member {
	weft_op op;
	weft_addr out;
	int64_t result;
};

static int left;

static void
on_member(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	((struct member *)arg)->result = result;
	left--;
}

TEST(dns_resolves_ten_thousand_names_a_few_at_a_time)
{
	struct weft__dns_setup set = { .queries_max = 16, .known_max = 100 };
	struct member *crowd = calloc(CROWD, sizeof(*crowd));
	char address[64];
	weft_loop *loop;
	int refusals = 0;

	world_begin();
	loop = world_loop(&set);
	left = 0;
	for (int i = 0; i < CROWD + 1; i++) {
		struct member *m = &crowd[i % CROWD];
		int rc;

		(void)snprintf(address, sizeof(address), "tcp://%d.many.test:1", i);
		if (i < CROWD)
			CHECK_EQ(weft_op_init(&m->op, loop, on_member, m), 0);
		else
			m = (struct member *)(void *)&a;
		if (i == CROWD)
			CHECK_EQ(weft_op_init(&m->op, loop, NULL, NULL), 0);
		rc = weft__dns_resolve_op(address, &m->out, 1, &m->op, WEFT_NEVER);
		left += rc == 0;
		refusals += rc == WEFT_EAGAIN;
	}
	CHECK_EQ(refusals, 1);
	CHECK(strstr(weft_detail(), "too many") != NULL);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(left, 0);
	for (int i = 0; i < CROWD; i++) {
		CHECK_EQ(crowd[i].result, 1);
		CHECK_EQ(crowd[i].out.bytes[6], i >> 8);
		CHECK_EQ(crowd[i].out.bytes[7], i & 0xff);
	}
	CHECK_EQ(weft_loop_free(loop), 0);
	free(crowd);
	world_end();
}

/* --- threadlets --------------------------------------------------------- */

static int
use_names(void *arg)
{
	weft_addr out[4], addr;
	char name[64];

	CHECK_EQ(weft_dns_resolve("tcp://both.test:80", out, 4, WEFT_NEVER), 2);
	CHECK_EQ(weft_dns_resolve("tcp://nx.test:80", out, 4, WEFT_NEVER), WEFT_ENONAME);
	CHECK(strstr(weft_detail(), "tcp://nx.test:80") != NULL);
	CHECK_EQ(weft_dns_resolve("tcp://held.test:80", out, 4, weft_after(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK_EQ(weft_dns_resolve("tcp://b d:80", out, 4, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_addr_parse("tcp://192.0.2.1:0", &addr), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_dns_reverse(&addr, name, sizeof(name), WEFT_NEVER), 7);
	CHECK_STR(name, "v4.test");
	CHECK_EQ(world_count("1.2.0.192.in-addr.arpa"), 1);
	CHECK_EQ(weft_dns_reverse(&addr, name, 7, WEFT_NEVER), WEFT_EMSGSIZE);
	CHECK_EQ(weft_addr_parse("tcp://198.51.100.1:0", &addr), 0);
	CHECK_EQ(weft_dns_reverse(&addr, name, 64, WEFT_NEVER), WEFT_ENONAME);
	CHECK(strstr(weft_detail(), "198.51.100.1") != NULL);
	CHECK_EQ(weft_addr_parse("unix:/tmp/x", &addr), 0);
	CHECK_EQ(weft_dns_reverse(&addr, name, 64, WEFT_NEVER), WEFT_EINVAL);
	*(int *)arg = 1;
	return 0;
}

TEST(dns_calls_suspend_threadlets)
{
	weft_loop *loop;
	int done = 0;

	world_begin();
	loop = world_loop(NULL);
	run_threadlet(loop, use_names, &done);
	CHECK_EQ(done, 1);
	world_release();
	weft_loop_shutdown(loop);
	while (weft_loop_state(loop) != WEFT_STOPPED)
		(void)weft_loop_run_once(loop, weft_after(WEFT_MS));
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}
