/* bad_requests.h - requests that are refused, with their statuses; and parts to write requests
 * with. */
#ifndef WEFT_TEST_BAD_REQUESTS_H
#define WEFT_TEST_BAD_REQUESTS_H

#include <stddef.h>

#define S(text) text, sizeof(text) - 1
#define GET  "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define POST "POST / HTTP/1.1\r\n" HOST
#define END  "\r\n"
#define TE   "Transfer-Encoding: "
#define CL   "Content-Length: "

struct bad {
	int         status;
	const char *text;
	size_t      size;
};

extern const struct bad bad_requests[];
extern const size_t     bad_requests_count;

#endif
