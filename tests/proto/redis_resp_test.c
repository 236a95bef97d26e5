/* redis_resp_test.c - parsing of Redis replies: every type, every split, every limit. */
#include "base/sys.h"
#include "proto/resp_feed.h"
#include "test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct weft__resp_limits loose = { 1 << 20, 8, 1000 };

struct reading {
	const char *bytes, *tree; /* in the form of resp_write() */
};

static const struct reading readings[] = {
	{ "+OK\r\n", "$2\r\nOK\r\n" },
	{ "+\r\n", "$0\r\n\r\n" },
	{ "-ERR no\r\n", "!6\r\nERR no\r\n" },
	{ ":0\r\n", ":0\r\n" },
	{ ":-1\r\n", ":-1\r\n" },
	{ ":9223372036854775807\r\n", ":9223372036854775807\r\n" },
	{ ":-9223372036854775808\r\n", ":-9223372036854775808\r\n" },
	{ "$0\r\n\r\n", "$0\r\n\r\n" },
	{ "$5\r\nhello\r\n", "$5\r\nhello\r\n" },
	{ "$6\r\na\r\nb\r\n\r\n", "$6\r\na\r\nb\r\n\r\n" },
	{ "$12\r\ntwelve bytes\r\n", "$12\r\ntwelve bytes\r\n" },
	{ "$-1\r\n", "_\r\n" },
	{ "*-1\r\n", "_\r\n" },
	{ "_\r\n", "_\r\n" },
	{ "#t\r\n", "#t\r\n" },
	{ "#f\r\n", "#f\r\n" },
	{ ",1.5\r\n", ",1.5\r\n" },
	{ ",-0\r\n", ",-0\r\n" },
	{ ",1e+20\r\n", ",1e+20\r\n" },
	{ ",0.25E-7\r\n", ",0.25E-7\r\n" },
	{ ",inf\r\n", ",inf\r\n" },
	{ ",-inf\r\n", ",-inf\r\n" },
	{ ",nan\r\n", ",nan\r\n" },
	{ ",-nan\r\n", ",-nan\r\n" },
	{ "(1234567890123456789012345678901234567890\r\n",
	  "$40\r\n1234567890123456789012345678901234567890\r\n" },
	{ "(-7\r\n", "$2\r\n-7\r\n" },
	{ "!8\r\nERR a\r\nb\r\n", "!8\r\nERR a\r\nb\r\n" },
	{ "=7\r\ntxt:abc\r\n", "$3\r\nabc\r\n" },
	{ "=4\r\nmkd:\r\n", "$0\r\n\r\n" },
	{ "*0\r\n", "*0\r\n" },
	{ "*2\r\n$1\r\na\r\n$-1\r\n", "*2\r\n$1\r\na\r\n_\r\n" },
	{ "%0\r\n", "%0\r\n" },
	{ "%1\r\n+a\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n" },
	{ "~2\r\n#t\r\n_\r\n", "~2\r\n#t\r\n_\r\n" },
	{ ">2\r\n+message\r\n:1\r\n", ">2\r\n$7\r\nmessage\r\n:1\r\n" },
	{ "*3\r\n*1\r\n:1\r\n*0\r\n*2\r\n*1\r\n:2\r\n:3\r\n",
	  "*3\r\n*1\r\n:1\r\n*0\r\n*2\r\n*1\r\n:2\r\n:3\r\n" },
	{ "%1\r\n~1\r\n:1\r\n>1\r\n%1\r\n:2\r\n*-1\r\n",
	  "%1\r\n~1\r\n:1\r\n>1\r\n%1\r\n:2\r\n_\r\n" },
	/* Attributes, before and inside other items, and inside each other. */
	{ "|1\r\n+ttl\r\n:60\r\n$1\r\na\r\n", "$1\r\na\r\n" },
	{ "|0\r\n|0\r\n:5\r\n", ":5\r\n" },
	{ "*2\r\n|1\r\n+a\r\n*2\r\n$-1\r\n%1\r\n:1\r\n!1\r\nx\r\n:1\r\n:2\r\n",
	  "*2\r\n:1\r\n:2\r\n" },
	{ "|1\r\n|1\r\n+a\r\n+b\r\n=5\r\ntxt:c\r\n|1\r\n*-1\r\n>1\r\n:1\r\n~0\r\n"
	  "%1\r\n+k\r\n+v\r\n",
	  "%1\r\n$1\r\nk\r\n$1\r\nv\r\n" },
};

