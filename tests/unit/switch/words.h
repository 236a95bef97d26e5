/* words.h - the words that a context switch keeps, and a call with known values in all of them.
 *
 * A word is a callee-saved register or a floating-point control word.  Assembly (x86_64.S and
 * aarch64.S) fills and reads them, because no compiler keeps all of them in use at once.  Used
 * by switch_words_test.c only.
 */
#ifndef WEFT_TESTS_SWITCH_WORDS_H
#define WEFT_TESTS_SWITCH_WORDS_H

#include <stdint.h>

struct word {
	const char *name;
	uint64_t    any;  /* bits that may be random */
	uint64_t    ones; /* bits that are always set */
};

/* In the order of the assembly; the control words are last. */
#if defined(__x86_64__)
#define CONTROLS 2
static const struct word words[] = {
	{ "rbx", UINT64_MAX, 0 },
	{ "rbp", UINT64_MAX, 0 },
	{ "r12", UINT64_MAX, 0 },
	{ "r13", UINT64_MAX, 0 },
	{ "r14", UINT64_MAX, 0 },
	{ "r15", UINT64_MAX, 0 },
	{ "mxcsr", 0xffc0, 0 }, /* rounding, masks, flush to zero; no flags */
	/* Rounding and precision, which is not 1.  With other masks, a flag that is already set
	 * would cause a fault. */
	{ "the x87 control word", 0x0d00, 0x027f },
};
#elif defined(__aarch64__)
#define CONTROLS 1
static const struct word words[] = {
	{ "x19", UINT64_MAX, 0 }, { "x20", UINT64_MAX, 0 },
	{ "x21", UINT64_MAX, 0 }, { "x22", UINT64_MAX, 0 },
	{ "x23", UINT64_MAX, 0 }, { "x24", UINT64_MAX, 0 },
	{ "x25", UINT64_MAX, 0 }, { "x26", UINT64_MAX, 0 },
	{ "x27", UINT64_MAX, 0 }, { "x28", UINT64_MAX, 0 },
	{ "x29", UINT64_MAX, 0 },
	{ "d8", UINT64_MAX, 0 },  { "d9", UINT64_MAX, 0 },
	{ "d10", UINT64_MAX, 0 }, { "d11", UINT64_MAX, 0 },
	{ "d12", UINT64_MAX, 0 }, { "d13", UINT64_MAX, 0 },
	{ "d14", UINT64_MAX, 0 }, { "d15", UINT64_MAX, 0 },
	{ "fpcr", 0x07c00000, 0 }, /* rounding, flush to zero, NaN, half */
};
#endif

#define WORDS (sizeof(words) / sizeof(words[0]))

typedef void switch_fn(void **save, void *load);

/* Fills all words from `io`, calls fn(save, load), and stores the words' values after it in
 * `io`.  The caller's own words are restored, whatever fn did to them. */
void switch_words_call(switch_fn *fn, void **save, void *load, uint64_t *io);

/* Planted bugs: each one switches, but does not restore the word with its number.  That word
 * keeps the value of the flow that ran before. */
extern switch_fn *const switch_words_forget[WORDS];

/* Read the control words, as CONTROLS words; and set them. */
void switch_words_get(uint64_t *out);
void switch_words_set(const uint64_t *in);

/* The first function of a flow.  It passes the stack pointer of its caller to
 * switch_words_begin(), which the test defines. */
void *switch_words_entry(void *arg);
void *switch_words_entry_off(void *arg); /* planted bug: passes one word less */
_Noreturn void switch_words_begin(void *arg, uintptr_t sp);

#endif
