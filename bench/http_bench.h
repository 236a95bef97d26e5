/* http_bench.h - parsing the header section of a request as a browser sends it.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   head_parse(data, size)   parse from scratch; returns the count of headers
 *
 * Each parser stores the target and the name and value of every header as slices of the input.
 * http.parse is CPU time of the thread per header section, http.parse.rate the same in
 * gigabytes per second.  The input starts at all offsets, as it does in a stream.
 */
#define HTTP_ROUNDS 10000
#define HTTP_PLACES 32

static const char http_head[] =
	"GET /articles/2024/how-servers-wait/?utm_source=feed&page=2 HTTP/1.1\r\n"
	"Host: www.example.com\r\n"
	"Connection: keep-alive\r\n"
	"Cache-Control: max-age=0\r\n"
	"Upgrade-Insecure-Requests: 1\r\n"
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like "
	"Gecko) Chrome/120.0.0.0 Safari/537.36\r\n"
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,"
	"image/webp,*/*;q=0.8\r\n"
	"Sec-Fetch-Site: same-origin\r\n"
	"Sec-Fetch-Mode: navigate\r\n"
	"Referer: https://www.example.com/articles/2024/\r\n"
	"Accept-Encoding: gzip, deflate, br\r\n"
	"Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
	"Cookie: session=9f86d081884c7d659a2feaa0c55ad015; theme=dark; consent=1\r\n"
	"\r\n";
#define HTTP_FIELDS 12
#define HTTP_SIZE   (sizeof(http_head) - 1)

/* Parse every copy once. */
static void
http_round(char *const *places)
{
	for (int i = 0; i < HTTP_PLACES; i++)
		BENCH_CHECK(head_parse(places[i], HTTP_SIZE) == HTTP_FIELDS);
}

static double
http_measure(void)
{
	size_t room = HTTP_SIZE + HTTP_PLACES;
	char *data = bench_array(HTTP_PLACES, room), *places[HTTP_PLACES];
	uint64_t begin;

	for (size_t i = 0; i < HTTP_PLACES; i++)
		places[i] = memcpy(data + i * room + i, http_head, HTTP_SIZE);
	for (int i = 0; i < HTTP_ROUNDS / 10; i++)
		http_round(places);
	begin = bench_cpu_ns();
	for (int i = 0; i < HTTP_ROUNDS; i++)
		http_round(places);
	begin = bench_cpu_ns() - begin;
	free(data);
	return (double)begin / HTTP_ROUNDS / HTTP_PLACES;
}

static double
http_rate(void)
{
	return (double)HTTP_SIZE / http_measure();
}

static const struct bench_row http_rows[] = {
	{ "http.parse", http_measure },
	{ "http.parse.rate", http_rate },
};

BENCH_MAIN(http_rows)
