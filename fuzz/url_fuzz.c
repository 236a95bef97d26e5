/* url_fuzz.c - URLs and references of redirects: the canonical form is unambiguous.
 *
 * The input is a base URL and a reference, separated by a zero byte; without one, the reference is
 * empty.
 */
#include <string.h>
#include "fuzz.h"
#include "http/parse/url.h"

/* No byte that would end a word or a line, or begin another part of the URL. */
static void
is_clean(const char *text, const char *without)
{
	for (const char *at = text; *at; at++)
		ORACLE(*at > ' ' && *at < 0x7f && !strchr(without, *at), "byte %d in %s", *at,
		       text);
}

static void
check_url(const struct weft__http_url *url)
{
	struct weft__http_url again;
	size_t origin = (size_t)(url->target - url->text);

	is_clean(url->text, "#");
	is_clean(url->host, "/?#@%\\");
	ORACLE(url->target[0] == '/', "target %s", url->target);
	ORACLE(url->local
	               || (origin > strlen(url->host)
	                   && memcmp(url->target - strlen(url->host), url->host, strlen(url->host))
	                              == 0),
	       "host %s of %s", url->host, url->text);
	ORACLE(!strstr(url->target, "/../") || strchr(url->target, '?'), "dots in %s", url->target);
	if (strlen(url->text) > WEFT__HTTP_URL_MAX)
		return; /* percent-encoding has made it longer */
	ORACLE(weft__http_url_parse(url->text, &again) == 0, "not read back: %s", url->text);
	ORACLE(strcmp(url->text, again.text) == 0 && strcmp(url->address, again.address) == 0
	               && strcmp(url->host, again.host) == 0 && url->secure == again.secure
	               && url->local == again.local,
	       "read as another: %s, %s", url->text, again.text);
	weft__http_url_drop(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 2), *reference;
	struct weft__http_url base, url;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	reference = text + strlen(text) + (strlen(text) < size);
	if (weft__http_url_parse(text, &base) == 0) {
		check_url(&base);
		if (weft__http_url_resolve(&base, reference, &url) == 0) {
			check_url(&url);
			weft__http_url_drop(&url);
		}
		weft__http_url_drop(&base);
	}
	free(text);
	return 0;
}
