/* main.c - a program outside of the tree that uses the installed library. */
#include <stdio.h>
#include <weft/weft.h>

int
main(void)
{
	weft_value value = weft_value_integer(1);
	weft_tls *tls = NULL;

	printf("weft %s from C, %s\n", weft_version(),
	       weft_tls_open(NULL, &tls) == 0 ? "with TLS" : "without TLS");
	weft_tls_close(tls);
	if (value.type != &weft_type_integer) /* same address inside and outside of the library */
		return 2;
	return weft_after(0) == WEFT_NEVER;
}
