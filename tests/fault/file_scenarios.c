/* file_scenarios.c - files, read and written by threadlets.
 *
 * Whatever fails, each call returns once, the data that was read is the data that was written, and
 * a descriptor that was passed to a close is closed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fault.h"
#include "scenarios.h"

enum { READERS = 4 };

static const char text[] = "what is written";

/* How much of the text was transferred: all of it, unless a fault was injected. */
static size_t
count_of(int64_t result)
{
	bool whole = result == (int64_t)sizeof(text);

	EXPECT(whole || fault_hits() > 0);
	EXPECT(whole || !fault_is_painless() || result == 1);
	return result > 0 ? (size_t)result : 0;
}

struct reader {
	int left;
	ssize_t there; /* bytes written */
	char path[64];
};

struct reading {
	int fd;
	ssize_t there;
};

/* One of several that read at once, of which some are canceled. */
static int
read_again(void *arg)
{
	const struct reading *reading = arg;
	char buf[sizeof(text)];
	ssize_t count = weft_file_read(reading->fd, buf, sizeof(buf), 0, WEFT_NEVER);

	EXPECT(count == reading->there || count == WEFT_ECANCELED || fault_hits() > 0);
	EXPECT(count <= reading->there);
	EXPECT(count <= 0 || memcmp(buf, text, (size_t)count) == 0);
	return 0;
}

static void
read_at_once(int fd, ssize_t there)
{
	struct reading reading = { fd, there };
	weft_threadlet first = 0;
	weft_scope scope;

	if (!went_well(weft_scope_open(&scope, 0, WEFT_NEVER), 0))
		return;
	for (int i = 0; i < READERS; i++) {
		weft_threadlet id = weft_scope_go(&scope, read_again, &reading);

		EXPECT(id > 0 || fault_hits() > 0);
		first = first ? first : id;
	}
	(void)weft_yield();
	if (first > 0)
		(void)weft_cancel(first);
	EXPECT(weft_scope_close(&scope) == 0);
}

static int
use_file(void *arg)
{
	struct reader *reader = arg;
	char buf[sizeof(text)];
	ssize_t count;
	int fd = weft_file_open(reader->path, O_RDWR | O_CREAT, 0600, WEFT_NEVER);

	if (went_well(fd < 0 ? fd : 0, 0)) {
		reader->there = weft_file_write(fd, text, sizeof(text), 0, WEFT_NEVER);
		(void)count_of(reader->there);
		(void)went_well(weft_file_sync(fd, WEFT_NEVER), 0);
		count = weft_file_read(fd, buf, sizeof(buf), 0, weft_after(3600 * WEFT_S));
		EXPECT(count == reader->there || fault_hits() > 0);
		EXPECT(count <= 0 || memcmp(buf, text, (size_t)count) == 0);
		if (reader->there > 0)
			read_at_once(fd, reader->there);
		(void)went_well(weft_file_close(fd), 0);
	}
	reader->left = 0;
	return 0;
}

/* Returns the number of bytes written. */
static ssize_t
go_reading(struct world *world)
{
	struct reader reader = { .left = 1 };
	weft_go_opts opts = { .loop = world->loop };

	(void)snprintf(reader.path, sizeof(reader.path), "/tmp/weft-swept-%d", (int)getpid());
	if (weft_go_with(&opts, use_file, &reader) < 0) {
		EXPECT(fault_hits() > 0);
		return 0;
	}
	for (int i = 0; i < STEPS_MIN && reader.left > 0; i++)
		drive(world->loop, &reader.left);
	EXPECT(reader.left == 0);
	(void)unlink(reader.path);
	return reader.there;
}

void
run_file(const char *backend)
{
	struct world world;

	if (!make_world(&world, backend, 0))
		return;
	(void)go_reading(&world);
	if (fault_hits() > 0) {
		fault_heal();
		EXPECT(go_reading(&world) == sizeof(text));
	}
	check_works(&world);
	end_world(&world);
}
