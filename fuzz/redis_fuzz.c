/* redis_fuzz.c - replies of Redis, for any input and any split of it.
 *
 * The first byte of an input selects the kind of the rest: R a reply, r a reply with tight limits,
 * W arguments separated by zero bytes, N a number.  The second byte selects where the input is
 * split.  The rules:
 *
 *   1. The tree, or the error with its text, is the same for the input at once, byte by byte, in
 *      two pieces and in many.
 *   2. The tree equals that of the simple recursive parser below; limits refuse only what exceeds
 *      them.
 *   3. A tree that is written out is parsed to the same tree.
 *   4. Arguments that are written are read back; a number equals the one that libc parses.
 */
#include <string.h>
#include "fuzz.h"
#include "proto/resp_feed.h"

static const struct weft__resp_limits loose = { 1 << 20, WEFT__RESP_DEPTH, 100000 };
static const struct weft__resp_limits tight = { 60, 2, 8 };

/* --- rule 2: the simple parser ----------------------------------------------- */

struct plain {
	const char *at, *end;
	struct resp_text tree;
	size_t nodes, depth;
	bool bad;    /* the input cannot become a reply */
	bool short_; /* the input ends too early */
};

static bool
stop(struct plain *p, bool bad)
{
	p->bad |= bad;
	p->short_ |= !bad;
	return false;
}

/* The current line, without its end.  Unless `is_long`, a line is at most as long as a number. */
static bool
plain_line(struct plain *p, bool is_long, const char **text, size_t *size)
{
	*text = p->at;
	for (; p->at < p->end && *p->at != '\r'; p->at++)
		if (*p->at == '\n' || (!is_long && p->at - *text == 20))
			return stop(p, true);
	if (p->end - p->at < 2)
		return stop(p, false);
	if (p->at[1] != '\n')
		return stop(p, true);
	*size = (size_t)(p->at - *text);
	p->at += 2;
	return true;
}

/* A number in the form that Redis writes: printf() must produce the same digits. */
static bool
plain_integer(const char *text, size_t size, long long *out)
{
	char copy[32], again[32];

	if (size == 0 || size > 20)
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	*out = strtoll(copy, NULL, 10);
	(void)snprintf(again, sizeof(again), "%lld", *out);
	return strlen(again) == size && memcmp(copy, again, size) == 0;
}

static bool plain_element(struct plain *p, bool kept, size_t depth);

static bool
plain_items(struct plain *p, char type, long long count, bool kept, size_t depth)
{
	uint64_t items = (uint64_t)count * (type == '%' || type == '|' ? 2 : 1);
	bool attribute = type == '|';

	if (count < 0 && (type != '*' || count != -1))
		return stop(p, true);
	if (count < 0) {
		if (kept)
			resp_addf(&p->tree, "_\r\n");
		return true;
	}
	if (kept && !attribute)
		resp_addf(&p->tree, "%c%lld\r\n", type, count);
	depth += !attribute;
	p->depth = depth > p->depth ? depth : p->depth;
	for (uint64_t i = 0; i < items; i++)
		if (!plain_element(p, kept && !attribute, depth))
			return false;
	return !attribute || plain_element(p, kept, depth);
}

static bool
plain_bytes(struct plain *p, char type, long long length, bool kept)
{
	size_t skip = type == '=' ? 4 : 0;

	if (length < 0) {
		if (kept)
			resp_addf(&p->tree, "_\r\n");
		return (type == '$' && length == -1) || stop(p, true);
	}
	if (length < (long long)skip)
		return stop(p, true);
	if (p->end - p->at < 2 || p->end - p->at - 2 < length)
		return stop(p, false);
	if (memcmp(p->at + length, "\r\n", 2) != 0 || (type == '=' && p->at[3] != ':'))
		return stop(p, true);
	if (kept) {
		resp_addf(&p->tree, "%c%zu\r\n", type == '!' ? '!' : '$', (size_t)length - skip);
		resp_add(&p->tree, p->at + skip, (size_t)length - skip);
		resp_add(&p->tree, "\r\n", 2);
	}
	p->at += length + 2;
	return true;
}

static bool
plain_value(char type, const char *text, size_t size)
{
	size_t digits = size > 0 && text[0] == '-';
	long long number;

	if (type == '_')
		return size == 0;
	if (type == '#')
		return size == 1 && (*text == 't' || *text == 'f');
	if (type == ':')
		return plain_integer(text, size, &number);
	if (type == '(' && digits == size)
		return false;
	for (; type == '(' && digits < size; digits++)
		if (text[digits] < '0' || text[digits] > '9')
			return false;
	/* Rule 4 checks numbers with a decimal point. */
	return type != ',' || weft__resp_number(text, size, NULL);
}

static bool
plain_element(struct plain *p, bool kept, size_t depth)
{
	const char *text;
	long long number;
	size_t size;
	char type;

	if (p->at == p->end)
		return stop(p, false);
	type = *p->at++;
	if (!type || !strchr("+-:,(#_$!=*%~>|", type))
		return stop(p, true);
	p->nodes++;
	if (!plain_line(p, strchr("+-,(", type), &text, &size))
		return false;
	if (strchr("$!=*%~>|", type)) {
		if (!plain_integer(text, size, &number))
			return stop(p, true);
		return strchr("$!=", type) ? plain_bytes(p, type, number, kept)
		                           : plain_items(p, type, number, kept, depth);
	}
	if (!plain_value(type, text, size))
		return stop(p, true);
	if (!kept)
		return true;
	if (strchr("+-(", type))
		resp_addf(&p->tree, "%c%zu\r\n", type == '-' ? '!' : '$', size);
	else
		resp_add(&p->tree, &type, 1);
	resp_add(&p->tree, text, size);
	resp_add(&p->tree, "\r\n", 2);
	return true;
}

