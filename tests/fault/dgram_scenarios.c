/* dgram_scenarios.c - datagrams with threadlets and a callback.
 *
 * Whatever fails, every call and every callback ends, the data that arrives is the data that was
 * sent, and a closed socket is closed.
 */
#include <errno.h>
#include <string.h>
#include "fault.h"
#include "scenarios.h"

struct post {
	weft_dgram *echo; /* used by a threadlet */
	weft_dgram *ours; /* used by a threadlet and a callback */
	weft_addr to;     /* address of `echo` */
	int echo_left;    /* 1: its threadlet has not ended */
	int send_left;    /* 1: the threadlet that asks has not ended */
	int send_result;  /* its result */
	int answer_left;  /* 1: its answer has not arrived */
	int face_left;    /* 1: the last callback has not run */
};

static void
on_messages(weft_dgram *dgram, const weft_message *messages, int count, void *arg)
{
	struct post *post = arg;

	EXPECT(dgram == post->ours && post->face_left == 1);
	EXPECT(count > 0 || count == WEFT_ESHUTDOWN || fault_hits() > 0);
	if (count == WEFT_ESHUTDOWN)
		post->face_left = 0;
	for (int i = 0; i < count; i++) {
		EXPECT(messages[i].size == 5 && memcmp(messages[i].data, "hello", 5) == 0);
		EXPECT(weft_addr_equal(&messages[i].addr, &post->to));
		post->answer_left = 0;
	}
}

/* Send one message back to its sender. */
static int
echo(void *arg)
{
	struct post *post = arg;
	char text[16];
	weft_message message = { .data = text, .size = sizeof(text) };
	int rc = 0;

	for (int i = 0; i < 2 && rc <= 0 && rc != WEFT_ETIMEDOUT; i++)
		rc = weft_dgram_recv(post->echo, &message, 1, weft_after(2 * WAIT_NS));
	if (went_well(rc, 1))
		(void)went_well(weft_dgram_send(post->echo, &message, 1, weft_after(10 * WAIT_NS)),
		                1);
	weft_dgram_close(post->echo);
	post->echo_left = 0;
	return 0;
}

static void
drive_long(struct world *world, const int *left)
{
	for (int i = 0; i<2 * STEPS_MIN && * left> 0; i++)
		drive(world->loop, left);
}

static int
send_one(void *arg)
{
	struct post *post = arg;
	weft_message message = { .data = (char[]){ "hello" }, .size = 5, .addr = post->to };

	post->send_result = weft_dgram_send(post->ours, &message, 1, weft_after(50 * WAIT_NS));
	(void)went_well(post->send_result, 1);
	post->send_left = 0;
	return 0;
}

static void
talk(struct world *world, struct post *post)
{
	weft_go_opts opts = { .loop = world->loop };

	post->face_left = went_well(weft_dgram_start(post->ours, world->loop, on_messages, post),
	                            0);
	post->echo_left = weft_go_with(&opts, echo, post) > 0;
	if (!post->echo_left)
		weft_dgram_close(post->echo);
	EXPECT(post->echo_left || fault_hits() > 0);
	post->send_left = weft_go_with(&opts, send_one, post) > 0;
	EXPECT(post->send_left || fault_hits() > 0);
	drive_long(world, &post->send_left);
	if (fault_hits() == 0 || post->send_result == 1)
		drive_long(world, &post->echo_left);
	post->answer_left = post->answer_left && fault_hits() == 0;
	drive_long(world, &post->answer_left);
	EXPECT(post->answer_left == 0);
	weft_dgram_close(post->ours);
	drive_long(world, &post->face_left);
	drive_long(world, &post->echo_left);
	EXPECT(post->face_left == 0 && post->echo_left == 0);
}

static bool
open_one(weft_dgram **out)
{
	return went_well(weft_dgram_open("udp://127.0.0.1:0", NULL, out), 0);
}

static void
parse_scope(void)
{
	weft_addr addr;
	int rc = weft_addr_parse("udp://[fe80::1%lo]:1", &addr);

	EXPECT(rc == 0 || rc == WEFT_EINVAL);
}

void
run_dgram(const char *backend)
{
	struct post post = { .answer_left = 1 };
	struct world world;

	if (!make_world(&world, backend, 0))
		return;
	if (open_one(&post.ours)) {
		parse_scope();
		if (!open_one(&post.echo)) {
			weft_dgram_close(post.ours);
		} else if (!went_well(weft_dgram_local(post.echo, &post.to), 0)) {
			weft_dgram_close(post.ours);
			weft_dgram_close(post.echo);
		} else {
			talk(&world, &post);
		}
	}
	check_works(&world);
	end_world(&world);
}
