/* js_net_test.c - fetch from the host's view: its grant, and freeing the engine during it. */
#define _GNU_SOURCE /* accept4() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include "js/script.h"

static const weft_js_opts granted = { .grants = WEFT_JS_NET };

/* --- a hand-written peer ----------------------------------------------------------- */

static int listener, peer;
static char url[64];

static void
listen_here(void)
{
	struct sockaddr_in addr;

	listener = make_listener(4, &addr);
	peer = -1;
	OK(fcntl(listener, F_SETFL, O_NONBLOCK));
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(addr.sin_port));
}

/* Runs the loop until the request has arrived. */
static void
hear(struct script *s)
{
	char request[2048];
	ssize_t size;

	do {
		turn(s->loop);
		if (peer < 0)
			peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		size = peer < 0 ? -1 : recv(peer, request, sizeof(request), 0);
		if (size < 0)
			sched_yield();
	} while (size < 0);
	CHECK(size > 0);
}

/* Runs the loop until the peer sees the end of the connection. */
static void
see_end(weft_loop *loop)
{
	char byte;
	ssize_t size;

	while ((size = recv(peer, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
		turn(loop);
		sched_yield();
	}
	CHECK(size <= 0);
	OK(close(peer));
	OK(close(listener));
}

/* Frees the engine and checks that its operations in progress end. */
static void
free_and_end(struct script *s)
{
	OK(weft_js_free(s->js));
	see_end(s->loop);
	OK(weft_loop_run(s->loop));
	stop_idle(s->loop);
}

static void
eval_fetch(struct script *s, const char *then)
{
	char source[400];

	(void)snprintf(source, sizeof(source), "fetch('%s')%s", url, then);
	eval(s, source);
}

/* --- tests ---------------------------------------------------------------------- */

TEST(js_fetch_without_the_grant_is_refused)
{
	check_says("fetch('http://127.0.0.1:1/')"
	           ".catch(e => say(e.name, e.cause.code))",
	           "TypeError WEFT_EPERM ");
}

TEST(js_fetch_with_the_grant_reports_network_errors)
{
	struct script s;

	begin_with(&s, &granted);
	run(&s, "fetch('http://127.0.0.1:1/')"
	        ".catch(e => say(e.name, e.cause.code))");
	CHECK_STR(s.said, "TypeError WEFT_ECONNREFUSED ");
	end(&s);
}

TEST(js_fetch_ignores_options_from_a_polluted_prototype)
{
	check_says("for (const k of ['method', 'headers', 'body', 'redirect',"
	           " 'signal', 'status', 'statusText'])"
	           "  Object.prototype[k] = 'POST';"
	           "const show = (r) => say(r.method, [...r.headers].length,"
	           "  r.body === null, r.redirect, r.signal);"
	           "show(new Request('http://a/'));"
	           "show(new Request('http://a/', {}));"
	           "show(new Request(new Request('http://a/')));"
	           "const s = new Response();"
	           "say(s.status, s.statusText, [...s.headers].length);",
	           "GET 0 1 follow none GET 0 1 follow none GET 0 1 follow none 200  0 ");
	check_says("class Options { get method() { return 'put'; } }"
	           "say(new Request('http://a/', new Options()).method);"
	           "say(new Request('http://a/', { method: 'post' }).method);",
	           "PUT POST ");
}

TEST(js_engine_can_be_freed_while_it_waits_for_a_reply)
{
	struct script s;

	begin_with(&s, &granted);
	listen_here();
	eval_fetch(&s, ".then(say, say)");
	hear(&s);
	free_and_end(&s);
	CHECK_STR(s.said, "");
}

TEST(js_engine_can_be_freed_while_it_reads_a_body)
{
	struct script s;

	begin_with(&s, &granted);
	listen_here();
	eval_fetch(&s, ".then(r => { say(r.status); return r.text() })"
	               ".then(say, say)");
	hear(&s);
	put(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	while (!*s.said)
		turn(s.loop);
	turns(s.loop, 5);
	free_and_end(&s);
	CHECK_STR(s.said, "200 ");
}

TEST(js_engine_can_be_freed_with_an_unread_body)
{
	struct script s;

	begin_with(&s, &granted);
	listen_here();
	eval_fetch(&s, ".then(r => { globalThis.kept = r; say(r.ok) })");
	hear(&s);
	put(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	OK(weft_loop_run(s.loop)); /* an unread body does not keep the loop alive */
	CHECK_STR(s.said, "1 ");
	free_and_end(&s);
}

TEST(js_dropped_response_closes_its_connection)
{
	struct script s;

	begin_with(&s, &granted);
	listen_here();
	eval_fetch(&s, ".then(r => say(r.status))");
	hear(&s);
	put(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	OK(weft_loop_run(s.loop));
	CHECK_STR(s.said, "200 ");
	see_end(s.loop);
	end(&s);
}
