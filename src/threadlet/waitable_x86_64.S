/* waitable_x86_64.S - how a call that has waited returns: weft__waitable_wait_here().
 *
 * The notrack prefix says that the jump, like a return, may land where there is no endbr64 (IBT).
 */
#if defined(__x86_64__)

	.text
	.globl	weft__waitable_wait_here
	.hidden	weft__waitable_wait_here
	.type	weft__waitable_wait_here, @function
	.p2align 4
weft__waitable_wait_here:
	.cfi_startproc
	endbr64
	movq	(%rsp), %r9		/* return address */
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	movq	%rsp, %rbp
	call	weft__waitable_wait_from
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	testb	%dl, %dl
	jne	1f
	ret
1:	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rcx
	notrack jmp *%rcx
	.cfi_endproc
	.size	weft__waitable_wait_here, . - weft__waitable_wait_here

	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5		/* name, text, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0	/* X86_FEATURE_1_AND: IBT */

#endif

	.section .note.GNU-stack, "", %progbits
