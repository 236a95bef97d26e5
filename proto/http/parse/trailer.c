/* trailer.c - headers that must not be sent as trailers (RFC 9110, section 6.5.1).
 *
 * A header that controls framing, routing or authentication, or changes how the message or its
 * body is processed, comes too late after the body.  A recipient that merges trailers into the
 * headers would still act on it.
 */
#include "http/parse/parse_inner.h"

static const char *const names[] = {
	/* framing and the connection */
	"connection",
	"content-length",
	"keep-alive",
	"proxy-connection",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	/* routing and request control */
	"cache-control",
	"expect",
	"forwarded",
	"host",
	"max-forwards",
	"origin",
	"pragma",
	"range",
	/* conditions */
	"if-match",
	"if-modified-since",
	"if-none-match",
	"if-range",
	"if-unmodified-since",
	/* authentication */
	"authorization",
	"cookie",
	"proxy-authenticate",
	"proxy-authorization",
	"set-cookie",
	"www-authenticate",
	/* content */
	"content-encoding",
	"content-range",
	"content-type",
	/* response control */
	"age",
	"date",
	"expires",
	"location",
	"retry-after",
	"vary",
	"warning",
	NULL,
};

bool
weft__http_not_a_trailer(struct text name)
{
	return weft__http_is_one_of(name, names);
}
