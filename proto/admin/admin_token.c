/* admin_token.c - the token: in a header, in a query, in a cookie.
 *
 * A token in a query would stay in histories and logs.  So the reply sets a cookie and
 * redirects to the same path without the query.  The cookie has the token in hex, since a cookie
 * does not allow every byte, and the browser sends it only for pages of the same site.
 * Browsers share cookies between all ports of a host: the port is part of the cookie's name,
 * so that the admin endpoints of several programs do not overwrite each other's cookies.
 *
 * A comparison takes the same time wherever the tokens differ.
 */
#include "admin_private.h"
#include <stdio.h>
#include <string.h>
#include "base/proto_hex.h"

#define COOKIE         "weft_admin"
#define NAME_MAX_BYTES 32

/* The time depends on the given text, not on where the two differ. */
static bool
is_token(const char *given, size_t size, const char *token)
{
	size_t token_size = strlen(token);
	volatile unsigned differ = size != token_size;

	for (size_t i = 0; i < size; i++)
		differ |= (unsigned char)given[i] ^ (unsigned char)token[i % token_size];
	return differ == 0;
}

/* Whether the value of a cookie is the token. */
static bool
is_cookie(const char *value, size_t size, const char *token)
{
	char given[256];

	if (size % 2 || size / 2 > sizeof(given))
		return false;
	for (size_t i = 0; i < size / 2; i++) {
		int byte = weft__hex_byte(value + 2 * i);

		if (byte < 0)
			return false;
		given[i] = (char)byte;
	}
	return is_token(given, size / 2, token);
}

/* Write "weft_admin_7070=", with the port that the browser has used.  Returns the size. */
static size_t
name_cookie(weft_http *http, char *out)
{
	const char *host = weft_http_header(http, "Host");
	const char *port = host ? strrchr(host, ':') : NULL;
	size_t size = port ? strspn(port + 1, "0123456789") : 0;

	if (size == 0 || size > 5 || port[1 + size]) /* or the colon is within [::1] */
		return (size_t)snprintf(out, NAME_MAX_BYTES, COOKIE "=");
	return (size_t)snprintf(out, NAME_MAX_BYTES, COOKIE "_%s=", port + 1);
}

/* Check every cookie of that name: another server on this host may have set one. */
static bool
has_cookie(weft_http *http, const char *token)
{
	const char *cookies = weft_http_header(http, "Cookie");
	char name[NAME_MAX_BYTES];
	size_t name_size = name_cookie(http, name);
	bool entry = false;

	while (cookies && *cookies) {
		size_t size;

		cookies += strspn(cookies, " \t;");
		size = strcspn(cookies, ";");
		if (strncmp(cookies, name, name_size) == 0)
			entry |= is_cookie(cookies + name_size, size - name_size, token);
		cookies += size;
	}
	return entry;
}

/* The names of authentication schemes are case-insensitive. */
static bool
is_bearer(const char *given)
{
	static const char scheme[] = "bearer";

	for (size_t i = 0; scheme[i]; i++)
		if ((given[i] | 0x20) != scheme[i])
			return false;
	return given[sizeof(scheme) - 1] == ' ';
}

bool
weft__admin_shows_bearer(weft_admin *admin, weft_http *http)
{
	const char *given = weft_http_header(http, "Authorization");

	if (!admin->token || !given || !is_bearer(given))
		return false;
	return is_token(given + 7, strlen(given + 7), admin->token);
}

bool
weft__admin_shows_token(weft_admin *admin, weft_http *http)
{
	return weft__admin_shows_bearer(admin, http) || has_cookie(http, admin->token);
}

static int
set_cookie(weft_admin *admin, weft_http *http)
{
	struct weft__admin_text text = { 0 };
	char name[NAME_MAX_BYTES];
	int rc;

	weft__admin_put(&text, name, name_cookie(http, name));
	for (const char *at = admin->token; *at; at++) {
		char byte[3];

		(void)snprintf(byte, sizeof(byte), "%02x", (unsigned char)*at);
		weft__admin_puts(&text, byte);
	}
	weft__admin_put(&text, "; Path=/; HttpOnly; SameSite=Strict",
	                sizeof("; Path=/; HttpOnly; SameSite=Strict"));
	rc = text.error ? text.error : weft_http_set_header(http, "Set-Cookie", text.out.data);
	weft__admin_text_fini(&text);
	return rc;
}

/* Redirect to the same path: a Location of "?" removes the query. */
int
weft__admin_token_login(weft_admin *admin, weft_http *http)
{
	const char *given = weft_http_param(http, "token");
	int rc;

	if (!admin->token || !given)
		return 0;
	if (!is_token(given, strlen(given), admin->token)) {
		rc = weft__admin_reply_line(http, 401, "the token is wrong");
		return rc < 0 ? rc : 1;
	}
	rc = set_cookie(admin, http);
	if (rc == 0)
		rc = weft_http_set_header(http, "Location", "?");
	if (rc == 0)
		rc = weft__admin_reply_line(http, 303, "welcome");
	return rc < 0 ? rc : 1;
}
