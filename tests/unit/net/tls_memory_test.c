/* tls_memory_test.c - failing allocations, and the memory of an idle session.
 *
 * Allocations of OpenSSL and of the library are both counted here, and one of them fails.  A
 * run without faults shows how many there are.  Then each of them fails once, alone.  Nothing
 * may crash or leak, a failure is reported as an error, and a bad certificate stays bad.
 */
#include <malloc.h>
#include <openssl/crypto.h>
#include "base/sys.h"
#include "pair.h"

#define CHECK_EVERY 16 /* check for leaks after this many failures */
#define SOME        17
#define IDLE_MAX    16384 /* bytes of an idle session */

static struct {
	int64_t blocks, bytes; /* currently allocated */
	uint64_t calls;        /* in this run */
	uint64_t strike;       /* number of the call that fails; 0: none */
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
	CHECK(mem); /* only the injected failures */
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

/* Runs before OpenSSL allocates. */
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

/* Opens the contexts for sessions.  Returns false if that fails. */
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

/* Runs both handshakes to the end or to an error.  Returns 0 if both are done. */
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

/* Sends data both ways as far as possible.  Received data must be correct. */
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
		if (weft__session_info(from, &info) < 0 || weft__session_close_notify(from) < 0)
			return false;
	}
	return true;
}

/* Runs a session from open to close.  Returns 1 if all of it worked, 0 if not, -1 if a
 * handshake succeeded that must fail. */
static int
live(bool good)
{
	struct weft__session *c = NULL, *s = NULL;
	int result = 0;

	if (weft__session_open(client, WEFT_TLS_CLIENT, host, &c) == 0
	    && weft__session_open(server, WEFT_TLS_SERVER, NULL, &s) == 0) {
		if (shake(c, s) == 0)
			result = good ? talk(c, s) : -1;
		/* A failed handshake stays failed. */
		else if (!good && weft__session_handshake(c) == 0)
			result = -1;
	}
	weft__session_close(c);
	weft__session_close(s);
	return result;
}

/* The same, without a failure and without counting. */
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

/* Whichever allocation fails: a context that opens must still detect a bad certificate. */
static int
run_contexts(void)
{
	weft_tls_cert cert = { NULL, b.chain_file, b.key_file };
	weft_tls_opts opts = { .certs = &cert,
		               .cert_count = 1,
		               .ca_file = b.ca_file,
		               .require_client_cert = true,
		               .alpn = alpn };
	int result, rc;

	client = NULL;
	rc = weft_tls_open(&opts, &client);
	CHECK((rc == 0) == (client != NULL));
	result = rc == 0 && live_undisturbed(false) < 0 ? -1 : rc == 0;
	weft_tls_close(client);
	return result;
}

/* After a failed reload the old state stays.  OpenSSL tolerates some failures: the new state
 * may then support fewer ciphers. */
static int
run_reload(void)
{
	int rc = weft_tls_reload(client);
	int result = live_undisturbed(true);

	CHECK(result == 1 || rc == 0);
	if (result != 1) { /* reload once more, with all ciphers */
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

/* Frees what OpenSSL keeps for each thread, mainly error texts, because that is no leak. */
static int64_t
held(void)
{
	OPENSSL_thread_stop();
	return memory.blocks;
}

/* After a run without faults no more blocks may be allocated than before the faults.  What
 * OpenSSL creates once and keeps exists again then. */
static void
check_held(const char *name, uint64_t n, int (*run)(void), int64_t blocks)
{
	(void)run();
	if (held() > blocks)
		test_fail(__FILE__, __LINE__, "%s, up to %llu: %lld leaked", name,
		          (unsigned long long)n, (long long)(memory.blocks - blocks));
}

/* Every how many allocations one fails; the seed selects which.  WEFT_SWEEP=all selects each. */
static uint64_t
choose_step(void)
{
	const char *much = getenv("WEFT_SWEEP");

	return much && strcmp(much, "all") == 0 ? 1 : SOME;
}

/* Lets allocations of `run` fail, one at a time.  Without a failure `run` must return `want`. */
static void
sweep(const char *name, int (*run)(void), int want, uint64_t points_min)
{
	uint64_t points, stopped = 0, step = choose_step();
	uint64_t first = 1 + test_seed() % step;
	int64_t blocks;

	for (int i = 0; i < 3; i++) /* creates what is kept forever */
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

TEST(tls_contexts_survive_every_failing_allocation)
{
	begin_sweep();
	server = pair_server(bad_chain_file, bad_key_file);
	sweep("contexts", run_contexts, 1, 500);
	weft_tls_close(server);
	CHECK(open_contexts(b.chain_file, b.key_file));
	for (int i = 0; i < 3; i++) /* resumed sessions, too */
		CHECK_EQ(live(true), 1);
	sweep("reload", run_reload, 1, 300);
	close_contexts();
	end_sweep();
}

TEST(tls_sessions_survive_every_failing_allocation)
{
	begin_sweep();
	CHECK(open_contexts(b.chain_file, b.key_file));
	sweep("session", run_session, 1, 300);
	close_contexts();
	end_sweep();
}

TEST(tls_bad_certificate_is_refused_when_an_allocation_fails)
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

/* Bytes of each of two sessions that are idle after an exchange. */
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

TEST(tls_idle_sessions_use_little_memory)
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
