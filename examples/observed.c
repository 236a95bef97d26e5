/* observed.c - a service with an admin endpoint and a dashboard. */
#include <stdio.h>
#include <weft/admin.h>
#include <weft/weft.h>

struct service {
	uint64_t served; /* used on the loop only */
	uint64_t waiting;
	weft_histogram *seconds;
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
	uint64_t begin_ns = weft_now();

	service->waiting++;
	weft_sleep(20 * WEFT_MS);
	service->waiting--;
	service->served++;
	weft_histogram_record(service->seconds, weft_now() - begin_ns);
	return weft_http_reply(http, 200, "text/plain", weft_text("hello\n"),
	                       weft_after(10 * WEFT_S));
}

static int
open_admin(const char *address, struct service *service, weft_admin **out)
{
	const weft_admin_metric metrics[] = {
		{ .name = "hello_served_total",
		  .help = "Requests answered.",
		  .type = WEFT_ADMIN_COUNTER,
		  .value = &service->served },
		{ .name = "hello_waiting",
		  .help = "Open requests.",
		  .read = read_waiting,
		  .arg = service },
		{ .name = "hello_seconds",
		  .help = "How long requests took.",
		  .type = WEFT_ADMIN_HISTOGRAM,
		  .unit = WEFT_ADMIN_SECONDS,
		  .histogram = service->seconds },
	};
	int rc = weft_admin_open(address, NULL, out);

	for (int i = 0; i < 3 && rc == 0; i++)
		rc = weft_admin_add_metric(*out, &metrics[i]);
	return rc;
}

static int
run(void *arg)
{
	char **words = arg; /* addresses of the service and of the dashboard */
	struct service service = { .seconds = weft_histogram_new() };
	weft_http_server *server = weft_http_server_new(NULL);
	weft_listener *listener = NULL;
	weft_admin *admin = NULL;
	int rc = service.seconds ? 0 : WEFT_ENOMEM;

	if (rc == 0)
		rc = weft_http_route(server, "GET /hello", on_hello, &service);
	if (rc == 0)
		rc = open_admin(words[1], &service, &admin);
	if (rc == 0)
		rc = weft_listener_open(words[0], NULL, &listener);
	if (rc == 0)
		rc = weft_http_serve(server, listener, WEFT_NEVER);
	weft_listener_close(listener);
	weft_admin_close(admin);
	weft_http_server_free(server);
	weft_histogram_free(service.seconds);
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
