/* url.h - where a request goes: absolute URLs, and references within them.  Private.
 *
 *	http://host:port/path?query      TCP, port 80 unless it says another
 *	https://host:port/path?query     TLS, port 443
 *	http+unix://%2Frun%2Fx.sock/path a Unix socket, its path with encoded slashes
 */
#ifndef WEFT_HTTP_URL_H
#define WEFT_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/base.h>

#define WEFT__HTTP_URL_MAX 8192 /* bytes */

/* Texts are in one piece of memory that `text` points to. */
struct weft__http_url {
	char       *text;    /* all of it, without a fragment; scheme and host in lower case */
	const char *target;  /* its end, from the path on: begins with a slash */
	const char *address; /* for weft_connect(); two of the same origin have the same */
	const char *host;    /* as Host says it: with a port that is not the default */
	bool        secure;
	bool        local;   /* a Unix socket */
};

/* Read an absolute URL.  Dot segments of its path are taken out, bytes above 127
 * encoded, a fragment left out.
 * Returns 0 and fills `out`, WEFT_EINVAL (weft_detail() has the URL and the reason; a user
 * in front of the host is one), WEFT_EMSGSIZE, WEFT_ENOMEM. */
int weft__http_url_parse(const char *text, struct weft__http_url *out);

/* Read a URL or a reference relative to `base`, as in a Location field.
 * Returns as above. */
int weft__http_url_resolve(const struct weft__http_url *base, const char *reference,
                           struct weft__http_url *out);

/* Free its texts, and zero it; any number of times. */
void weft__http_url_drop(struct weft__http_url *url);

/* How much of its text is fit for a message: the query may hold secrets. */
int weft__http_url_shown(const struct weft__http_url *url);

#endif