struct refusal {
	const char *bytes;
	int error;
};

static const struct refusal refusals[] = {
	{ "HTTP/1.1 400 Bad Request\r\n", WEFT_EPROTO },
	{ "\r\n", WEFT_EPROTO },
	{ "+a\n", WEFT_EPROTO },
	{ "+a\rb\r\n", WEFT_EPROTO },
	{ "+a\r\r\n", WEFT_EPROTO },
	{ ":\r\n", WEFT_EPROTO },
	{ ":-\r\n", WEFT_EPROTO },
	{ ":+1\r\n", WEFT_EPROTO },
	{ ":-0\r\n", WEFT_EPROTO },
	{ ":01\r\n", WEFT_EPROTO },
	{ ":-01\r\n", WEFT_EPROTO },
	{ ":1 \r\n", WEFT_EPROTO },
	{ ": 1\r\n", WEFT_EPROTO },
	{ ":1a\r\n", WEFT_EPROTO },
	{ ":9223372036854775808\r\n", WEFT_EPROTO },
	{ ":-9223372036854775809\r\n", WEFT_EPROTO },
	{ ":18446744073709551617\r\n", WEFT_EPROTO },
	{ ":111111111111111111111111111111\r\n", WEFT_EPROTO },
	{ "$\r\n", WEFT_EPROTO },
	{ "$-2\r\n", WEFT_EPROTO },
	{ "$+1\r\na\r\n", WEFT_EPROTO },
	{ "$01\r\na\r\n", WEFT_EPROTO },
	{ "$-0\r\n\r\n", WEFT_EPROTO },
	{ "$1\r\nabc\r\n", WEFT_EPROTO },
	{ "$1\r\na\n\r\n", WEFT_EPROTO },
	{ "$0\r\nabcd\r\n", WEFT_EPROTO },
	{ "$1\na\r\n", WEFT_EPROTO },
	{ "$18446744073709551615\r\n", WEFT_EPROTO },
	{ "$9223372036854775807\r\n", WEFT_EMSGSIZE },
	{ "$?\r\n;1\r\na\r\n;0\r\n", WEFT_EPROTO },
	{ "*?\r\n:1\r\n.\r\n", WEFT_EPROTO },
	{ "*-2\r\n", WEFT_EPROTO },
	{ "*x\r\n", WEFT_EPROTO },
	{ "*1\r\nx\r\n", WEFT_EPROTO },
	{ "*9223372036854775807\r\n", WEFT_EMSGSIZE },
	{ "%9223372036854775807\r\n", WEFT_EMSGSIZE },
	{ "%-1\r\n", WEFT_EPROTO },
	{ "~-1\r\n", WEFT_EPROTO },
	{ ">-1\r\n", WEFT_EPROTO },
	{ "|-1\r\n", WEFT_EPROTO },
	{ "!-1\r\n", WEFT_EPROTO },
	{ "=-1\r\n", WEFT_EPROTO },
	{ "=3\r\ntxt\r\n", WEFT_EPROTO },
	{ "=4\r\ntext\r\n", WEFT_EPROTO },
	{ "#\r\n", WEFT_EPROTO },
	{ "#x\r\n", WEFT_EPROTO },
	{ "#true\r\n", WEFT_EPROTO },
	{ "_x\r\n", WEFT_EPROTO },
	{ ",\r\n", WEFT_EPROTO },
	{ ",1.\r\n", WEFT_EPROTO },
	{ ",.5\r\n", WEFT_EPROTO },
	{ ",+1\r\n", WEFT_EPROTO },
	{ ",00.5\r\n", WEFT_EPROTO },
	{ ",1e\r\n", WEFT_EPROTO },
	{ ",1e+\r\n", WEFT_EPROTO },
	{ ",1e5e5\r\n", WEFT_EPROTO },
	{ ",1,5\r\n", WEFT_EPROTO },
	{ ",0x10\r\n", WEFT_EPROTO },
	{ ",infinity\r\n", WEFT_EPROTO },
	{ ",--inf\r\n", WEFT_EPROTO },
	{ ",NaN\r\n", WEFT_EPROTO },
	{ "(\r\n", WEFT_EPROTO },
	{ "(-\r\n", WEFT_EPROTO },
	{ "(+5\r\n", WEFT_EPROTO },
	{ "(1.5\r\n", WEFT_EPROTO },
};

