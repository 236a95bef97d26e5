/* fuzz.h - what the fuzzers share: how an oracle reports a bug.
 *
 * run.sh recognizes a bug that an oracle has found, among other crashes, by the word "oracle:".
 */
#ifndef WEFT_FUZZ_FUZZ_H
#define WEFT_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ORACLE(cond, ...)                                  \
	((cond) ? (void)0                                  \
	        : (fprintf(stderr, "oracle: " __VA_ARGS__), \
	           fputc('\n', stderr), abort()))

#endif
