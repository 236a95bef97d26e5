/* tls_memory_test.c - memory that is not to be had, and how much an idle session has.
 *
 * OpenSSL's allocator and the library's are both counted here, and one of all their calls
 * fails.  A run without faults says how many there are; then each of them fails once,
 * alone.  Nothing may crash or leak, a failure is told by an error, and a certificate that
 * is bad stays bad.
 */
#include <malloc.h>
#include <openssl/crypto.h>
#include "base/sys.h"
#include "pair.h"

#define CHECK_EVERY 16 /* failures */
#define SOME        17
#define IDLE_MAX    16384 /* bytes of an idle session */

static struct {
	int64_t blocks, bytes; /* held */
	uint64_t calls;        /* in this run */
	uint64_t strike;       /* the one that fails; 0: none */
} memory;

static bool
strikes(void)
{
	return ++memory.calls == memory.strike;
}

static void
count(void *mem, int sign)
{
	memory.blocks += sign;
	memory.bytes += sign * (int64_t)malloc_usable_size(mem);
}

static void *
take(void *before, size_t size)
{
	void *mem;

	if (strikes())
		return NULL;
	if (before)
		count(before, -1);
	mem = realloc(before, size);
	CHECK(mem); /* none but ours fails */
	count(mem, 1);
	return mem;
}

static void
give(void *mem)
{
	if (mem)
		count(mem, -1);
	free(mem);
}

static void *
ssl_alloc(size_t size, const char *file, int line)
{
	(void)file, (void)line;
	return size ? take(NULL, size) : NULL;
}

static void *
ssl_resize(void *mem, size_t size, const char *file, int line)
{
	(void)file, (void)line;
	if (size == 0) {
		give(mem);
		return NULL;
	}
	return take(mem, size);
}

static void
ssl_free(void *mem, const char *file, int line)
{
	(void)file, (void)line;
	give(mem);
}

/* Before OpenSSL has any. */
__attribute__((constructor)) static void
count_openssl(void)
{
	if (!CRYPTO_set_mem_functions(ssl_alloc, ssl_resize, ssl_free))
		abort();
}

static const struct weft__sys *sys_before;
static struct weft__sys sys_counted;

static void *
weft_take(size_t size)
{
	return take(NULL, size);
}

static void
count_weft(void)
{
	sys_before = weft__sys;
	sys_counted = *weft__sys;
	sys_counted.alloc = weft_take;
	sys_counted.resize = take;
	sys_counted.release = give;
	weft__sys = &sys_counted;
}

static void
uncount_weft(void)
{
	weft__sys = sys_before;
}

/* --- the sweep ---------------------------------------------------------- */

static struct basics b;
static const char *bad_chain_file, *bad_key_file;
static const char *host;
static weft_tls *client, *server;
static const char *const alpn[] = { "h2", NULL };

/* Open what sessions need; false if that failed. */
static bool
open_contexts(const char *chain_file, const char *key_file)
{
	weft_tls_cert certs[] = { { NULL, chain_file, key_file },
		                  { "*.a.org", b.chain_file, b.key_file } };
	weft_tls_opts opts = {
		.certs = certs, .cert_count = 2, .ca_file = b.ca_file, .alpn = alpn
	};

	client = server = NULL;
	return weft_tls_open(&opts, &server) == 0
	       && weft_tls_open(&(weft_tls_opts){ .ca_file = b.ca_file, .alpn = alpn }, &client)
	                  == 0;
}

static void
close_contexts(void)
{
	weft_tls_close(client);
	weft_tls_close(server);
}

static size_t
carry(struct weft__session *from, struct weft__session *to)
{
	const void *bytes;
	size_t size = weft__session_output(from, &bytes);
	int64_t n = size ? weft__session_feed(to, bytes, size) : 0;

	if (n > 0)
		weft__session_sent(from, (size_t)n);
	return n > 0 ? (size_t)n : 0;
}

/* Both to the end, or to the first error: 0 if both are done. */
static int
shake(struct weft__session *c, struct weft__session *s)
{
	int rc_c = WEFT_EAGAIN, rc_s = WEFT_EAGAIN;

	for (int i = 0; i < 20; i++) {
		if (rc_c == WEFT_EAGAIN)
			rc_c = weft__session_handshake(c);
		(void)carry(c, s);
		if (rc_s == WEFT_EAGAIN)
			rc_s = weft__session_handshake(s);
		(void)carry(s, c);
		if (rc_c == 0 && rc_s == 0)
			return 0;
	}
	return rc_c ? rc_c : rc_s;
}

