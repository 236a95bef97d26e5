/* sha1.c - the hash that identifies scripts in Redis (FIPS 180-4).  Not for secrets. */
#include "redis_client.h"

static uint32_t
rotate(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

static void
add_block(uint32_t *state, const unsigned char *block)
{
	static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t words[80];
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	for (int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16
		           | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t mix = i < 20   ? (b & c) | (~b & d)
		               : i < 40 ? b ^ c ^ d
		               : i < 60 ? (b & c) | (b & d) | (c & d)
		                        : b ^ c ^ d;
		uint32_t next = rotate(a, 5) + mix + e + constants[i / 20] + words[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void
weft__redis_sha1(const void *data, size_t size, char *out)
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	const unsigned char *bytes = data;
	unsigned char last[128] = { 0 };
	size_t left = size % 64, room = left < 56 ? 64 : 128;

	for (size_t at = 0; at + 64 <= size; at += 64)
		add_block(state, bytes + at);
	if (left > 0)
		memcpy(last, bytes + size - left, left);
	last[left] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[room - 1 - i] = (unsigned char)((uint64_t)size * 8 >> (8 * i));
	add_block(state, last);
	if (room == 128)
		add_block(state, last + 64);
	for (unsigned i = 0; i < 40; i++)
		out[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
	out[40] = '\0';
}
