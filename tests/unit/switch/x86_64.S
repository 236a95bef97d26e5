/* x86_64.S - words.h for x86-64. */
#if defined(__x86_64__)

	.text

	.globl	switch_words_call
	.type	switch_words_call, @function
switch_words_call:
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%rcx
	subq	$16, %rsp
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	(%rcx), %rbx
	movq	8(%rcx), %rbp
	movq	16(%rcx), %r12
	movq	24(%rcx), %r13
	movq	32(%rcx), %r14
	movq	40(%rcx), %r15
	ldmxcsr	48(%rcx)
	fldcw	56(%rcx)
	call	*%rax
	movq	16(%rsp), %rcx
	movq	%rbx, (%rcx)
	movq	%rbp, 8(%rcx)
	movq	%r12, 16(%rcx)
	movq	%r13, 24(%rcx)
	movq	%r14, 32(%rcx)
	movq	%r15, 40(%rcx)
	stmxcsr	48(%rcx)
	fnstcw	56(%rcx)
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$24, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.size	switch_words_call, . - switch_words_call

	.globl	switch_words_get
	.type	switch_words_get, @function
switch_words_get:
	movq	$0, (%rdi)
	movq	$0, 8(%rdi)
	stmxcsr	(%rdi)
	fnstcw	8(%rdi)
	ret
	.size	switch_words_get, . - switch_words_get

	.globl	switch_words_set
	.type	switch_words_set, @function
switch_words_set:
	ldmxcsr	(%rdi)
	fldcw	8(%rdi)
	ret
	.size	switch_words_set, . - switch_words_set

	.globl	switch_words_entry
	.type	switch_words_entry, @function
switch_words_entry:
	leaq	8(%rsp), %rsi
	jmp	switch_words_begin
	.size	switch_words_entry, . - switch_words_entry

	.globl	switch_words_entry_off
	.type	switch_words_entry_off, @function
switch_words_entry_off:
	movq	%rsp, %rsi
	jmp	switch_words_begin
	.size	switch_words_entry_off, . - switch_words_entry_off

	.local	left
	.comm	left, 8, 8

	.pushsection .data.rel.ro, "aw"
	.globl	switch_words_forget
	.type	switch_words_forget, @object
	.p2align 3
switch_words_forget:
	.popsection

	.macro	forget get, put
1:	\get
	subq	$8, %rsp
	call	weft__stack_switch
	addq	$8, %rsp
	\put
	ret
	.pushsection .data.rel.ro, "aw"
	.quad	1b
	.popsection
	.endm

	.macro	forget_register name
	forget	"movq %\name, left(%rip)", "movq left(%rip), %\name"
	.endm

	forget_register rbx
	forget_register rbp
	forget_register r12
	forget_register r13
	forget_register r14
	forget_register r15
	forget	"stmxcsr left(%rip)", "ldmxcsr left(%rip)"
	forget	"fnstcw left(%rip)", "fldcw left(%rip)"

	.pushsection .data.rel.ro, "aw"
	.size	switch_words_forget, . - switch_words_forget
	.popsection

#endif

	.section .note.GNU-stack, "", %progbits
