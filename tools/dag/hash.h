/* hash.h - SHA-256, to compare two things by 32 bytes. */
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

/* Add a text with its length first, so that different sequences of texts never hash the same
 * bytes.  NULL and "" differ. */
void hash_add_text(struct hash *hash, const char *text);
void hash_add_number(struct hash *hash, uint64_t number);

#endif
