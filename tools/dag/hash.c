/* hash.c - SHA-256 as specified in FIPS 180-4, favoring clarity over speed. */
#include <string.h>
#include "hash.h"

static const uint32_t rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t
turn(uint32_t word, int bits)
{
	return word >> bits | word << (32 - bits);
}

static void
spread(const unsigned char *block, uint32_t words[64])
{
	for (int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16
		           | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3)
		           + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
	}
}

static void
mix(struct hash *hash)
{
	uint32_t words[64], v[8];

	spread(hash->block, words);
	memcpy(v, hash->state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t one = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25))
		               + ((v[4] & v[5]) ^ (~v[4] & v[6])) + rounds[i] + words[i];
		uint32_t two = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22))
		               + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		hash->state[i] += v[i];
}

void
hash_begin(struct hash *hash)
{
	*hash = (struct hash){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void
hash_add(struct hash *hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	while (size > 0) {
		size_t at = hash->bytes % 64;
		size_t part = 64 - at < size ? 64 - at : size;

		memcpy(hash->block + at, bytes, part);
		hash->bytes += part;
		bytes += part;
		size -= part;
		if (at + part == 64)
			mix(hash);
	}
}

void
hash_end(struct hash *hash, unsigned char out[HASH_BYTES])
{
	static const unsigned char padding[64] = { 0x80 };
	uint64_t bits = hash->bytes * 8;
	unsigned char length[8];

	hash_add(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	hash_add(hash, length, 8);
	for (int i = 0; i < HASH_BYTES; i++)
		out[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void
hash_add_number(struct hash *hash, uint64_t number)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(number >> (8 * i));
	hash_add(hash, bytes, sizeof(bytes));
}

void
hash_add_text(struct hash *hash, const char *text)
{
	hash_add_number(hash, text ? strlen(text) + 1 : 0);
	if (text)
		hash_add(hash, text, strlen(text));
}
