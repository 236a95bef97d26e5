/* waitable_aarch64.S - how a call that has waited returns: weft__waitable_wait_here().
 *
 * It always returns by `ret`: a jump would need a landing pad (BTI) at its target.
 */
#if defined(__aarch64__)

	.text
	.globl	weft__waitable_wait_here
	.hidden	weft__waitable_wait_here
	.type	weft__waitable_wait_here, %function
	.p2align 4
weft__waitable_wait_here:
	.cfi_startproc
	hint	#34
	mov	x5, x30			/* return address */
	b	weft__waitable_wait_from
	.cfi_endproc
	.size	weft__waitable_wait_here, . - weft__waitable_wait_here

	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5		/* name, text, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000000, 4, 3, 0	/* AARCH64_FEATURE_1_AND: BTI, PAC */

#endif

	.section .note.GNU-stack, "", %progbits
