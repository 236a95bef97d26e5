/* http_url_test.c - URLs of requests, and references in redirects. */
#include <string.h>
#include "http/parse/url.h"
#include "test.h"

static const struct {
	const char *text, *written, *address, *host, *target;
} good[] = {
	{ "http://example.org", "http://example.org/", "tcp://example.org:80", "example.org", "/" },
	{ "HTTPS://Example.ORG:443/A?b#c", "https://example.org/A?b", "tls://example.org:443",
	  "example.org", "/A?b" },
	{ "http://h:8080?q", "http://h:8080/?q", "tcp://h:8080", "h:8080", "/?q" },
	{ "https://h:80/", "https://h:80/", "tls://h:80", "h:80", "/" },
	{ "http://[::1]:9/x", "http://[::1]:9/x", "tcp://[::1]:9", "[::1]:9", "/x" },
	{ "http://[::1]/x", "http://[::1]/x", "tcp://[::1]:80", "[::1]", "/x" },
	{ "http://h:/x", "http://h/x", "tcp://h:80", "h", "/x" },
	{ "http://h/a/./b/../c", "http://h/a/c", "tcp://h:80", "h", "/a/c" },
	{ "http://h/../../a/..", "http://h/", "tcp://h:80", "h", "/" },
	{ "http://h/a/.?../x", "http://h/a/?../x", "tcp://h:80", "h", "/a/?../x" },
	{ "http://h//a///...", "http://h//a///...", "tcp://h:80", "h", "//a///..." },
	{ "http://h/\xc3\xa9?\xff", "http://h/%C3%A9?%FF", "tcp://h:80", "h", "/%C3%A9?%FF" },
	{ "http+unix://%2Frun%2fa.sock/x", "http+unix://%2Frun%2fa.sock/x", "unix:/run/a.sock",
	  "localhost", "/x" },
};

TEST(urls_are_normalized)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct weft__http_url url;

		CHECK_EQ(weft__http_url_parse(good[i].text, &url), 0);
		CHECK_STR(url.text, good[i].written);
		CHECK_STR(url.address, good[i].address);
		CHECK_STR(url.host, good[i].host);
		CHECK_STR(url.target, good[i].target);
		CHECK_EQ(url.secure, strncmp(url.address, "tls:", 4) == 0);
		CHECK_EQ(url.local, strncmp(url.address, "unix:", 5) == 0);
		weft__http_url_drop(&url);
		weft__http_url_drop(&url);
	}
}

TEST(invalid_urls_are_refused)
{
	static const char *const bad[] = {
		"",
		"/x",
		"h",
		"h/x",
		"ftp://h/",
		"http:/h",
		"http:h",
		"http://",
		"http:///x",
		"http://?q",
		"http://:80/",
		"http://u@h/",
		"http://u:p@h/",
		"http://h:0/",
		"http://h:x/",
		"http://h:65536/",
		"http://h:123456/",
		"http://h:-1/",
		"http://[::1/",
		"http://::1/",
		"http://[::1]x/",
		"http://[]/",
		"http://h h/",
		"http://h\r\n/",
		"http://h\\x/",
		"http://h%41/",
		"http://h/a b",
		"http://h/a\r\nX: y",
		"http://h/\t",
		"http://h/\x7f",
		"http://\xc3\xa9/",
		"http://h/?a b",
		"http+unix:///x",
		"http+unix://%2Fa b/",
		"http+unix://%2Fa\xff/",
		"http+unix://run/x",
		"http+unix://%2",
		"http+unix://%2Fa%00b/",
		"http+unix://%2Fa%0ab/",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weft__http_url url = { .host = "untouched" };
		int rc = weft__http_url_parse(bad[i], &url);

		if (rc != WEFT_EINVAL)
			CHECK_STR(bad[i], "refused");
		CHECK_STR(url.host, "untouched");
		CHECK(strncmp(weft_detail(), "url ", 4) == 0);
	}
}

/* Whatever the reason for the refusal is. */
TEST(error_text_contains_no_user_and_no_query)
{
	static const char *const bad[] = {
		"http://secret@h/",       "http://me:secret@h/x",
		"http://me:secret@h/a b", "https://me:se?secret@h/",
		"http://secret:0/x@h/",   "http://me:secret#@h/",
		"http+unix://secret@h/",  "ftp://me:secret@h/",
		"me:secret://x@h/",       "secret@h",
		"http://h:0/?secret",     "http://h:0/#secret",
	};
	struct weft__http_url url;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_EQ(weft__http_url_parse(bad[i], &url), WEFT_EINVAL);
		if (strstr(weft_detail(), "secret"))
			CHECK_STR(weft_detail(), bad[i]);
		CHECK(strncmp(weft_detail(), "url ", 4) == 0);
	}
	CHECK_EQ(weft__http_url_parse("http://me:x@h/y", &url), WEFT_EINVAL);
	CHECK_STR(weft_detail(),
	          "url http://...: user information before the host is not supported");
	CHECK_EQ(weft__http_url_parse("http://h:0/y?z", &url), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "url http://h:0/y: the port must not be 0");
}

