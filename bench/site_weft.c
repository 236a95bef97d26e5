/* site_weft.c - the web server that served.py measures.
 *
 *     site_weft FOLDER [admin]
 *
 * It serves the files of FOLDER, a short text, and a page that takes CPU time; also over TLS,
 * with FOLDER's cert.pem and key.pem.  It prints its plain port and its TLS port, with `admin`
 * also the port of its admin endpoint, and runs until it is killed.
 */
#include "bench.h"
#include <weft/addr.h>
#include <weft/admin.h>
#include <weft/http.h>
#include <weft/listener.h>
#include <weft/loop.h>
#include <weft/threadlet.h>
#include <weft/tls.h>
#include "limits.h"

#define WORK_WAIT_NS (2 * BENCH_MS) /* like a database query */
#define WORK_NS      (BENCH_MS / 5) /* of CPU time */
#define AT_ONCE      100            /* requests; more get 503 */

static const char *folder;
static weft_http_server *server;

static int
answer_plain(weft_http *http, void *arg)
{
	static const weft_span body = { "Hello, World!", 13 };

	(void)arg;
	return weft_http_reply(http, 200, "text/plain", body, WEFT_NEVER);
}

static int
answer_file(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply_file(http, folder, weft_http_param(http, "name"), WEFT_NEVER);
}

static int
answer_work(weft_http *http, void *arg)
{
	uint64_t end;

	BENCH_CHECK(weft_sleep(WORK_WAIT_NS) == 0);
	end = bench_cpu_ns() + WORK_NS;
	while (bench_cpu_ns() < end)
		;
	return answer_plain(http, arg);
}

static int
serve(void *arg)
{
	return weft_http_serve(server, arg, WEFT_NEVER);
}

static void
print_port(const weft_addr *addr)
{
	char text[128];

	BENCH_CHECK(weft_addr_format(addr, text, sizeof(text)) > 0);
	(void)printf("%s ", strrchr(text, ':') + 1);
}

/* Serve at `address` and print its port. */
static void
open_site(weft_loop *loop, const char *address, weft_tls *tls)
{
	weft_listener_opts opts = { .tls = tls, .backlog = 1024, .connections_max = 19000 };
	weft_go_opts go = { .loop = loop };
	weft_listener *listener;
	weft_addr addr;

	BENCH_CHECK(weft_listener_open(address, &opts, &listener) == 0);
	BENCH_CHECK(weft_listener_local(listener, &addr) == 0);
	BENCH_CHECK(weft_go_with(&go, serve, listener) > 0);
	print_port(&addr);
}

static void
open_admin(weft_loop *loop)
{
	weft_admin_opts opts = { .loop = loop };
	weft_admin *admin;
	weft_addr addr;

	BENCH_CHECK(weft_admin_open("tcp://127.0.0.1:0", &opts, &admin) == 0);
	BENCH_CHECK(weft_admin_local(admin, &addr) == 0);
	print_port(&addr);
}

static weft_tls *
open_tls(void)
{
	char chain[4096], key[4096];
	weft_tls_cert cert = { .chain_file = chain, .key_file = key };
	weft_tls_opts opts = { .certs = &cert, .cert_count = 1, .no_tickets = true };
	weft_tls *tls;

	(void)snprintf(chain, sizeof(chain), "%s/cert.pem", folder);
	(void)snprintf(key, sizeof(key), "%s/key.pem", folder);
	BENCH_CHECK(weft_tls_open(&opts, &tls) == 0);
	return tls;
}

int
main(int argc, char **argv)
{
	weft_http_server_opts opts = { .requests_max = AT_ONCE };
	weft_loop *loop = weft_loop_new(NULL);

	if (argc != 2 && argc != 3)
		bench_die("usage: %s FOLDER [admin]", argv[0]);
	folder = argv[1];
	(void)raise_limit();
	server = weft_http_server_new(&opts);
	BENCH_CHECK(loop && server);
	BENCH_CHECK(weft_http_route(server, "GET /plain", answer_plain, NULL) == 0);
	BENCH_CHECK(weft_http_route(server, "GET /file/{name...}", answer_file, NULL) == 0);
	BENCH_CHECK(weft_http_route(server, "GET /work", answer_work, NULL) == 0);
	open_site(loop, "tcp://127.0.0.1:0", NULL);
	open_site(loop, "tls://127.0.0.1:0", open_tls());
	if (argc == 3)
		open_admin(loop);
	(void)printf("\n");
	BENCH_CHECK(fflush(stdout) == 0);
	return weft_loop_run(loop);
}
