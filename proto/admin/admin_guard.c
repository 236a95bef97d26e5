/* admin_guard.c - which requests are handled.
 *
 *   1. The peer.  With a token: any peer that sends it.  Without one: only peers on this
 *      machine.  A proxy on this machine is such a peer, but its clients need not be: a request
 *      with headers of a proxy needs a token.
 *   2. The host name of the request.  Without a token it must be localhost, a name below it, an
 *      address in 127.0.0.0/8 or [::1]; peers on a Unix socket may use any.  Another site can
 *      make any other name resolve to this machine (DNS rebinding).  Other addresses of this
 *      machine (0.0.0.0, [::], [::ffff:127.0.0.1]) are refused too: browsers do not trust
 *      them, and so do not send them the headers that rule 3 reads.
 *   3. The site that makes the request, as browsers report it: by Sec-Fetch-Site, and by
 *      Origin, which must match the requested host and port.  Another port of this machine is
 *      another site.  Other sites may link to the page: then the browser shows it to its user
 *      only, and never in a frame.
 *   4. A request that writes must be a POST, and must either be reported as the page's own by
 *      rule 3, or have the token in a header, which no HTML form can send.
 */
#include "admin_private.h"
#include <string.h>
#include <sys/socket.h>
#include "os_admin.h"

#define HOST_MAX 256

/* The connection of a refused peer is closed: connections are limited. */
static int
admin_guard_refuse(weft_http *http, int status, const char *why)
{
	int rc = weft_http_set_header(http, "Connection", "close");

	if (rc == 0)
		rc = weft__admin_reply_line(http, status, why);
	return rc < 0 ? rc : WEFT_EPERM;
}

static bool
is_unix(const weft_addr *addr)
{
	struct sockaddr_storage storage = { 0 };

	if (addr->size == 0 || addr->size > sizeof(storage))
		return false;
	memcpy(&storage, addr->bytes, addr->size);
	return weft__admin_os_is_unix(&storage);
}

/* --- names ------------------------------------------------------------------------ */

static char
lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

static bool
same(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b))
		a++, b++;
	return lower(*a) == lower(*b);
}

/* Whether the text ends with `end`, ignoring case. */
static bool
ends(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && same(text + size - end_size, end);
}

/* The host of "host:port", without port and brackets.  False if it is malformed. */
static bool
cut_host(const char *text, char *out, bool *six)
{
	size_t size;

	*six = text[0] == '[';
	text += *six;
	size = strcspn(text, *six ? "]" : ":");
	if (size == 0 || size >= HOST_MAX || (*six && text[size] != ']'))
		return false;
	memcpy(out, text, size);
	out[size] = '\0';
	return true;
}

/* Rule 2. */
static bool
is_own_name(const char *host)
{
	char name[HOST_MAX];
	bool six;

	if (!host || !cut_host(host, name, &six))
		return false;
	return weft__admin_os_is_loopback(name, six)
	       || (!six && (same(name, "localhost") || ends(name, ".localhost")));
}

/* --- sites ------------------------------------------------------------------------ */

/* Whether Origin is the requested host and port.  The scheme is ignored, since a proxy may
 * change it. */
static bool
is_own_origin(const char *origin, const char *host)
{
	if (strncmp(origin, "http://", 7) == 0)
		origin += 7;
	else if (strncmp(origin, "https://", 8) == 0)
		origin += 8;
	else
		return false;
	return host && same(origin, host);
}

/* Rule 3: -1 another site, 1 this one, 0 not reported. */
static int
site_of(weft_http *http)
{
	const char *site = weft_http_header(http, "Sec-Fetch-Site");
	const char *origin = weft_http_header(http, "Origin");

	if (site && !same(site, "same-origin") && !same(site, "none"))
		return -1;
	if (origin && !is_own_origin(origin, weft_http_header(http, "Host")))
		return -1;
	return origin || (site && same(site, "same-origin")) ? 1 : 0;
}

/* Whether a browser navigates to the page, by a link. */
static bool
is_visit(weft_http *http)
{
	const char *mode = weft_http_header(http, "Sec-Fetch-Mode");
	const char *dest = weft_http_header(http, "Sec-Fetch-Dest");

	return strcmp(weft_http_method(http), "GET") == 0 && !weft_http_header(http, "Origin")
	       && mode && same(mode, "navigate") && (!dest || same(dest, "document"));
}

/* Whether a proxy has added its headers; rule 1. */
static bool
is_passed_on(weft_http *http)
{
	static const char *const names[] = {
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via", NULL
	};

	for (const char *const *name = names; *name; name++)
		if (weft_http_header(http, *name))
			return true;
	return false;
}

/* --- the checks ------------------------------------------------------------------- */

static int
check_peer(weft_admin *admin, weft_http *http)
{
	weft_addr peer;
	int rc = weft_http_peer(http, &peer);

	if (rc < 0)
		return rc;
	if (admin->token) {
		if (weft__admin_shows_token(admin, http))
			return 0;
		(void)weft_http_set_header(http, "WWW-Authenticate", "Bearer");
		return admin_guard_refuse(
			http, 401,
			"a token is needed: ?token=TOKEN, or Authorization: Bearer TOKEN");
	}
	if (!weft_addr_is_local(&peer) || is_passed_on(http))
		return admin_guard_refuse(
			http, 403, "only peers on this machine are answered without a token");
	if (!is_unix(&peer) && !is_own_name(weft_http_header(http, "Host")))
		return admin_guard_refuse(http, 403,
		                          "use the host name localhost, 127.0.0.1 or [::1]: "
		                          "another site could use any other name (DNS rebinding)");
	return 0;
}

static int
check_writing(weft_admin *admin, weft_http *http, int site)
{
	if (strcmp(weft_http_method(http), "POST") != 0) {
		(void)weft_http_set_header(http, "Allow", "POST");
		return admin_guard_refuse(http, 405, "only POST is allowed here");
	}
	if (site == 1 || weft__admin_shows_bearer(admin, http))
		return 0;
	return admin_guard_refuse(http, 403, "only the dashboard itself may make changes");
}

int
weft__admin_guard(weft_admin *admin, weft_http *http, enum weft__admin_use use)
{
	int rc = check_peer(admin, http);
	int site = site_of(http);

	if (rc < 0)
		return rc;
	if (site < 0 && !(use == WEFT__ADMIN_VISITS && is_visit(http)))
		return admin_guard_refuse(http, 403, "requests from other sites are refused");
	return use == WEFT__ADMIN_WRITES ? check_writing(admin, http, site) : 0;
}

int
weft_admin_authorize(weft_admin *admin, weft_http *http, bool writes)
{
	if (!admin || !http)
		return weft_fail(WEFT_EINVAL, "weft_admin_authorize: an argument is NULL");
	return weft__admin_guard(admin, http, writes ? WEFT__ADMIN_WRITES : WEFT__ADMIN_READS);
}
