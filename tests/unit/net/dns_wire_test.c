/* dns_wire_test.c - reading the negative TTL from DNS messages, well-formed or not. */
#include "net/dns/dns_wire.h"
#include "test.h"

/* A negative answer about a.test from the zone test.  The SOA record has a TTL of 900 s, the
 * negative TTL is 20 s. */
static const uint8_t message[] = {
	0x12, 0x34, 0x81, 0x83, 0,   1,   0,   0, 0, 1,    0, 0,  /* header */
	1,    'a',  4,    't',  'e', 's', 't', 0, 0, 1,    0, 1,  /* question */
	0xc0, 14,   0,    6,    0,   1,   0,   0, 3, 0x84, 0, 24, /* SOA */
	1,    'n',  0xc0, 14,   0,                                /* names */
	0,    0,    0,    1,    0,   0,   0,   2, 0, 0,    0, 3,  0, 0, 0, 4, 0, 0, 0, 20,
};

enum { SIZE = sizeof(message) - 1 + 1, TTL_AT = 30 };

static int64_t
ttl_of(const uint8_t *bytes, size_t size)
{
	/* Uses memory of exactly this size, so that a sanitizer detects reads beyond it. */
	uint8_t *copy = malloc(size ? size : 1);
	int64_t ttl;

	memcpy(copy, bytes, size);
	ttl = weft__dns_negative_ttl(copy, size);
	free(copy);
	return ttl;
}

TEST(dns_wire_returns_the_smaller_of_both_ttls)
{
	uint8_t changed[SIZE];

	CHECK_EQ(message[35], 24 + 0);
	memcpy(changed, message, SIZE);
	changed[35] = 25;
	CHECK_EQ(ttl_of(changed, SIZE), 20);
	changed[TTL_AT + 2] = 0;
	changed[TTL_AT + 3] = 7;
	CHECK_EQ(ttl_of(changed, SIZE), 7);
}

TEST(dns_wire_finds_no_negative_ttl_in_other_messages)
{
	uint8_t changed[SIZE];

	memcpy(changed, message, SIZE);
	changed[35] = 25;
	changed[3] = 0x82; /* SERVFAIL */
	CHECK_EQ(ttl_of(changed, SIZE), -1);
	changed[3] = 0x80; /* NOERROR without that record */
	CHECK_EQ(ttl_of(changed, SIZE), 20);
	changed[2] = 1; /* a query */
	CHECK_EQ(ttl_of(changed, SIZE), -1);
}

TEST(dns_wire_detects_a_malformed_answer_and_returns_its_question)
{
	char name[WEFT__DNS_QUESTION_MAX];
	uint8_t changed[SIZE];

	memcpy(changed, message, SIZE);
	changed[35] = 25;
	CHECK(!weft__dns_is_malformed(changed, SIZE, name));
	for (size_t size = 24; size < SIZE; size++) {
		CHECK(weft__dns_is_malformed(changed, size, name));
		CHECK_STR(name, "a.test");
	}
	changed[13] = 'A';
	CHECK(weft__dns_is_malformed(changed, SIZE - 1, name));
	CHECK_STR(name, "a.test");
	changed[2] |= 2; /* TC: truncated */
	CHECK(!weft__dns_is_malformed(changed, SIZE - 1, name));
	for (size_t size = 0; size < 24; size++)
		CHECK(!weft__dns_is_malformed(message, size, name));
}

TEST(dns_wire_handles_arbitrary_bytes)
{
	char name[WEFT__DNS_QUESTION_MAX];
	uint64_t seed = test_seed();
	uint8_t bytes[SIZE];

	for (size_t size = 0; size < SIZE; size++)
		CHECK_EQ(ttl_of(message, size), -1);
	for (int i = 0; i < 200000; i++) {
		memcpy(bytes, message, SIZE);
		for (int n = 0; n < 4; n++)
			bytes[test_random(&seed) % SIZE] = (uint8_t)test_random(&seed);
		(void)ttl_of(bytes, test_random(&seed) % (SIZE + 1));
		(void)weft__dns_is_malformed(bytes, SIZE, name);
	}
}
