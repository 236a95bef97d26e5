/* admin_scenarios.c - an admin endpoint that is opened, queried and closed.
 *
 * Whatever fails, opening either succeeds or leaves nothing behind, a reply that arrives
 * completely is valid, and closing ends.
 */
#include <stdio.h>
#include <string.h>
#include <weft/admin.h>
#include "fault.h"
#include "scenarios.h"

struct view {
	struct world world;
	char address[WEFT_ADDR_TEXT_MAX];
	int play_left;
};

static double
read_one(void *arg)
{
	(void)arg;
	return 1;
}

/* Request `path` and read the reply to its end, or up to the first event of an endless stream. */
static void
fetch_page(struct view *view, const char *path)
{
	char text[4096];
	weft_stream *stream;
	ssize_t n;
	int size = snprintf(text, sizeof(text),
	                    "GET %s HTTP/1.1\r\nHost: localhost\r\n"
	                    "Connection: close\r\n\r\n",
	                    path);

	if (!went_well(weft_stream_connect(view->address, NULL, &stream, soon()), 0))
		return;
	n = weft_stream_write(stream, text, (size_t)size, soon());
	while (went_well(n > 0, true)) {
		n = weft_stream_read(stream, text, sizeof(text), soon());
		if (n <= 0 || strcmp(path, "/events") == 0)
			break;
	}
	weft_stream_close(stream);
}

static void
fetch_pages(struct view *view, weft_admin *admin)
{
	static const char *const paths[] = {
		"/",
		"/debug/threadlets?format=json&sort=since&max=10",
		"/events",
	};
	const weft_admin_metric one = { .name = "one", .help = "One.", .read = read_one };

	(void)went_well(weft_admin_add_metric(admin, &one), 0);
	(void)went_well(weft_admin_add_panel(admin, "Panel", "<p>x</p>", NULL), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		fetch_page(view, paths[i]);
}

static int
play(void *arg)
{
	struct view *view = arg;
	weft_admin *admin = NULL;
	weft_addr addr;
	int rc = weft_admin_open("tcp://127.0.0.1:0", NULL, &admin);

	EXPECT((rc == 0) == (admin != NULL));
	if (went_well(rc, 0)) {
		EXPECT(weft_admin_local(admin, &addr) == 0);
		EXPECT(weft_addr_format(&addr, view->address, sizeof(view->address)) > 0);
		fetch_pages(view, admin);
	}
	weft_admin_close(admin);
	view->play_left = 0;
	return 0;
}

void
run_admin(const char *backend)
{
	struct view view = { .play_left = 0 };

	if (!make_world(&view.world, backend, 0))
		return;
	view.play_left = start_on(&view.world, play, &view);
	await_zero(&view.world, &view.play_left);
	check_works(&view.world);
	end_world(&view.world);
}
