/* dns_wire.c - two facts that c-ares does not report: how long a negative answer is valid, and
 * that one of two replies is malformed.
 *
 * The first is in the SOA record of the reply: the smaller of the record's TTL and its last
 * field.  The second is lost if the reply for the other address family comes later.  The bytes
 * are untrusted, so they are read by a cursor with an end.
 */
#include "net/dns/dns_wire.h"

enum {
	TYPE_A = 1,
	TYPE_SOA = 6,
	TYPE_AAAA = 28,
	TRUNCATED = 0x200, /* a flag of the header */
	RCODE_OK = 0,
	RCODE_NO_NAME = 3,
	SOA_NUMBERS = 20, /* bytes after its two names */
};

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

/* Advance by `size` bytes.  Returns where they begin, or NULL. */
static const uint8_t *
dns_wire_take(struct cursor *c, size_t size)
{
	const uint8_t *at = c->at;

	if ((size_t)(c->end - at) < size) {
		c->bad = true;
		return NULL;
	}
	c->at += size;
	return at;
}

static uint32_t
take_number(struct cursor *c, size_t size)
{
	const uint8_t *at = dns_wire_take(c, size);
	uint32_t number = 0;

	for (size_t i = 0; at && i < size; i++)
		number = number << 8 | at[i];
	return number;
}

/* Skip a name, which ends with an empty label or a compression pointer. */
static void
skip_name(struct cursor *c)
{
	uint32_t length = 1;

	while (length > 0 && !c->bad) {
		length = take_number(c, 1);
		if (length >= 0xc0) {
			(void)dns_wire_take(c, 1);
			return;
		}
		(void)dns_wire_take(c, length);
	}
}

static int64_t
smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Read a record.  Returns the negative TTL of a SOA record, or -1. */
static int64_t
read_record(struct cursor *c)
{
	uint32_t type, ttl, size;
	struct cursor data;

	skip_name(c);
	type = take_number(c, 2);
	(void)dns_wire_take(c, 2); /* class */
	ttl = take_number(c, 4);
	size = take_number(c, 2);
	data = (struct cursor){ .at = dns_wire_take(c, size) };
	if (c->bad || type != TYPE_SOA)
		return -1;
	data.end = c->at;
	skip_name(&data);
	skip_name(&data);
	(void)dns_wire_take(&data, SOA_NUMBERS - 4);
	size = take_number(&data, 4);
	return data.bad ? -1 : smaller(ttl, size);
}

int64_t
weft__dns_negative_ttl(const void *message, size_t size)
{
	struct cursor c = { .at = message };
	uint32_t flags, questions, answers, authorities;
	int64_t ttl = -1;

	c.end = c.at + size;
	(void)dns_wire_take(&c, 2); /* message ID */
	flags = take_number(&c, 2);
	questions = take_number(&c, 2);
	answers = take_number(&c, 2);
	authorities = take_number(&c, 2);
	(void)dns_wire_take(&c, 2);
	if (c.bad || !(flags >> 15) || questions != 1
	    || ((flags & 0xf) != RCODE_OK && (flags & 0xf) != RCODE_NO_NAME))
		return -1;
	skip_name(&c);
	(void)dns_wire_take(&c, 4);
	while (answers-- > 0 && !c.bad) /* aliases, if there is no such record */
		(void)read_record(&c);
	while (authorities-- > 0 && ttl < 0 && !c.bad)
		ttl = read_record(&c);
	return c.bad ? -1 : ttl;
}

/* Read the name of the question, which has no compression pointers. */
static void
read_question(struct cursor *c, char *out)
{
	uint32_t length;
	size_t size = 0;

	while ((length = take_number(c, 1)) > 0 && !c->bad) {
		const uint8_t *label = dns_wire_take(c, length);

		if (!label || length > 63 || size + length + 2 > WEFT__DNS_QUESTION_MAX) {
			c->bad = true;
			break;
		}
		if (size > 0)
			out[size++] = '.';
		for (uint32_t i = 0; i < length; i++) {
			char byte = (char)label[i];

			out[size++] = byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
		}
	}
	out[size] = '\0';
	(void)dns_wire_take(c, 4); /* type and class */
}

/* Whether a record is complete, and an address has its size. */
static bool
check_record(struct cursor *c)
{
	uint32_t type, size;

	skip_name(c);
	type = take_number(c, 2);
	(void)dns_wire_take(c, 6); /* class and TTL */
	size = take_number(c, 2);
	(void)dns_wire_take(c, size);
	return !c->bad && (type != TYPE_A || size == 4) && (type != TYPE_AAAA || size == 16);
}

bool
weft__dns_is_malformed(const void *message, size_t size, char name[WEFT__DNS_QUESTION_MAX])
{
	struct cursor c = { .at = message };
	uint32_t flags, questions, records = 0;

	c.end = c.at + size;
	(void)dns_wire_take(&c, 2); /* message ID */
	flags = take_number(&c, 2);
	questions = take_number(&c, 2);
	for (int i = 0; i < 3; i++)
		records += take_number(&c, 2);
	if (c.bad || !(flags >> 15) || (flags & TRUNCATED) || questions != 1)
		return false;
	read_question(&c, name);
	if (c.bad)
		return false;
	while (records-- > 0)
		if (!check_record(&c))
			return true;
	return false;
}
