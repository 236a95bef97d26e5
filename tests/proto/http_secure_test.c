/* http_secure_test.c - an HTTP server over TLS. */
#include <weft/metrics.h>
#include <weft/tls.h>
#include "base/sys.h"
#include "proto/http_site.h"
#include "unit/net/certs.h"

static weft_tls *server_tls, *client_tls;

static void
make_tls(void)
{
	struct cert ca = cert_ca("weft test");
	struct cert leaf = cert_leaf("h", "IP:127.0.0.1", &ca);
	const struct cert *chain[] = { &leaf, NULL }, *root[] = { &ca, NULL };
	weft_tls_cert cert = { .chain_file = cert_file("leaf.pem", chain),
		               .key_file = cert_key_file("leaf.key", &leaf, NULL) };
	weft_tls_opts server = { .certs = &cert, .cert_count = 1 };
	weft_tls_opts client = { .ca_file = cert_file("ca.pem", root) };

	OK(weft_tls_open(&server, &server_tls));
	OK(weft_tls_open(&client, &client_tls));
	cert_drop(&leaf);
	cert_drop(&ca);
}

static int
hello(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, NULL, weft_text("hello"), WEFT_NEVER);
}

static void
prepare(struct site *site)
{
	OK(weft_http_route(site->server, "/", hello, site));
}

static weft_stream *
enter_secure(struct site *site)
{
	weft_stream_connect_opts opts = { .tls = client_tls };
	char address[WEFT_ADDR_TEXT_MAX];
	weft_stream *stream;

	memcpy(address, site->address, sizeof(address));
	memcpy(address, "tls", 3);
	OK(weft_stream_connect(address, &opts, &stream, weft_after(HOUR)));
	return stream;
}

static void
visit_with_a_silent_one(struct site *site)
{
	weft_stream *silent = site_enter(site);
	weft_stream *idle = enter_secure(site);

	SAY(idle, GET HOST END);
	CHECK_EQ(status_of(hear(idle, "hello")), 200);
	site_close(site);
	CHECK_STR(hear_all(idle), "");
	CHECK(hear_break(silent));
	weft_stream_close(idle);
	weft_stream_close(silent);
}

TEST(drain_does_not_wait_for_tls_handshakes)
{
	make_tls();
	site_run_tls(server_tls, prepare, visit_with_a_silent_one);
	weft_tls_close(server_tls);
	weft_tls_close(client_tls);
}

/* --- a drain during a handshake --------------------------------------------- */

static const struct weft__sys *real_sys;
static struct weft__sys still_sys;
static uint64_t still_ns;

static uint64_t
now_still(void)
{
	return still_ns;
}

static void
prepare_with_a_deadline(struct site *site)
{
	prepare(site);
	site->until_ns = still_ns + WEFT_S / 4;
}

static void
visit_after_the_deadline(struct site *site)
{
	weft_stream *stream = site_enter(site);
	struct weft_loop_stats stats = { .accepted = 0 };
	char byte;

	while (stats.accepted == 0) {
		turn_often();
		OK(weft_loop_stats(weft_loop_current(), &stats));
	}
	site_close(site);
	still_ns += WEFT_S / 3;
	turn_often();
	OK(weft_tls_start(stream, client_tls, WEFT_TLS_CLIENT, "127.0.0.1", WEFT_NEVER));
	CHECK(weft_stream_read(stream, &byte, 1, WEFT_NEVER) <= 0);
	weft_stream_close(stream);
}

/* The clock does not move, so the connection does not end by a time limit. */
TEST(connection_that_begins_after_the_deadline_of_a_drain_is_canceled)
{
	make_tls();
	real_sys = weft__sys;
	still_sys = *real_sys;
	still_sys.now = now_still;
	still_ns = real_sys->now();
	weft__sys = &still_sys;
	site_run_tls(server_tls, prepare_with_a_deadline, visit_after_the_deadline);
	weft__sys = real_sys;
	weft_tls_close(server_tls);
	weft_tls_close(client_tls);
}
