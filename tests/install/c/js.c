/* js.c - a program outside of the tree that uses the installed JavaScript library. */
#include <stdio.h>
#include <weft/js.h>
#include <weft/loop.h>

int
main(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_js *js = loop ? weft_js_new(loop, NULL) : NULL;
	weft_value value = { 0 };
	int rc = weft_js_eval(js, "[1, 2, 3].map(x => 2 * x)[2]", NULL, &value);

	printf("weft_js from C: %s\n", weft_strerror(rc));
	return rc < 0 || value.as.integer != 6 || weft_js_free(js) < 0 || weft_loop_free(loop) < 0;
}