static void
say(const char *bytes, const struct resp_outcome *got, const char *what)
{
	test_fail(__FILE__, __LINE__, "%s: %s: %zd, %.*s", bytes, what, got->rc,
	          (int)got->text.size, got->text.data ? got->text.data : "");
}

static struct resp_outcome
feed(const struct weft__resp_limits *limits, const char *bytes)
{
	struct resp_outcome got;

	resp_feed(limits, bytes, strlen(bytes), (struct resp_cut){ 0 }, &got);
	return got;
}

TEST(every_type_of_reply_is_parsed)
{
	for (size_t i = 0; i < COUNT(readings); i++) {
		struct resp_outcome got = feed(&loose, readings[i].bytes);
		struct resp_text want = { (char *)(uintptr_t)readings[i].tree,
			                  strlen(readings[i].tree), 0 };

		if (got.rc != (ssize_t)strlen(readings[i].bytes))
			say(readings[i].bytes, &got, "not read");
		if (!resp_same(&got, &(struct resp_outcome){ got.rc, want }))
			say(readings[i].bytes, &got, "another tree");
		resp_outcome_drop(&got);
	}
}

TEST(protocol_errors_are_refused_with_their_position)
{
	for (size_t i = 0; i < COUNT(refusals); i++) {
		struct resp_outcome got = feed(&loose, refusals[i].bytes);

		if (got.rc != refusals[i].error)
			say(refusals[i].bytes, &got, "not refused so");
		resp_add(&got.text, "", 1);
		CHECK(strncmp(got.text.data, "weft_redis_*: ", 14) == 0);
		CHECK(strstr(got.text.data, " byte ") != NULL);
		resp_outcome_drop(&got);
	}
}

static void
cut_everywhere(const struct weft__resp_limits *limits, const char *bytes, size_t size)
{
	struct resp_outcome whole, cut;

	resp_feed(limits, bytes, size, (struct resp_cut){ 0 }, &whole);
	for (size_t at = 0; at <= size; at++) {
		struct resp_cut how = { at ? RESP_TWO : RESP_BYTES, at };

		resp_feed(limits, bytes, size, how, &cut);
		if (!resp_same(&whole, &cut))
			say(bytes, &cut, "differs if cut");
		resp_outcome_drop(&cut);
	}
	resp_outcome_drop(&whole);
}

TEST(reply_is_parsed_the_same_wherever_it_is_split)
{
	for (size_t i = 0; i < COUNT(readings); i++)
		cut_everywhere(&loose, readings[i].bytes, strlen(readings[i].bytes));
	for (size_t i = 0; i < COUNT(refusals); i++)
		cut_everywhere(&loose, refusals[i].bytes, strlen(refusals[i].bytes));
}

/* Every byte limit from zero to more than enough: the reply is refused until the limit is
 * sufficient, with the same result wherever it is split. */
