/* hash.h - SHA-256, to know by 32 bytes whether two things are the same. */
#ifndef WEFT_DAG_HASH_H
#define WEFT_DAG_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BYTES 32

struct hash {
	uint32_t state[8];
	uint64_t bytes;
	unsigned char block[64];
};

void hash_begin(struct hash *hash);
void hash_add(struct hash *hash, const void *data, size_t size);
void hash_end(struct hash *hash, unsigned char out[HASH_BYTES]);

/* A text with its length before it, so that two of them never read as others; NULL is
 * another than "". */
void hash_add_text(struct hash *hash, const char *text);
void hash_add_number(struct hash *hash, uint64_t number);

#endif