/* Data there and back, as far as it goes; what comes is right. */
static bool
talk(struct weft__session *c, struct weft__session *s)
{
	char sent[3000], seen[3000];
	weft_tls_info info;
	int64_t n;

	memset(sent, 'x', sizeof(sent));
	for (int i = 0; i < 2; i++) {
		struct weft__session *from = i ? s : c, *to = i ? c : s;

		if (weft__session_write(from, sent, sizeof(sent)) != sizeof(sent))
			return false;
		(void)carry(from, to);
		n = weft__session_read(to, seen, sizeof(seen));
		if (n < 0)
			return false;
		CHECK(memcmp(seen, sent, (size_t)n) == 0);
		if (weft__session_info(from, &info) < 0 || weft__session_goodbye(from) < 0)
			return false;
	}
	return true;
}

/* A whole life.  1 if all of it worked, 0 if not, -1 if a handshake worked that must not. */
static int
live(bool good)
{
	struct weft__session *c = NULL, *s = NULL;
	int result = 0;

	if (weft__session_open(client, WEFT_TLS_CLIENT, host, &c) == 0
	    && weft__session_open(server, WEFT_TLS_SERVER, NULL, &s) == 0) {
		if (shake(c, s) == 0)
			result = good ? talk(c, s) : -1;
		/* A handshake that is broken stays so. */
		else if (!good && weft__session_handshake(c) == 0)
			result = -1;
	}
	weft__session_close(c);
	weft__session_close(s);
	return result;
}

/* The same, while nothing fails and nothing is counted. */
static int
live_undisturbed(bool good)
{
	uint64_t strike = memory.strike, calls = memory.calls;
	int result;

	memory.strike = 0;
	result = live(good);
	memory.strike = strike;
	memory.calls = calls;
	return result;
}

/* Whatever it could not get: if it opens, it knows a bad certificate. */
static int
run_contexts(void)
{
	weft_tls_cert cert = { NULL, b.chain_file, b.key_file };
	weft_tls_opts opts = { .certs = &cert,
		               .cert_count = 1,
		               .ca_file = b.ca_file,
		               .ask_client_cert = true,
		               .alpn = alpn };
	int result, rc;

	client = NULL;
	rc = weft_tls_open(&opts, &client);
	CHECK((rc == 0) == (client != NULL));
	result = rc == 0 && live_undisturbed(false) < 0 ? -1 : rc == 0;
	weft_tls_close(client);
	return result;
}

/* What was there before stays.  OpenSSL lives with some failures: what is new may then
 * know fewer ciphers. */
static int
run_reload(void)
{
	int rc = weft_tls_reload(client);
	int result = live_undisturbed(true);

	CHECK(result == 1 || rc == 0);
	if (result != 1) { /* back to one that knows all */
		memory.strike = 0;
		CHECK_EQ(weft_tls_reload(client), 0);
	}
	return rc == 0;
}

static int
run_session(void)
{
	return live(true);
}

static int
run_bad_session(void)
{
	return live(false);
}

/* What OpenSSL keeps for each thread, texts of errors above all, is no leak. */
static int64_t
held(void)
{
	OPENSSL_thread_stop();
	return memory.blocks;
}

/* After a good run nothing is held that was not before the bad ones: what OpenSSL makes
 * once and keeps is there again. */
static void
check_held(const char *name, uint64_t n, int (*run)(void), int64_t blocks)
{
	(void)run();
	if (held() > blocks)
		test_fail(__FILE__, __LINE__, "%s, up to %llu: %lld leaked", name,
		          (unsigned long long)n, (long long)(memory.blocks - blocks));
}

/* One of so many fails, others with another seed; WEFT_SWEEP=all asks for each. */
static uint64_t
choose_step(void)
{
	const char *much = getenv("WEFT_SWEEP");

	return much && strcmp(much, "all") == 0 ? 1 : SOME;
}

