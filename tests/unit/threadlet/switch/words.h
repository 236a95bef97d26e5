/* words.h - the words that a switch keeps, and a call with all of them known.
 *
 * A word is a callee-saved register or a floating-point control word.  They are
 * filled and read in assembly, x86_64.S and aarch64.S, as no compiler keeps all of
 * them in use at once.  Part of switch_words_test.c only.
 */
#ifndef WEFT_TESTS_SWITCH_WORDS_H
#define WEFT_TESTS_SWITCH_WORDS_H

#include <stdint.h>

struct word {
	const char *name;
	uint64_t    any;  /* bits that may be drawn at random */
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
	/* Rounding and precision, which is not 1.  With other masks an old flag
	 * would be a fault. */
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

/* Fill all words from `io`, call fn(save, load), and put what they hold after it
 * into `io`.  The caller's own come back unharmed, whatever fn did to them. */
void switch_words_call(switch_fn *fn, void **save, void *load, uint64_t *io);

/* Planted bugs: each switches, but for the word of its number, which it leaves as
 * the flow had it that ran before. */
extern switch_fn *const switch_words_forget[WORDS];

/* The control words now, as CONTROLS words; and others. */
void switch_words_get(uint64_t *out);
void switch_words_set(const uint64_t *in);

/* The first function of a flow: tells switch_words_begin(), of the test, which
 * stack pointer its caller had. */
void *switch_words_entry(void *arg);
void *switch_words_entry_off(void *arg); /* planted: tells one word less */
_Noreturn void switch_words_begin(void *arg, uintptr_t sp);

#endif
