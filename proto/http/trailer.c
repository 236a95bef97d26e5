/* trailer.c - what must not come as a trailer (RFC 9110, section 6.5.1).
 *
 * A field that frames, routes, authenticates, changes how a message is handled or how
 * its body is read comes too late after that body, and a reader that merges trailers
 * into the head would believe it.
 */
#include "inner.h"

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
	/* routing and how a request is meant */
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
	/* who asks */
	"authorization",
	"cookie",
	"proxy-authenticate",
	"proxy-authorization",
	"set-cookie",
	"www-authenticate",
	/* what the body is */
	"content-encoding",
	"content-range",
	"content-type",
	/* how a response is meant */
	"age",
	"date",
	"expires",
	"location",
	"retry-after",
	"vary",
	"warning",
};

bool
weft__http_not_a_trailer(struct text name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (weft__http_same(name, names[i]))
			return true;
	return false;
}