/* Allocations of `run` fail, one at a time; without faults it gives `want`. */
static void
sweep(const char *name, int (*run)(void), int want, uint64_t points_min)
{
	uint64_t points, stopped = 0, step = choose_step();
	uint64_t first = 1 + test_seed() % step;
	int64_t blocks;

	for (int i = 0; i < 3; i++) /* what is made once and for all */
		CHECK_EQ(run(), want);
	memory.calls = 0;
	CHECK_EQ(run(), want);
	points = memory.calls;
	blocks = held();
	for (uint64_t n = first; n <= points; n += step) {
		int result;

		memory.calls = 0;
		memory.strike = n;
		result = run();
		memory.strike = 0;
		stopped += result != want;
		if (result == -1)
			test_fail(__FILE__, __LINE__, "%s, %llu: accepted", name,
			          (unsigned long long)n);
		if (n % CHECK_EVERY < step)
			check_held(name, n, run, blocks);
	}
	printf("%s: %llu allocations, %llu of them needed\n", name, (unsigned long long)points,
	       (unsigned long long)stopped);
	CHECK(points >= points_min);
	CHECK_EQ(run(), want);
}

static void
begin_sweep(void)
{
	static struct cert bad;

	basics_open(&b);
	bad = cert_leaf("bad", "DNS:example.org", NULL);
	bad_chain_file = cert_file("bad.pem", (const struct cert *[]){ &bad, NULL });
	bad_key_file = cert_key_file("bad.key", &bad, NULL);
	cert_drop(&bad);
	host = "example.org";
	count_weft();
}

static void
end_sweep(void)
{
	uncount_weft();
	basics_close(&b);
}

TEST(tls_contexts_live_with_every_allocation_that_fails)
{
	begin_sweep();
	server = pair_server(bad_chain_file, bad_key_file);
	sweep("contexts", run_contexts, 1, 500);
	weft_tls_close(server);
	CHECK(open_contexts(b.chain_file, b.key_file));
	for (int i = 0; i < 3; i++) /* resumed, too */
		CHECK_EQ(live(true), 1);
	sweep("reload", run_reload, 1, 300);
	close_contexts();
	end_sweep();
}

TEST(tls_sessions_live_with_every_allocation_that_fails)
{
	begin_sweep();
	CHECK(open_contexts(b.chain_file, b.key_file));
	sweep("session", run_session, 1, 300);
	close_contexts();
	end_sweep();
}

TEST(tls_a_bad_certificate_is_bad_without_memory_too)
{
	begin_sweep();
	CHECK(open_contexts(bad_chain_file, bad_key_file));
	sweep("self-signed", run_bad_session, 0, 200);
	close_contexts();
	CHECK(open_contexts(b.chain_file, b.key_file));
	host = "example.net";
	sweep("wrong host", run_bad_session, 0, 200);
	close_contexts();
	end_sweep();
}

/* --- idle sessions ------------------------------------------------------ */

/* Bytes of one pair of sessions that have talked and are idle, each by itself. */
static void
measure(bool talks, int64_t *client_bytes, int64_t *server_bytes)
{
	struct weft__session *c, *s;
	int64_t before;
	char byte;

	CHECK_EQ(weft__session_open(client, WEFT_TLS_CLIENT, host, &c), 0);
	CHECK_EQ(weft__session_open(server, WEFT_TLS_SERVER, NULL, &s), 0);
	CHECK_EQ(shake(c, s), 0);
	for (int i = 0; i < 2; i++) {
		struct weft__session *from = i ? s : c, *to = i ? c : s;

		if (talks) {
			CHECK_EQ(weft__session_write(from, "x", 1), 1);
			(void)carry(from, to);
			CHECK_EQ(weft__session_read(to, &byte, 1), 1);
		}
		CHECK_EQ(weft__session_read(to, &byte, 1), WEFT_EAGAIN);
	}
	before = memory.bytes;
	weft__session_close(c);
	*client_bytes = before - memory.bytes;
	before = memory.bytes;
	weft__session_close(s);
	*server_bytes = before - memory.bytes;
}

TEST(tls_idle_sessions_are_small)
{
	int64_t c, s;

	begin_sweep();
	CHECK(open_contexts(b.chain_file, b.key_file));
	for (int i = 0; i < 4; i++) {
		measure(i % 2, &c, &s);
		printf("idle: client %lld bytes, server %lld bytes\n", (long long)c, (long long)s);
		CHECK(c < IDLE_MAX && s < IDLE_MAX);
	}
	close_contexts();
	end_sweep();
}
