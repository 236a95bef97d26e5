/* admin.c - a program outside of the tree that uses the installed admin library. */
#include <stdio.h>
#include <weft/admin.h>
#include <weft/weft.h>

static int
run(void *arg)
{
	weft_admin *admin;
	int rc = weft_admin_open("tcp://127.0.0.1:0", NULL, &admin);

	(void)arg;
	printf("weft_admin from C: %s\n", weft_strerror(rc));
	if (rc == 0)
		weft_admin_close(admin);
	return rc;
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
