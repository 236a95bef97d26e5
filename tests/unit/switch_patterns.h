/* switch_patterns.h - switch with a known value in every callee-saved register.
 *
 * In assembly, as no compiler keeps all of them in use at once.  Part of
 * switch_test.c only.
 */
#ifndef WEFT_TESTS_SWITCH_PATTERNS_H
#define WEFT_TESTS_SWITCH_PATTERNS_H

#include <stdint.h>

/* Fill all callee-saved registers from `seed`, switch, and return 0 if they hold
 * the same after it. */
uint64_t switch_test_patterns(void **save, void **load, uint64_t seed);

#if defined(__x86_64__)
__asm__(".text\n"
        "	.type switch_test_patterns, @function\n"
        "switch_test_patterns:\n"
        "	push %rbp\n	push %rbx\n	push %r12\n"
        "	push %r13\n	push %r14\n	push %r15\n"
        "	push %rdx\n"
        "	lea 1(%rdx), %rbx\n	lea 2(%rdx), %rbp\n"
        "	lea 3(%rdx), %r12\n	lea 4(%rdx), %r13\n"
        "	lea 5(%rdx), %r14\n	lea 6(%rdx), %r15\n"
        "	mov (%rsi), %rsi\n"
        "	call weft__stack_switch\n"
        "	pop %rdx\n"
        "	sub %rdx, %rbx\n	sub %rdx, %rbp\n"
        "	sub %rdx, %r12\n	sub %rdx, %r13\n"
        "	sub %rdx, %r14\n	sub %rdx, %r15\n"
        "	xor $1, %rbx\n	xor $2, %rbp\n	xor $3, %r12\n"
        "	xor $4, %r13\n	xor $5, %r14\n	xor $6, %r15\n"
        "	mov %rbx, %rax\n	or %rbp, %rax\n	or %r12, %rax\n"
        "	or %r13, %rax\n	or %r14, %rax\n	or %r15, %rax\n"
        "	pop %r15\n	pop %r14\n	pop %r13\n"
        "	pop %r12\n	pop %rbx\n	pop %rbp\n"
        "	ret\n"
        "	.size switch_test_patterns, . - switch_test_patterns\n");
#elif defined(__aarch64__)
#define PAIR(op, a, b, at) "	" op " " a ", " b ", [sp, #" at "]\n"
#define ALL(op)                                                                \
	PAIR(op, "x29", "x30", "0") PAIR(op, "x19", "x20", "16")               \
	PAIR(op, "x21", "x22", "32") PAIR(op, "x23", "x24", "48")              \
	PAIR(op, "x25", "x26", "64") PAIR(op, "x27", "x28", "80")              \
	PAIR(op, "d8", "d9", "96") PAIR(op, "d10", "d11", "112")               \
	PAIR(op, "d12", "d13", "128") PAIR(op, "d14", "d15", "144")
#define SET(r, d, n) \
	"	add x" r ", x2, #" n "\n	fmov d" d ", x" r "\n"
#define SEE(r, d, n)                                                           \
	"	sub x" r ", x" r ", x2\n	eor x" r ", x" r ", #" n "\n"  \
	"	orr x0, x0, x" r "\n"                                          \
	"	fmov x9, d" d "\n	sub x9, x9, x2\n"                      \
	"	eor x9, x9, #" n "\n	orr x0, x0, x9\n"
#define SEE_X(r, n)                                                            \
	"	sub x" r ", x" r ", x2\n	eor x" r ", x" r ", #" n "\n"  \
	"	orr x0, x0, x" r "\n"
#define EACH(op)                                                               \
	op("19", "8", "1") op("20", "9", "2") op("21", "10", "4")              \
	op("22", "11", "8") op("23", "12", "16") op("24", "13", "32")          \
	op("25", "14", "64") op("26", "15", "128")
__asm__(".text\n"
        "	.type switch_test_patterns, %function\n"
        "switch_test_patterns:\n"
        "	sub sp, sp, #176\n"
        ALL("stp")
        "	str x2, [sp, #160]\n"
        EACH(SET)
        "	add x27, x2, #256\n	add x28, x2, #512\n"
        "	add x29, x2, #1024\n"
        "	ldr x1, [x1]\n"
        "	bl weft__stack_switch\n"
        "	ldr x2, [sp, #160]\n"
        "	mov x0, xzr\n"
        EACH(SEE) SEE_X("27", "256") SEE_X("28", "512") SEE_X("29", "1024")
        ALL("ldp")
        "	add sp, sp, #176\n"
        "	ret\n"
        "	.size switch_test_patterns, . - switch_test_patterns\n");
#endif

#endif
