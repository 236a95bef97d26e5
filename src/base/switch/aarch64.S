/* aarch64.S - the switch for 64-bit ARM, AAPCS64.
 *
 * A suspended stack, from its stack pointer upwards, in words of 8 bytes:
 *
 *   0-1    x29, and x30 as signed with the stack pointer above this block
 *   2-11   x19 to x28
 *   12-19  d8 to d15
 *   20     fpcr
 *   21     unused
 *
 *   1. Each resume is a `ret` for the `bl` that suspended, so the CPU's stack of
 *      return addresses keeps its depth.
 *   2. fpcr is loaded only if it differs: loading waits for all floating-point
 *      work in flight.
 *   3. The stack pointer is a multiple of 16 at all times.
 *
 * Signing and landing pads are written as hints, which older CPUs ignore: 25 is
 * paciasp (and a landing pad), 29 autiasp, 34 bti c, 8 pacia1716.  The note says
 * so.  It does not claim guarded control stacks (GCS), and x18 is the platform's.
 */
#if defined(__aarch64__)

	.text

/* Save the caller's registers below its stack pointer, and that pointer in *x0; fpcr is in x9. */
	.macro	SAVE
	hint	#25
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-176]!
	.cfi_def_cfa_offset 176
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x19, x20, [sp, #16]
	.cfi_rel_offset x19, 16
	.cfi_rel_offset x20, 24
	stp	x21, x22, [sp, #32]
	.cfi_rel_offset x21, 32
	.cfi_rel_offset x22, 40
	stp	x23, x24, [sp, #48]
	.cfi_rel_offset x23, 48
	.cfi_rel_offset x24, 56
	stp	x25, x26, [sp, #64]
	.cfi_rel_offset x25, 64
	.cfi_rel_offset x26, 72
	stp	x27, x28, [sp, #80]
	.cfi_rel_offset x27, 80
	.cfi_rel_offset x28, 88
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x9, fpcr
	str	x9, [sp, #160]
	mov	x10, sp
	str	x10, [x0]
	.endm

/* Load the registers that x1 points to; x30 is then the address to continue at. */
	.macro	LOAD
	mov	sp, x1
	ldr	x10, [sp, #160]
	cmp	x9, x10
	b.eq	1f
	msr	fpcr, x10
1:	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x27, x28, [sp, #80]
	.cfi_restore x28
	.cfi_restore x27
	ldp	x25, x26, [sp, #64]
	.cfi_restore x26
	.cfi_restore x25
	ldp	x23, x24, [sp, #48]
	.cfi_restore x24
	.cfi_restore x23
	ldp	x21, x22, [sp, #32]
	.cfi_restore x22
	.cfi_restore x21
	ldp	x19, x20, [sp, #16]
	.cfi_restore x20
	.cfi_restore x19
	ldp	x29, x30, [sp], #176
	.cfi_restore x30
	.cfi_restore x29
	.cfi_def_cfa_offset 0
	hint	#29
	.cfi_negate_ra_state
	.endm

	.globl	weft__stack_switch
	.hidden	weft__stack_switch
	.type	weft__stack_switch, %function
	.p2align 4
weft__stack_switch:
	.cfi_startproc
	SAVE
.Lresume:
	LOAD
	ret
	.cfi_endproc
	.size	weft__stack_switch, . - weft__stack_switch

	.globl	weft__stack_start
	.hidden	weft__stack_start
	.type	weft__stack_start, %function
	.p2align 4
weft__stack_start:
	.cfi_startproc
	SAVE
	LOAD
	mov	x16, x30		/* through x16 it may land on bti c */
	.cfi_undefined x30
	br	x16
	.cfi_endproc
	.size	weft__stack_start, . - weft__stack_start

/* x19 holds the function and x20 its argument; x29 is 0.  The function returns the stack
 * pointer to continue with. */
	.globl	weft__stack_entry
	.hidden	weft__stack_entry
	.type	weft__stack_entry, %function
	.p2align 4
weft__stack_entry:
	.cfi_startproc
	.cfi_personality 0x1b, weft__personality /* base/fence.h */
	.cfi_undefined x30
	.cfi_undefined x29
	hint	#34
	mov	x30, xzr
	mov	x0, x20
	blr	x19
	mov	x1, x0
	mrs	x9, fpcr
	b	.Lresume
	.cfi_endproc
	.size	weft__stack_entry, . - weft__stack_entry

	.globl	weft__stack_make
	.hidden	weft__stack_make
	.type	weft__stack_make, %function
	.p2align 4
weft__stack_make:
	.cfi_startproc
	hint	#34
	and	x16, x0, #-16
	adrp	x17, weft__stack_entry
	add	x17, x17, :lo12:weft__stack_entry
	hint	#8			/* sign x17 with x16 */
	sub	x0, x16, #176
	stp	xzr, x17, [x0]
	stp	x1, x2, [x0, #16]	/* x19 and x20 */
	stp	xzr, xzr, [x0, #32]
	stp	xzr, xzr, [x0, #48]
	stp	xzr, xzr, [x0, #64]
	stp	xzr, xzr, [x0, #80]
	stp	xzr, xzr, [x0, #96]
	stp	xzr, xzr, [x0, #112]
	stp	xzr, xzr, [x0, #128]
	stp	xzr, xzr, [x0, #144]
	stp	x3, xzr, [x0, #160]
	ret
	.cfi_endproc
	.size	weft__stack_make, . - weft__stack_make

	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5		/* name, text, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000000, 4, 3, 0	/* AARCH64_FEATURE_1_AND: BTI, PAC */

#endif

	.section .note.GNU-stack, "", %progbits
