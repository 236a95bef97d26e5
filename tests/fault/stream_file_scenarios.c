/* stream_file_scenarios.c - a file that is sent over a pair between other bytes, and
 * descriptors that are passed over it.
 *
 * Whatever fails, the data that is read is a prefix of the data to send, and all of it if every
 * call of the sender succeeded.  No descriptor is left open.
 */
#include <stdio.h>
#include <string.h>
#include "base/sys.h"
#include "fault.h"
#include "scenarios.h"
#include "stream_pair.h"
#include "strike.h"

enum { FILE_SIZE = 9000, ALL = FILE_SIZE + 2 };

struct post {
	struct world world;
	weft_stream *a, *b;
	FILE *file;
	char bytes[ALL];
	size_t heard;
	bool said;
	int hear_left, say_left;
};

static int
hear(void *arg)
{
	struct post *post = arg;
	char buf[2048];
	ssize_t n;

	while ((n = weft_stream_read(post->b, buf, sizeof(buf), soon())) > 0) {
		EXPECT(post->heard + (size_t)n <= ALL);
		if (post->heard + (size_t)n <= ALL)
			EXPECT(memcmp(buf, post->bytes + post->heard, (size_t)n) == 0);
		post->heard += (size_t)n;
	}
	if (went_well(n, 0) && post->said)
		EXPECT(post->heard == ALL);
	weft_stream_close(post->b);
	post->hear_left = 0;
	return 0;
}

static int
say(void *arg)
{
	struct post *post = arg;

	post->said = went_well(weft_stream_write(post->a, post->bytes, 1, soon()), 1)
	             && went_well(weft_stream_write_file(post->a, fileno(post->file), 0,
	                                                 2 * FILE_SIZE, soon()),
	                          FILE_SIZE)
	             && went_well(weft_stream_write(post->a, post->bytes + ALL - 1, 1, soon()), 1);
	weft_stream_close(post->a);
	post->say_left = 0;
	return 0;
}

static int
pass(void *arg)
{
	struct post *post = arg;

	post->said = went_well(weft_stream_write(post->a, "hi", 2, soon()), 2)
	             && went_well(weft_stream_send_fd(post->a, fileno(post->file), soon()), 0)
	             && went_well(weft_stream_send_fd(post->a, fileno(post->file), soon()), 0);
	weft_stream_close(post->a);
	post->say_left = 0;
	return 0;
}

/* Receives the first descriptor, and reads past the second. */
static int
take(void *arg)
{
	struct post *post = arg;
	char buf[2];
	int fd = -1;

	if (went_well(weft_stream_set(post->b, "fds", 1), 0)
	    && went_well(weft_stream_read_exact(post->b, buf, 2, soon()), 2)
	    && went_well(weft_stream_recv_fd(post->b, &fd, soon()), 0)) {
		EXPECT(fd >= 0 && weft__sys_real.close(fd) == 0);
		if (went_well(weft_stream_read(post->b, buf, 1, soon()), 1))
			(void)went_well(weft_stream_read(post->b, buf, 1, soon()), 0);
	}
	weft_stream_close(post->b);
	post->hear_left = 0;
	return 0;
}

static void
play(struct post *post, weft_threadlet_fn say_it, weft_threadlet_fn hear_it)
{
	if (!went_well(open_stream_pair(&post->a, &post->b), 0))
		return;
	(void)went_well(weft_stream_set(post->a, "sndbuf", 2000), 0);
	post->hear_left = start_on(&post->world, hear_it, post);
	if (!post->hear_left)
		weft_stream_close(post->b);
	post->say_left = start_on(&post->world, say_it, post);
	if (!post->say_left)
		weft_stream_close(post->a);
	await_zero(&post->world, &post->say_left);
	await_zero(&post->world, &post->hear_left);
}

void
run_stream_file(const char *backend)
{
	struct post post = { .file = tmpfile() };

	EXPECT(post.file != NULL);
	for (int i = 0; i < ALL; i++)
		post.bytes[i] = (char)(i * 7 % 251);
	EXPECT(fwrite(post.bytes + 1, 1, FILE_SIZE, post.file) == FILE_SIZE);
	EXPECT(fflush(post.file) == 0);
	if (make_world(&post.world, backend, 0)) {
		play(&post, say, hear);
		play(&post, pass, take);
		check_works(&post.world);
		end_world(&post.world);
	}
	(void)fclose(post.file);
}
