/* observed.c - a service with an admin endpoint and a dashboard. */
#include <stdio.h>
#include <weft/admin.h>
#include <weft/weft.h>

struct service {
	uint64_t served; /* used on the loop only */
	uint64_t waiting;
};

static double
read_waiting(void *arg)
{
	return (double)((struct service *)arg)->waiting;
}

/* Waits, as for a database, so that the dashboard shows something. */
static int
on_hello(weft_http *http, void *arg)
{
	struct service *service = arg;

	service->waiting++;
	weft_sleep(20 * WEFT_MS);
	service->waiting--;
	service->served++;
	return weft_http_reply(http, 200, "text/plain", weft_text("hello\n"),
	                       weft_after(10 * WEFT_S));
}

static int
open_admin(const char *address, struct service *service, weft_admin **out)
{
	const weft_admin_metric served = {
		.name = "hello_served_total",
		.help = "Requests answered.",
		.type = WEFT_ADMIN_COUNTER,
		.value = &service->served,
	};
	const weft_admin_metric waiting = {
		.name = "hello_waiting",
		.help = "Open requests.",
		.read = read_waiting,
		.arg = service,
	};
	int rc = weft_admin_open(address, NULL, out);

	if (rc == 0)
		rc = weft_admin_add_metric(*out, &served);
	if (rc == 0)
		rc = weft_admin_add_metric(*out, &waiting);
	return rc;
}

static int
run(void *arg)
{
	char **words = arg; /* addresses of the service and of the dashboard */
	struct service service = { 0 };
	weft_http_server *server = weft_http_server_new(NULL);
	weft_listener *listener = NULL;
	weft_admin *admin = NULL;
	int rc = weft_http_route(server, "GET /hello", on_hello, &service);

	if (rc == 0)
		rc = open_admin(words[1], &service, &admin);
	if (rc == 0)
		rc = weft_listener_open(words[0], NULL, &listener);
	if (rc == 0)
		rc = weft_http_serve(server, listener, WEFT_NEVER);
	weft_listener_close(listener);
	weft_admin_close(admin);
	weft_http_server_free(server);
	return rc == WEFT_ECANCELED ? 0 : rc;
}

int
main(int argc, char **argv)
{
	const weft_runtime_opts opts = { .loops = 1 };

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS WINDOW\n", argv[0]);
		return 2;
	}
	return weft_main(&opts, run, argv + 1);
}
