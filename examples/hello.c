/* hello.c - the smallest program: is the library there, and what time is it? */
#include <inttypes.h>
#include <stdio.h>
#include <weft/weft.h>

int
main(void)
{
	printf("weft %s, %" PRIu64 " ns on the clock\n", weft_version(),
	       weft_now());
	return 0;
}
