/* dns_server_test.c - answers of DNS servers, resolv.conf and hosts, and hostile servers.
 *
 * For the resolver that queries servers itself (c-ares).  See dns_world_server.c for the names.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "dns_query.h"
#include "open_fds.h"

static struct query a, b;

/* --- how long answers are cached ---------------------------------------- */

/* The answer is cached for this many seconds, and no longer. */
static void
is_kept_for(const char *name, uint64_t seconds)
{
	weft_loop *loop;
	char address[100];
	int64_t result;

	(void)snprintf(address, sizeof(address), "tcp://%s:1", name);
	world_begin();
	loop = world_loop(NULL);
	result = find(loop, &a, address);
	world_warp((seconds - 1) * WEFT_S + WEFT_S / 2);
	CHECK_EQ(find(loop, &a, address), result);
	CHECK_EQ(world_count(name), 1);
	world_warp(WEFT_S / 2);
	CHECK_EQ(find(loop, &a, address), result);
	CHECK_EQ(world_count(name), 2);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_caches_an_answer_for_its_ttl_within_limits)
{
	is_kept_for("ttl10.test", 10);
	is_kept_for("ttl0.test", 1);
	is_kept_for("ttl1000000.test", 3600);
	is_kept_for("chain.test", 7); /* the smallest TTL among the aliases */
}

TEST(dns_caches_a_negative_answer_for_the_ttl_of_the_zone)
{
	is_kept_for("nx.test", 20);
	is_kept_for("nodata.test", 20);
	is_kept_for("nosoa.test", 5); /* gives no TTL */
}

/* --- hostile and broken servers ----------------------------------------- */

/* Timeouts in milliseconds: where no useful answer comes, and where one does. */
enum { QUICK = 60, PATIENT = 2000 };

/* Resolves with this timeout and two tries. */
static int64_t
find_by(int timeout_ms, const char *address)
{
	struct weft__dns_setup set = { .timeout_ms = timeout_ms, .tries = 2 };
	int64_t result;
	weft_loop *loop;

	world_begin();
	loop = world_loop(&set);
	result = find(loop, &a, address);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
	return result;
}

TEST(dns_gives_up_on_servers_without_a_useful_answer)
{
	CHECK_EQ(find_by(QUICK, "tcp://silent.test:1"), WEFT_EAGAIN);
	CHECK(strstr(a.text, "silent.test") != NULL);
	CHECK_EQ(find_by(QUICK, "tcp://refused.test:1"), WEFT_EAGAIN);
	CHECK_EQ(find_by(QUICK, "tcp://stub.test:1"), WEFT_EAGAIN);
}

TEST(dns_gives_up_if_there_is_no_server)
{
	struct weft__dns_setup set = { .servers = "127.0.0.1:1", .timeout_ms = 60, .tries = 2 };
	weft_loop *loop;

	world_begin();
	loop = world_loop(&set);
	CHECK_EQ(find(loop, &a, "tcp://v4.test:1"), WEFT_EAGAIN);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_reports_malformed_answers_as_eproto)
{
	CHECK_EQ(find_by(PATIENT, "tcp://garbage.test:1"), WEFT_EPROTO);
	CHECK(strstr(a.text, "garbage.test") != NULL);
	CHECK_EQ(find_by(PATIENT, "tcp://cut.test:1"), WEFT_EPROTO);
}

/* The order in which the A and the AAAA answer arrive does not matter. */
TEST(dns_does_not_cache_a_malformed_answer_as_a_missing_name)
{
	static const char *const names[] = { "torn4.test", "torn6.test", "short.test", "cut.test" };
	char address[100];
	weft_loop *loop;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(address, sizeof(address), "tcp://%s:1", names[i]);
		world_begin();
		loop = world_loop(NULL);
		CHECK_EQ(find(loop, &a, address), WEFT_EPROTO);
		CHECK_EQ(find(loop, &a, address), WEFT_EPROTO);
		CHECK_EQ(world_count(names[i]), 2);
		CHECK_EQ(weft_loop_free(loop), 0);
		world_end();
	}
}

