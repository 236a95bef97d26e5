/* save.c - writes replies of the program to files. */
#include <base/terminal.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "top.h"

#define TRACE_SECONDS 5
#define SAVE_NS       (60 * WEFT_S) /* for the response headers, and between two parts of a body */
#define SAVE_MAX      ((uint64_t)1 << 30)
#define PIECE         16384u

struct saving {
	struct top *top;
	enum save what;
	char path[128];
	int fd;
	uint64_t size;
};

static const struct {
	const char *name, *suffix, *path, *begun;
} saves[] = {
	[SAVE_THREADLETS] = { "threadlets", "txt", "/debug/threadlets",
	                      "requesting all threadlets" },
	[SAVE_TRACE] = { "trace", "json", "/debug/trace?seconds=5", "recording a trace of 5 s" },
};

_Static_assert(TRACE_SECONDS == 5, "the path and the text say so");

static void
name_file(struct saving *saving)
{
	time_t now = time(NULL);
	struct tm parts;
	char when[32];

	(void)localtime_r(&now, &parts);
	(void)strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
	(void)snprintf(saving->path, sizeof(saving->path), "weft-%.0f-%s-%s.%s",
	               saving->top->model.pid, saves[saving->what].name, when,
	               saves[saving->what].suffix);
}

/* O_EXCL: never overwrites a file and never follows a link. */
static int
open_file(struct saving *saving)
{
	name_file(saving);
	saving->fd = open(saving->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (saving->fd < 0)
		return weft_fail(-errno, "%s: %s", saving->path, strerror(errno));
	return 0;
}

static int
save_copy(struct saving *saving, weft_http *http)
{
	char piece[PIECE];
	ssize_t n = 1;
	int rc;

	while (n > 0) {
		n = weft_http_read(http, piece, sizeof(piece), weft_after(SAVE_NS));
		if (n <= 0)
			break;
		saving->size += (uint64_t)n;
		if (saving->size > SAVE_MAX)
			return weft_fail(WEFT_EMSGSIZE, "the reply is larger than 1 GiB");
		rc = terminal_write_all(saving->fd, piece, (size_t)n);
		if (rc < 0)
			return weft_fail(rc, "%s: %s", saving->path, weft_strerror(rc));
	}
	return (int)n;
}

/* An incomplete file is deleted. */
static int
save(struct saving *saving)
{
	weft_http *http;
	int rc = link_request(saving->top, saves[saving->what].path, &http, weft_after(SAVE_NS));

	if (rc < 0)
		return rc;
	rc = open_file(saving);
	if (rc == 0) {
		rc = save_copy(saving, http);
		if (close(saving->fd) < 0 && rc == 0)
			rc = weft_fail(-errno, "%s: %s", saving->path, strerror(errno));
		if (rc < 0)
			(void)unlink(saving->path);
	}
	weft_http_close(http);
	return rc;
}

static int
run_save(void *arg)
{
	struct saving *saving = arg;
	struct top *top = saving->top;
	int rc = save(saving);
	char size[FORMAT_ROOM];

	top->saving &= ~(1u << saving->what);
	format_number(size, (double)saving->size, UNIT_BYTES);
	if (rc == 0)
		draw_message(top, "%s: %s bytes are in %s", saves[saving->what].name, size,
		             saving->path);
	else if (rc != WEFT_ECANCELED)
		draw_message(top, "%s: %s", saves[saving->what].name, weft_detail());
	free(saving);
	return 0;
}

void
save_begin(struct top *top, enum save what)
{
	const weft_go_opts opts = { .name = saves[what].name,
		                    .loop = top->loop,
		                    .stack_bytes = (size_t)128 << 10,
		                    .scope = &top->scope };
	struct saving *saving;

	if (top->saving & 1u << what)
		return; /* this one is still in progress */
	saving = calloc(1, sizeof(*saving));
	if (!saving)
		return;
	saving->top = top;
	saving->what = what;
	saving->fd = -1;
	if (weft_go_with(&opts, run_save, saving) < 0) {
		free(saving);
		return;
	}
	top->saving |= 1u << what;
	draw_message(top, "%s", saves[what].begun);
}
