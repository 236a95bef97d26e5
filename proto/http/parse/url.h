/* url.h - absolute URLs and references, for the client.  Private.
 *
 * 	http://host:port/path?query      TCP, port 80 by default
 * 	https://host:port/path?query     TLS, port 443 by default
 * 	http+unix://%2Frun%2Fx.sock/path a Unix socket; slashes in its path are encoded
 */
#ifndef WEFT_HTTP_URL_H
#define WEFT_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/base.h>

#define WEFT__HTTP_URL_MAX 8192 /* bytes */

/* All texts are in one allocation, which `text` points to. */
struct weft__http_url {
	char       *text;    /* the URL without a fragment; scheme and host in lower case */
	const char *target;  /* the end of `text`, from the path on; begins with a slash */
	const char *address; /* for weft_stream_connect(); the same for all URLs of an origin */
	const char *host;    /* for Host: includes a port that is not the default */
	bool        secure;
	bool        local;   /* a Unix socket */
};

/* Parse an absolute URL.  Dot segments of its path are removed, bytes above 127 are
 * percent-encoded, a fragment is dropped.
 * Returns 0 and fills `out`; WEFT_EINVAL, also for user information before the host, with the
 * URL and the reason in weft_detail(); WEFT_EMSGSIZE; WEFT_ENOMEM. */
int weft__http_url_parse(const char *text, struct weft__http_url *out);

/* Parse a URL, or a reference relative to `base`, as in a Location header.  Returns as above. */
int weft__http_url_resolve(const struct weft__http_url *base, const char *reference,
                           struct weft__http_url *out);

/* Free the texts and zero the struct.  May be called again. */
void weft__http_url_drop(struct weft__http_url *url);

/* How many bytes of the text a message may show: the query may hold secrets. */
int weft__http_url_shown(const struct weft__http_url *url);

#endif
