/* dgram_train_test.c - messages that are sent as one train arrive as separate messages. */
#include <errno.h>
#include "base/sys.h"
#include "unit/net/letters.h"

#define MANY 64

static struct weft__sys counting;
static uint32_t joined; /* messages that were sent in trains */
static int refusal;     /* error for trains: -errno or 0 */

static int
count_trains(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	for (uint32_t i = 0; i < count; i++)
		if (msgs[i].hdr.msg_iovlen > 1) {
			if (refusal)
				return i > 0 ? weft__sys_real.sendmmsg(fd, msgs, i, flags)
				             : refusal;
			joined += (uint32_t)msgs[i].hdr.msg_iovlen;
		}
	return weft__sys_real.sendmmsg(fd, msgs, count, flags);
}

/* Sends messages of these sizes alternately to two sockets, `run` at a time to each, and checks
 * that they arrive. */
static void
check_all(const size_t *sizes, size_t kinds, int run)
{
	static char bytes[MANY][3000], room[3000];
	const struct weft__sys *before = weft__sys;
	weft_dgram *from = open_at(LOOPBACK);
	weft_dgram *to[2] = { open_at(LOOPBACK), open_at(LOOPBACK) };
	weft_message messages[MANY];

	counting = *before;
	counting.sendmmsg = count_trains;
	weft__sys = &counting;
	joined = 0;
	for (int i = 0; i < MANY; i++) {
		memset(bytes[i], i, sizeof(bytes[i]));
		messages[i] = (weft_message){ bytes[i], sizes[(size_t)i % kinds],
			                      local_of(to[i / run % 2]), false };
	}
	CHECK_EQ(weft_dgram_send(from, messages, MANY, WEFT_NOWAIT), MANY);
	for (int i = 0; i < MANY; i++) {
		weft_message got = { .data = room, .size = sizeof(room) };

		CHECK_EQ(weft_dgram_recv(to[i / run % 2], &got, 1, WEFT_NOWAIT), 1);
		CHECK_EQ(got.size, messages[i].size);
		CHECK(memcmp(room, bytes[i], got.size) == 0);
	}
	weft__sys = before;
	weft_dgram_close(from);
	weft_dgram_close(to[0]);
	weft_dgram_close(to[1]);
}

static bool
has_trains(void)
{
#ifdef WEFT_PORTABLE
	return false;
#else
	return true;
#endif
}

TEST(messages_of_one_size_are_sent_as_a_train_and_arrive_separately)
{
	refusal = 0;
	check_all((size_t[]){ 100 }, 1, MANY);
	CHECK_EQ(joined, has_trains() ? MANY : 0);
	check_all((size_t[]){ 100 }, 1, 4);
	CHECK_EQ(joined, has_trains() ? MANY : 0);
	check_all((size_t[]){ 2900 }, 1, MANY / 2); /* 32 exceed 64 KiB */
	CHECK(!has_trains() || (joined > MANY / 2 && joined <= MANY));
}

TEST(messages_of_different_sizes_are_not_joined_except_a_shorter_last)
{
	refusal = 0;
	check_all((size_t[]){ 100, 100, 100, 40 }, 4, MANY);
	CHECK_EQ(joined, has_trains() ? MANY : 0);
	check_all((size_t[]){ 40, 100 }, 2, MANY); /* pairs: 100 and 40 */
	CHECK(!has_trains() || (joined > 0 && joined < MANY));
	check_all((size_t[]){ 0, 1, 0, 2 }, 4, MANY);
	CHECK_EQ(joined, 0);
	check_all((size_t[]){ 100 }, 1, 1);
	CHECK_EQ(joined, 0);
}

TEST(refused_train_is_sent_message_by_message)
{
	static const int errors[] = { -EIO, -EINVAL, -EMSGSIZE, -EOPNOTSUPP };

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		refusal = errors[i];
		check_all((size_t[]){ 100 }, 1, MANY);
		CHECK_EQ(joined, 0);
		check_all((size_t[]){ 10, 100, 100, 100 }, 4, MANY / 2);
		CHECK_EQ(joined, 0);
	}
}