TEST(byte_limit_is_exact)
{
	for (size_t i = 0; i < COUNT(readings); i++) {
		const char *bytes = readings[i].bytes;
		size_t size = strlen(bytes);

		for (size_t max = 0; max <= size + 1; max++) {
			struct weft__resp_limits limits = { max, 8, 1000 };
			struct resp_outcome got = feed(&limits, bytes);

			if (got.rc != (max < size ? WEFT_EMSGSIZE : (ssize_t)size))
				say(bytes, &got, "not kept to its bytes");
			resp_outcome_drop(&got);
			cut_everywhere(&limits, bytes, size);
		}
	}
}

TEST(incomplete_reply_at_its_limit_is_refused_at_once)
{
	static const char *const starts[] = { "+aaaaaaa", ":1111111", "*1\r\n:12\r",
		                              "*2\r\n:1\r\n" };

	for (size_t i = 0; i < COUNT(starts); i++) {
		size_t size = strlen(starts[i]);
		struct weft__resp_limits limits = { size, 8, 1000 };
		struct resp_outcome got = feed(&limits, starts[i]);

		CHECK_EQ(got.rc, WEFT_EMSGSIZE);
		resp_outcome_drop(&got);
	}
}

TEST(item_limit_counts_the_items_of_all_lists)
{
	static const char bytes[] = "*2\r\n*2\r\n:1\r\n:2\r\n%1\r\n:3\r\n:4\r\n";

	for (uint32_t max = 0; max < 9; max++) {
		struct weft__resp_limits limits = { 1000, 8, max };
		struct resp_outcome got = feed(&limits, bytes);

		CHECK_EQ(got.rc, max < 7 ? WEFT_EMSGSIZE : (ssize_t)sizeof(bytes) - 1);
		resp_outcome_drop(&got);
		cut_everywhere(&limits, bytes, sizeof(bytes) - 1);
	}
}

/* `depth` nested lists. */
static struct resp_text
nested(int depth, char type)
{
	struct resp_text text = { 0 };

	for (int i = 0; i < depth; i++)
		resp_addf(&text, "%c1\r\n", type);
	resp_addf(&text, ":1\r\n");
	return text;
}

TEST(depth_limit_is_exact_and_at_most_the_built_in_one)
{
	for (int depth = 0; depth < WEFT__RESP_DEPTH + 3; depth++) {
		struct resp_text text = nested(depth, '*');

		for (uint32_t max = 0; max < WEFT__RESP_DEPTH + 3; max++) {
			struct weft__resp_limits limits = { 1000, max, 1000 };
			bool fits = depth <= (int)max && depth <= WEFT__RESP_DEPTH;
			struct resp_outcome got;

			resp_feed(&limits, text.data, text.size, (struct resp_cut){ 0 }, &got);
			CHECK_EQ(got.rc, fits ? (ssize_t)text.size : WEFT_EMSGSIZE);
			resp_outcome_drop(&got);
		}
		free(text.data);
	}
}

TEST(nested_attributes_are_limited_by_the_item_limit)
{
	struct weft__resp_limits limits = { 1 << 20, 8, 2000 };
	struct resp_text text = nested(999, '|');
	struct resp_outcome got;

	resp_feed(&limits, text.data, text.size, (struct resp_cut){ 0 }, &got);
	CHECK_EQ(got.rc, 0); /* many keys and values are missing */
	resp_outcome_drop(&got);
	text.size = 0;
	for (int i = 0; i < 2001; i++)
		resp_addf(&text, "|0\r\n");
	resp_feed(&limits, text.data, text.size, (struct resp_cut){ 0 }, &got);
	CHECK_EQ(got.rc, WEFT_EMSGSIZE);
	resp_outcome_drop(&got);
	free(text.data);
}

