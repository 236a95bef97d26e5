/* main.c - a program outside of the tree that uses the installed library. */
#include <stdio.h>
#include <weft/weft.h>

int
main(void)
{
	printf("weft %s from C\n", weft_version());
	return weft_in(0) == WEFT_NEVER;
}
