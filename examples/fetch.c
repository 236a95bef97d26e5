/* fetch.c - an HTTPS client: print the bodies of some URLs.
 *
 *     fetch CA-FILE|- URL ...
 */
#include <stdio.h>
#include <weft/http.h>
#include <weft/weft.h>

static int
fetch(weft_http_client *client, const char *url)
{
	weft_http_request request = { .url = url };
	const uint64_t wait_ns = 10 * WEFT_S;
	weft_http *http = NULL;
	char buf[8192];
	ssize_t n = weft_http_fetch(client, &request, &http,
	                            weft_after(wait_ns));

	if (n == 0)
		printf("%d %s\n", weft_http_status(http), weft_http_url(http));
	while (n >= 0) {
		n = weft_http_read(http, buf, sizeof buf, weft_after(wait_ns));
		if (n <= 0)
			break;
		fwrite(buf, 1, (size_t)n, stdout);
	}
	weft_http_close(http);
	return (int)n;
}

static int
run(void *arg)
{
	char **urls = arg, *ca = *urls++;
	weft_tls_opts trust = { .ca_file = ca[0] == '-' ? NULL : ca };
	weft_http_client_opts opts = { .redirects_max = 5 };
	weft_http_client *client;
	int rc = weft_tls_open(&trust, &opts.tls);

	if (rc < 0 || !(client = weft_http_client_new(&opts)))
		return rc < 0 ? rc : WEFT_ENOMEM;
	while (*urls && rc >= 0)
		rc = fetch(client, *urls++);
	weft_http_client_free(client);
	weft_tls_close(opts.tls);
	return rc;
}

int
main(int argc, char **argv)
{
	return argc < 3 ? 2 : weft_main(NULL, run, argv + 1);
}