TEST(announced_size_over_the_limit_is_refused_at_once)
{
	static const char *const heads[] = { "$1000000000\r\n", "!101\r\n", "*1000000000\r\n",
		                             "%50\r\n", "|40\r\n" };
	struct weft__resp_limits limits = { 100, 8, 1000000 };

	for (size_t i = 0; i < COUNT(heads); i++) {
		struct resp_outcome got = feed(&limits, heads[i]);

		CHECK_EQ(got.rc, WEFT_EMSGSIZE);
		resp_outcome_drop(&got);
	}
}

TEST(bytes_after_a_reply_are_not_consumed)
{
	static const char bytes[] = "$1\r\na\r\n*1\r\n:1\r\n+OK\r\n???";
	struct weft__resp_scan scan = { 0 };
	const char *at = bytes;
	ssize_t sizes[] = { 7, 8, 5, WEFT_EPROTO };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		CHECK_EQ(weft__resp_scan(&scan, &loose, at, strlen(at)), sizes[i]);
		at += sizes[i] > 0 ? sizes[i] : 0;
		weft__resp_restart(&scan);
	}
}

TEST(bulk_string_may_contain_any_bytes)
{
	struct resp_text text = { 0 };

	resp_addf(&text, "$512\r\n");
	for (int i = 0; i < 512; i++)
		resp_addf(&text, "%c", i);
	resp_addf(&text, "\r\n");
	for (int taking = 0; taking < 2; taking++) {
		weft_redis_reply *reply = resp_read(text.data, text.size, taking);
		weft_span bytes;

		CHECK_EQ(weft_redis_text(reply, &bytes), 0);
		CHECK_EQ(bytes.size, 512);
		CHECK(memcmp(bytes.data, text.data + 6, 512) == 0);
		weft_redis_reply_free(reply);
	}
	cut_everywhere(&loose, text.data, text.size);
	free(text.data);
}

/* --- random trees -------------------------------------------------------------- */

struct tree {
	struct resp_text bytes; /* as a server may write it */
	struct resp_text want;  /* as resp_write() writes it */
	uint64_t random;
};

static uint64_t
below(struct tree *tree, uint64_t limit)
{
	return test_random(&tree->random) % limit;
}

static void
both(struct tree *tree, const char *text)
{
	resp_addf(&tree->bytes, "%s", text);
	resp_addf(&tree->want, "%s", text);
}

static void
draw_bytes(struct tree *tree)
{
	char data[300];
	size_t size = below(tree, 10) ? below(tree, 12) : below(tree, 300);
	bool verbatim = below(tree, 5) == 0;

	for (size_t i = 0; i < size; i++)
		data[i] = (char)(below(tree, 4) ? "\r\n$*:0"[below(tree, 6)]
		                                : (char)below(tree, 256));
	resp_addf(&tree->bytes, verbatim ? "=%zu\r\ntxt:" : "$%zu\r\n", size + (verbatim ? 4 : 0));
	resp_addf(&tree->want, "$%zu\r\n", size);
	resp_add(&tree->bytes, data, size);
	resp_add(&tree->want, data, size);
	both(tree, "\r\n");
}

static void
draw_leaf(struct tree *tree)
{
	static const char *const leaves[] = { "_\r\n", "#t\r\n", ",0.5\r\n", "!2\r\n\r\n\r\n" };
	static const struct reading others[] = {
		{ "$-1\r\n", "_\r\n" },
		{ "*-1\r\n", "_\r\n" },
		{ "-E\r\n", "!1\r\nE\r\n" },
		{ "+OK\r\n", "$2\r\nOK\r\n" },
	};
	uint64_t which = below(tree, 4);
	char number[32];

	switch (below(tree, 4)) {
	case 0:
		both(tree, leaves[which]);
		break;
	case 1:
		resp_addf(&tree->bytes, "%s", others[which].bytes);
		resp_addf(&tree->want, "%s", others[which].tree);
		break;
	case 2:
		(void)snprintf(number, sizeof(number), ":%lld\r\n",
		               (long long)test_random(&tree->random) >> below(tree, 64));
		both(tree, number);
		break;
	default:
		draw_bytes(tree);
	}
}