TEST(dns_accepts_only_answers_to_its_own_queries)
{
	CHECK_EQ(find_by(PATIENT, "tcp://wrongid.test:1"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.1:1");
	CHECK_EQ(find_by(PATIENT, "tcp://wrongname.test:1"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.1:1");
}

TEST(dns_follows_aliases_and_detects_alias_loops)
{
	CHECK_EQ(find_by(PATIENT, "tcp://chain.test:1"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.1:1");
	CHECK_EQ(find_by(PATIENT, "tcp://ring.test:1"), WEFT_ENONAME);
}

TEST(dns_retries_truncated_answers_over_tcp)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://tcp.test:1"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.1:1");
	CHECK_EQ(find(loop, &a, "tcp://huge.test:1"), WEFT__DNS_ADDRS_MAX);
	CHECK_STR(text_of(&a.out[WEFT__DNS_ADDRS_MAX - 1]), "tcp://10.0.0.63:1");
	CHECK_EQ(a.out[WEFT__DNS_ADDRS_MAX].size, 0);
	query_start_max(loop, &a, "tcp://huge.test:1", 10, WEFT_NEVER);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 10);
	CHECK_EQ(a.out[10].size, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

/* --- files -------------------------------------------------------------- */

static const char *
write_file(const char *kind, const char *text)
{
	static char path[100];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/tmp/weft-dns-%s-%d", kind, (int)getpid());
	file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
	return path;
}

/* Resolves a name with this resolv.conf. */
static int64_t
find_with(const char *conf, const char *address)
{
	struct weft__dns_setup set = { .timeout_ms = 2000 };
	weft_loop *loop;
	int64_t result;

	set.resolv_conf = write_file("conf", conf);
	loop = world_loop(&set);
	result = find(loop, &a, address);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(unlink(set.resolv_conf), 0);
	return result;
}

TEST(dns_uses_search_and_ndots_of_resolv_conf)
{
	world_begin();
	CHECK_EQ(find_with("search search.test\n", "tcp://host:1"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.9:1");
	CHECK_EQ(find_with("search search.test\n", "tcp://host.:1"), WEFT_ENONAME);
	/* A name with at least `ndots` dots is queried as it is first. */
	CHECK_EQ(find_with("search test\noptions ndots:2\n", "tcp://a.b:1"), 1);
	CHECK_EQ(world_count("a.b"), 0);
	CHECK_EQ(find_with("search test\noptions ndots:1\n", "tcp://a.b:1"), 1);
	CHECK_EQ(world_count("a.b"), 1);
	CHECK_EQ(world_count("a.b.test"), 2);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.8:1");
	world_end();
}

TEST(dns_reads_a_changed_configuration_after_a_minute)
{
	struct weft__dns_setup set = { .timeout_ms = 2000 };
	weft_loop *loop;

	world_begin();
	set.resolv_conf = write_file("conf", "search nowhere.test\n");
	loop = world_loop(&set);
	CHECK_EQ(find(loop, &a, "tcp://host:1"), WEFT_ENONAME);
	(void)write_file("conf", "search search.test\n");
	CHECK_EQ(find(loop, &a, "tcp://another:1"), WEFT_ENONAME);
	CHECK_EQ(find(loop, &a, "tcp://host:1"), WEFT_ENONAME);
	world_warp(4000 * WEFT_S); /* longer than the answer is cached */
	CHECK_EQ(find(loop, &a, "tcp://host:1"), 1);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(unlink(set.resolv_conf), 0);
	world_end();
}

TEST(dns_reads_the_hosts_file_first)
{
	struct weft__dns_setup set = { .hosts_by_env = true };
	const char *path = write_file("hosts", "192.0.2.33 here.test alias\n"
	                                       "2001:db8::33 here.test\n");
	weft_loop *loop;

	world_begin();
	CHECK_EQ(setenv("CARES_HOSTS", path, 1), 0);
	loop = world_loop(&set);
	CHECK_EQ(find(loop, &a, "tcp://here.test:1"), 2);
	CHECK_EQ(find(loop, &a, "tcp://alias:1"), 1);
	CHECK_STR(text_of(&a.out[0]), "tcp://192.0.2.33:1");
	CHECK_EQ(find(loop, &a, "tcp://v4.test:1"), 1);
	CHECK_EQ(world_count("here.test"), 0);
	CHECK_EQ(world_count("alias"), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(unsetenv("CARES_HOSTS"), 0);
	CHECK_EQ(unlink(path), 0);
	world_end();
}

/* --- descriptors and time ----------------------------------------------- */

TEST(dns_keeps_no_descriptor_open_when_no_query_is_pending)
{
	weft_loop *loop;
	int fds;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://localhost:1"), 2);
	query_start(loop, &a, "tcp://held.test:1"); /* opens the backend, too */
	drive_to(loop, "held.test");
	fds = test_open_fds();
	world_release();
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 1);
	CHECK_EQ(test_open_fds(), fds - 1);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

static const struct weft__sys *outer;
static struct weft__sys strict;
static int opened, wrong;

static int
open_strictly(int domain, int type, int protocol)
{
	int fd = outer->socket(domain, type, protocol);

	opened++;
	wrong += !(fcntl(fd, F_GETFL) & O_NONBLOCK) || !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return fd;
}

static int
find_blocking(const char *name, struct weft__host *out, size_t max)
{
	wrong++;
	return outer->host_find(name, out, max);
}

TEST(dns_makes_no_call_that_could_block_its_loop)
{
	weft_loop *loop;

	world_begin();
	outer = weft__sys;
	strict = *weft__sys;
	strict.socket = open_strictly;
	strict.host_find = find_blocking;
	strict.file_open = NULL; /* a call would crash */
	strict.thread_start = NULL;
	weft__sys = &strict;
	opened = wrong = 0;
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &a, "tcp://both.test:1"), 2);
	CHECK_EQ(find(loop, &a, "tcp://tcp.test:1"), 1);
	CHECK(opened >= 4);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	weft__sys = outer;
	world_end();
}

TEST(dns_lookup_past_its_deadline_still_returns_an_answer_that_arrived)
{
	uint64_t deadline;
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	deadline = weft_after(WEFT_S); /* longer than it takes until world_release() */
	query_start_max(loop, &a, "tcp://held.test:1", 1, deadline);
	drive_to(loop, "held.test");
	world_release();
	while (weft_now() < deadline)
		; /* the thread is busy with something else */
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 1);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_answer_after_the_loop_was_freed_is_harmless)
{
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	drive_to(loop, "held.test");
	weft_op_cancel(&a.op);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_release();
	CHECK_EQ(a.result, WEFT_ECANCELED);
	world_end();
}

TEST(dns_repeats_queries_in_progress_when_it_reads_its_configuration_again)
{
	struct weft__dns *dns;
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://held.test:1");
	drive_to(loop, "held.test");
	dns = weft__dns_of(loop);
	dns->reopen = true;
	weft__dns_run_soon(dns);
	while (world_count("held.test") < 2)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
	CHECK_EQ(a.results, 0);
	world_release();
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 1);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

/* c-ares reports a partial result when its channel is closed. */
TEST(dns_reports_no_partial_answer_when_it_reads_its_configuration_again)
{
	struct weft__dns *dns;
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	query_start(loop, &a, "tcp://half.test:1");
	drive_to(loop, "half.test");
	for (int i = 0; i < 20; i++)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) > 0);
	dns = weft__dns_of(loop);
	dns->reopen = true;
	weft__dns_run_soon(dns);
	while (world_count("half.test") < 2)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) > 0);
	CHECK_EQ(a.results, 0);
	weft_op_cancel(&a.op);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}

TEST(dns_of_a_forked_loop_is_freed_in_the_child_and_works_in_the_parent)
{
	int status = 0, pid;
	weft_loop *loop;

	world_begin();
	loop = world_loop(NULL);
	CHECK_EQ(find(loop, &b, "tcp://v4.test:1"), 1);
	query_start(loop, &a, "tcp://held.test:1");
	drive_to(loop, "held.test");
	pid = test_fork();
	if (pid == 0)
		test_child_exit(weft_loop_free(loop) == 0 ? 0 : 1);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(a.results, 0);
	world_release();
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a.result, 1);
	CHECK_EQ(weft_loop_free(loop), 0);
	world_end();
}
