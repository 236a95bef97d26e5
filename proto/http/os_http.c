/* os_http.c - what HTTP asks of the system that weft has no call for. */
#include "exchange.h"
#include <time.h>

int64_t
weft__http_os_seconds(void)
{
	return (int64_t)time(NULL);
}