static void
draw_tree(struct tree *tree, int depth)
{
	uint64_t type = below(tree, 4), count = below(tree, 5);
	struct tree dropped = { .random = test_random(&tree->random) };
	char head[16];

	if (depth > 0 && below(tree, 8) == 0) {
		draw_tree(&dropped, depth - 1);
		resp_addf(&tree->bytes, "|1\r\n+k\r\n");
		resp_add(&tree->bytes, dropped.bytes.data, dropped.bytes.size);
		free(dropped.bytes.data);
		free(dropped.want.data);
	}
	if (depth == 0 || below(tree, 3) == 0) {
		draw_leaf(tree);
		return;
	}
	(void)snprintf(head, sizeof(head), "%c%d\r\n", "*%~>"[type], (int)count);
	both(tree, head);
	for (uint64_t i = 0; i < count * (type == 1 ? 2 : 1); i++)
		draw_tree(tree, depth - 1);
}

TEST(random_replies_round_trip)
{
	struct weft__resp_limits limits = { 1 << 20, 8, 100000 };
	struct tree tree = { .random = test_seed() };

	for (int i = 0; i < 3000; i++) {
		struct resp_cut cuts[] = { { RESP_WHOLE, 0 },
			                   { RESP_RANDOM, tree.random },
			                   { RESP_TWO, below(&tree, 100) } };

		tree.bytes.size = tree.want.size = 0;
		draw_tree(&tree, (int)below(&tree, 7));
		for (size_t how = 0; how < COUNT(cuts); how++) {
			struct resp_outcome got, want = { (ssize_t)tree.bytes.size, tree.want };

			resp_feed(&limits, tree.bytes.data, tree.bytes.size, cuts[how], &got);
			if (!resp_same(&got, &want))
				say("random tree", &got, "differs");
			resp_outcome_drop(&got);
		}
	}
	free(tree.bytes.data);
	free(tree.want.data);
}

/* --- without memory -------------------------------------------------------------- */

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(build_without_memory_fails_and_keeps_the_bytes)
{
	static const char *const replies[] = { "$1\r\na\r\n", "*2\r\n:1\r\n+a\r\n" };
	const struct weft__sys *before = weft__sys;
	struct weft__sys sys = *before;

	sys.alloc = no_memory;
	for (size_t i = 0; i < COUNT(replies); i++) {
		struct weft__resp_scan scan = { 0 };
		size_t size = strlen(replies[i]);
		char *data = weft_alloc(size);
		weft_redis_reply *reply = NULL;

		memcpy(data, replies[i], size);
		CHECK_EQ(weft__resp_scan(&scan, &loose, data, size), size);
		weft__sys = &sys;
		CHECK_EQ(weft__resp_build(&scan, data, size, &reply), WEFT_ENOMEM);
		CHECK_EQ(weft__resp_build_taking(&scan, data, size, &reply), WEFT_ENOMEM);
		weft__sys = before;
		CHECK(!reply && memcmp(data, replies[i], size) == 0);
		weft_release(data);
	}
}

TEST(list_is_one_allocation_however_many_items_it_has)
{
	static const char bytes[] = "*3\r\n*2\r\n:1\r\n$1\r\na\r\n%1\r\n+k\r\n"
				    "+v\r\n~1\r\n#t\r\n";
	int64_t held = test_live_allocations();
	weft_redis_reply *reply = resp_read(bytes, sizeof(bytes) - 1, false);

	CHECK_EQ(test_live_allocations(), held + 1);
	CHECK(weft__resp_bytes(reply) >= sizeof(bytes));
	weft_redis_reply_free(reply);
	CHECK_EQ(test_live_allocations(), held);
}