static void
compare_plain(const struct resp_outcome *got, const char *data, size_t size,
              const struct weft__resp_limits *limits)
{
	struct plain p = { .at = data, .end = data + size };
	bool read = plain_element(&p, true, 0);
	size_t used = (size_t)(p.at - data);
	bool fits = read && used <= limits->bytes_max && p.nodes <= limits->nodes_max
	            && p.depth <= limits->depth_max;

	ORACLE(!fits || got->rc == (ssize_t)used, "not read: %zd of %zu, %.*s", got->rc, used,
	       (int)got->text.size, got->text.data);
	ORACLE(fits || got->rc <= 0, "read, but should not be");
	ORACLE(!read || fits || got->rc == WEFT_EMSGSIZE, "limit: %zd", got->rc);
	ORACLE(!p.bad || got->rc < 0, "accepted: %zd", got->rc);
	ORACLE(!p.short_ || got->rc == 0 || got->rc == WEFT_EMSGSIZE || p.bad,
	       "ends too early: %zd", got->rc);
	ORACLE(!fits
	               || (got->text.size == p.tree.size
	                   && memcmp(got->text.data, p.tree.data, p.tree.size) == 0),
	       "another tree");
	free(p.tree.data);
}

/* --- rules 1 and 3 --------------------------------------------------------------- */

static void
check_reply(const char *data, size_t size, uint64_t seed, const struct weft__resp_limits *limits)
{
	struct resp_cut cuts[] = { { RESP_BYTES, 0 }, { RESP_TWO, seed }, { RESP_RANDOM, seed } };
	struct resp_outcome whole, other;

	resp_feed(limits, data, size, (struct resp_cut){ 0 }, &whole);
	for (int i = 0; i < 3; i++) {
		resp_feed(limits, data, size, cuts[i], &other);
		ORACLE(resp_same(&whole, &other), "cut %d: %zd, %zd", i, whole.rc, other.rc);
		resp_outcome_drop(&other);
	}
	compare_plain(&whole, data, size, limits);
	if (whole.rc > 0) {
		resp_feed(&loose, whole.text.data, whole.text.size, (struct resp_cut){ 0 }, &other);
		ORACLE(other.rc == (ssize_t)whole.text.size && other.text.size == whole.text.size
		               && memcmp(other.text.data, whole.text.data, whole.text.size) == 0,
		       "another tree when written again");
		resp_outcome_drop(&other);
	}
	resp_outcome_drop(&whole);
}

/* --- rule 4 ---------------------------------------------------------------------- */

static void
check_words(const char *data, size_t size)
{
	weft_span words[64];
	size_t count = 0, total;
	weft_redis_reply *reply;
	char *bytes;

	for (const char *at = data, *end = data + size; count < 64; count++) {
		const char *zero = memchr(at, '\0', (size_t)(end - at));
		const char *to = zero ? zero : end;

		words[count] = (weft_span){ at, (size_t)(to - at) };
		if (!zero) {
			count++;
			break;
		}
		at = zero + 1;
	}
	total = weft__resp_size(words, count);
	bytes = malloc(total);
	ORACLE(weft__resp_put(bytes, words, count) == bytes + total, "words of another size");
	reply = resp_read(bytes, total, size & 1);
	ORACLE(weft_redis_count(reply) == count, "another number of words");
	for (size_t i = 0; i < count; i++) {
		weft_span text = { NULL, 0 };

		(void)weft_redis_text(weft_redis_item(reply, i), &text);
		ORACLE(text.data && text.size == words[i].size
		               && memcmp(text.data, words[i].data, text.size) == 0,
		       "another word");
	}
	weft_redis_reply_free(reply);
	free(bytes);
}

static void
check_number(const char *data, size_t size)
{
	char *text = malloc(size + 1), *end;
	long long plain;
	int64_t integer;
	double number, want;

	memcpy(text, data, size);
	text[size] = '\0';
	if (weft__resp_number(data, size, &number)) {
		want = strtod(text, &end);
		ORACLE(*end == '\0' && end != text, "libc reads no number");
		ORACLE(memcmp(&number, &want, sizeof(want)) == 0
		               || (number != number && want != want),
		       "%a, not %a", number, want);
	}
	ORACLE(weft__resp_integer(data, size, &integer) == plain_integer(text, size, &plain),
	       "one integer, and one that is none");
	ORACLE(!plain_integer(text, size, &plain) || plain == integer, "another integer");
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const char *data = (const char *)input + 2;

	if (size < 2 || size > 4096)
		return 0;
	size -= 2;
	if (input[0] == 'W')
		check_words(data, size);
	else if (input[0] == 'N')
		check_number(data, size);
	else
		check_reply(data, size, input[1], input[0] == 'r' ? &tight : &loose);
	return 0;
}
