/* crowd.c - a program with many threadlets and an admin endpoint without a panel.
 *
 *   crowd PORT COUNT
 *
 * Half of the threadlets sleep, half wait for an event that never comes.  Their names contain
 * text that a page might interpret as HTML.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/admin.h>
#include <weft/weft.h>

static weft_event never = WEFT_INIT;

static int
sleep_long(void *arg)
{
	(void)arg;
	return weft_sleep_until(WEFT_NEVER);
}

static int
wait_long(void *arg)
{
	(void)arg;
	return weft_event_wait(&never, WEFT_NEVER);
}

static int
gather(weft_scope *scope, int count)
{
	weft_threadlet last = 1;

	for (int i = 0; i < count && last > 0; i++) {
		char name[32];
		weft_go_opts opts = { .name = name, .scope = scope };

		(void)snprintf(name, sizeof(name), "<b>%s</b> %05d", i % 2 ? "sleeper" : "waiter",
		               i);
		last = weft_go_with(&opts, i % 2 ? sleep_long : wait_long, NULL);
	}
	return last > 0 ? 0 : (int)last;
}

static int
serve(weft_scope *scope, char **words)
{
	weft_admin_opts opts = { .title = "a crowd" };
	weft_admin *admin;
	weft_addr where;
	char address[64];
	int rc;

	(void)snprintf(address, sizeof(address), "tcp://127.0.0.1:%s", words[0]);
	rc = weft_admin_open(address, &opts, &admin);
	if (rc < 0)
		return rc;
	rc = gather(scope, (int)strtol(words[1], NULL, 10));
	if (rc == 0)
		rc = weft_admin_local(admin, &where);
	if (rc == 0) {
		(void)weft_addr_format(&where, address, sizeof(address));
		printf("page: http%s/\n", address + strlen("tcp"));
		(void)fflush(stdout);
		rc = weft_event_wait(&never, WEFT_NEVER);
	}
	weft_admin_close(admin);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

static int
run(void *words)
{
	weft_scope scope;
	int rc;

	(void)weft_scope_open(&scope, 0, WEFT_NEVER);
	rc = serve(&scope, words);
	weft_scope_cancel(&scope);
	(void)weft_scope_close(&scope);
	return rc;
}

int
main(int argc, char **argv)
{
	weft_runtime_opts opts = { .loops = 1 };

	return argc != 3 ? 2 : weft_main(&opts, run, argv + 1);
}