TEST(url_that_is_too_long_is_refused_without_revealing_secrets)
{
	static char text[WEFT__HTTP_URL_MAX + 2];
	struct weft__http_url url, base;

	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "http://me:secret@h/", 19);
	CHECK_EQ(weft__http_url_parse("http://h/", &base), 0);
	CHECK_EQ(weft__http_url_parse(text, &url), WEFT_EMSGSIZE);
	CHECK(!strstr(weft_detail(), "secret"));
	memcpy(text, "?secret", 7);
	CHECK_EQ(weft__http_url_resolve(&base, text, &url), WEFT_EMSGSIZE);
	CHECK(!strstr(weft_detail(), "secret"));
	weft__http_url_drop(&base);
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "http://h/", 9);
	CHECK_EQ(weft__http_url_parse(text, &url), WEFT_EMSGSIZE);
	text[WEFT__HTTP_URL_MAX] = '\0';
	CHECK_EQ(weft__http_url_parse(text, &url), 0);
	CHECK_EQ(weft__http_url_shown(&url), 200);
	weft__http_url_drop(&url);
	CHECK_EQ(weft__http_url_parse("http://u:secret@h/?secret", &url), WEFT_EINVAL);
	CHECK(!strstr(weft_detail(), "secret"));
	CHECK(strstr(weft_detail(), "user information before the host is not supported"));
	CHECK_EQ(weft__http_url_parse("http://h/a\r\nb", &url), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "url http://h/a: contains a space or control byte");
	CHECK_EQ(weft__http_url_parse("http://h/a?secret", &url), 0);
	CHECK_EQ(weft__http_url_shown(&url), 10);
	weft__http_url_drop(&url);
}

static const struct {
	const char *reference, *written;
} references[] = {
	/* from RFC 3986, section 5.4, as far as they apply to http */
	{ "g", "http://a/b/c/g" },
	{ "./g", "http://a/b/c/g" },
	{ "g/", "http://a/b/c/g/" },
	{ "/g", "http://a/g" },
	{ "//g", "http://g/" },
	{ "?y", "http://a/b/c/d;p?y" },
	{ "g?y", "http://a/b/c/g?y" },
	{ "#s", "http://a/b/c/d;p?q" },
	{ "g#s", "http://a/b/c/g" },
	{ "g?y#s", "http://a/b/c/g?y" },
	{ ";x", "http://a/b/c/;x" },
	{ "", "http://a/b/c/d;p?q" },
	{ ".", "http://a/b/c/" },
	{ "./", "http://a/b/c/" },
	{ "..", "http://a/b/" },
	{ "../g", "http://a/b/g" },
	{ "../..", "http://a/" },
	{ "../../g", "http://a/g" },
	{ "../../../g", "http://a/g" },
	{ "/./g", "http://a/g" },
	{ "/../g", "http://a/g" },
	{ "g.", "http://a/b/c/g." },
	{ "..g", "http://a/b/c/..g" },
	{ "./../g", "http://a/b/g" },
	{ "./g/.", "http://a/b/c/g/" },
	{ "g/../h", "http://a/b/c/h" },
	{ "g?y/../x", "http://a/b/c/g?y/../x" },
	{ "https://x/y", "https://x/y" },
	{ "//x:81/y", "http://x:81/y" },
	{ "a:80/x", NULL },
	{ "javascript:alert(1)", NULL },
	{ "//u@x/", NULL },
	{ "/a b", NULL },
};

TEST(references_are_resolved_as_in_rfc_3986)
{
	struct weft__http_url base, url;

	CHECK_EQ(weft__http_url_parse("http://a/b/c/d;p?q", &base), 0);
	for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++) {
		int rc = weft__http_url_resolve(&base, references[i].reference, &url);

		if (!references[i].written) {
			CHECK_EQ(rc, WEFT_EINVAL);
			continue;
		}
		CHECK_EQ(rc, 0);
		CHECK_STR(url.text, references[i].written);
		weft__http_url_drop(&url);
	}
	weft__http_url_drop(&base);
}
