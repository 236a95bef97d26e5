/* aarch64.S - words.h for 64-bit ARM. */
#if defined(__aarch64__)

	.text

	.globl	switch_words_call
	.type	switch_words_call, %function
switch_words_call:
	stp	x29, x30, [sp, #-176]!
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x9, fpcr
	stp	x3, x9, [sp, #160]
	mov	x16, x0
	mov	x0, x1
	mov	x1, x2
	ldp	x19, x20, [x3]
	ldp	x21, x22, [x3, #16]
	ldp	x23, x24, [x3, #32]
	ldp	x25, x26, [x3, #48]
	ldp	x27, x28, [x3, #64]
	ldr	x29, [x3, #80]
	ldp	d8, d9, [x3, #88]
	ldp	d10, d11, [x3, #104]
	ldp	d12, d13, [x3, #120]
	ldp	d14, d15, [x3, #136]
	ldr	x9, [x3, #152]
	msr	fpcr, x9
	blr	x16
	ldp	x3, x9, [sp, #160]
	stp	x19, x20, [x3]
	stp	x21, x22, [x3, #16]
	stp	x23, x24, [x3, #32]
	stp	x25, x26, [x3, #48]
	stp	x27, x28, [x3, #64]
	str	x29, [x3, #80]
	stp	d8, d9, [x3, #88]
	stp	d10, d11, [x3, #104]
	stp	d12, d13, [x3, #120]
	stp	d14, d15, [x3, #136]
	mrs	x10, fpcr
	str	x10, [x3, #152]
	msr	fpcr, x9
	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x27, x28, [sp, #80]
	ldp	x25, x26, [sp, #64]
	ldp	x23, x24, [sp, #48]
	ldp	x21, x22, [sp, #32]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #176
	ret
	.size	switch_words_call, . - switch_words_call

	.globl	switch_words_get
	.type	switch_words_get, %function
switch_words_get:
	mrs	x9, fpcr
	str	x9, [x0]
	ret
	.size	switch_words_get, . - switch_words_get

	.globl	switch_words_set
	.type	switch_words_set, %function
switch_words_set:
	ldr	x9, [x0]
	msr	fpcr, x9
	ret
	.size	switch_words_set, . - switch_words_set

	.globl	switch_words_entry
	.type	switch_words_entry, %function
switch_words_entry:
	mov	x1, sp
	b	switch_words_begin
	.size	switch_words_entry, . - switch_words_entry

	.globl	switch_words_entry_off
	.type	switch_words_entry_off, %function
switch_words_entry_off:
	sub	x1, sp, #8
	b	switch_words_begin
	.size	switch_words_entry_off, . - switch_words_entry_off

	.local	left
	.comm	left, 8, 8

	.pushsection .data.rel.ro, "aw"
	.globl	switch_words_forget
	.type	switch_words_forget, %object
	.p2align 3
switch_words_forget:
	.popsection

	.macro	forget name, get="", put=""
1:	stp	x29, x30, [sp, #-16]!
	adrp	x16, left
	\get
	str	\name, [x16, :lo12:left]
	bl	weft__stack_switch
	ldp	x29, x30, [sp], #16
	adrp	x16, left
	ldr	\name, [x16, :lo12:left]
	\put
	ret
	.pushsection .data.rel.ro, "aw"
	.quad	1b
	.popsection
	.endm

	.irp	name, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29
	forget	\name
	.endr
	.irp	name, d8, d9, d10, d11, d12, d13, d14, d15
	forget	\name
	.endr
	forget	x17, "mrs x17, fpcr", "msr fpcr, x17"

	.pushsection .data.rel.ro, "aw"
	.size	switch_words_forget, . - switch_words_forget
	.popsection

#endif

	.section .note.GNU-stack, "", %progbits
