/* x86_64.S - the switch for x86-64, System V calling convention.
 *
 * A suspended stack, from its stack pointer upwards, in words of 8 bytes:
 *
 *   0    mxcsr in the lower half, the x87 control word in the upper
 *   1-6  r15 r14 r13 r12 rbx rbp
 *   7    the address at which to continue
 *
 *   1. Each resume is a `ret` for the `call` that suspended, so the CPU's stack of return
 *      addresses keeps its depth.  A new stack is entered by a jump.  Its function returns to
 *      weft__stack_entry, which then continues elsewhere with the `ret` for the `call` that
 *      entered the new stack.
 *   2. The control words are loaded whether they differ or not.  A comparison would take
 *      longer: reading them waits for all instructions in flight, loading them does not.
 *   3. A new stack begins at weft__stack_entry with the stack pointer at a multiple of 16, as
 *      the call there needs it.
 *
 * The note says that indirect branches land on endbr64 (IBT).  It does not claim shadow stacks
 * (SHSTK): a return here goes to another stack's caller.
 */
#if defined(__x86_64__)

	.text

/* Save the caller's registers below its stack pointer, and that pointer in *rdi. */
	.macro	SAVE
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	.endm

/* Load the registers that rsp points to, but not the address at which to continue. */
	.macro	LOAD
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	.endm

	.globl	weft__stack_switch
	.hidden	weft__stack_switch
	.type	weft__stack_switch, @function
	.p2align 4
weft__stack_switch:
	.cfi_startproc
	endbr64
	SAVE
	movq	%rsi, %rsp
	LOAD
	ret
	.cfi_endproc
	.size	weft__stack_switch, . - weft__stack_switch

	.globl	weft__stack_start
	.hidden	weft__stack_start
	.type	weft__stack_start, @function
	.p2align 4
weft__stack_start:
	.cfi_startproc
	endbr64
	SAVE
	movq	%rsi, %rsp
	LOAD
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_undefined rip
	jmp	*%rcx
	.cfi_endproc
	.size	weft__stack_start, . - weft__stack_start

/* r12 holds the function and r13 its argument.  The function returns the stack pointer
 * to continue with. */
	.globl	weft__stack_entry
	.hidden	weft__stack_entry
	.type	weft__stack_entry, @function
	.p2align 4
weft__stack_entry:
	.cfi_startproc
	.cfi_personality 0x1b, weft__personality /* base/fence.h */
	.cfi_undefined rip
	.cfi_undefined rbp
	endbr64
	movq	%r13, %rdi
	call	*%r12
	movq	%rax, %rsp
	LOAD
	ret
	.cfi_endproc
	.size	weft__stack_entry, . - weft__stack_entry

/* Call rsi(rdx, ecx).  To unwinders, the stack suspended at rdi is the caller. */
	.globl	weft__stack_inspect
	.hidden	weft__stack_inspect
	.type	weft__stack_inspect, @function
	.p2align 4
weft__stack_inspect:
	.cfi_startproc
	endbr64
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	movq	%rdi, %rbx
	movq	%rsi, %rax
	movq	%rdx, %rdi
	movl	%ecx, %esi
	.cfi_remember_state
	.cfi_def_cfa rbx, 64
	.cfi_offset r15, -56
	.cfi_offset r14, -48
	.cfi_offset r13, -40
	.cfi_offset r12, -32
	.cfi_offset rbx, -24
	.cfi_offset rbp, -16
	.cfi_offset rip, -8
	call	*%rax
	.cfi_restore_state
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	ret
	.cfi_endproc
	.size	weft__stack_inspect, . - weft__stack_inspect

	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5		/* name, text, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0	/* X86_FEATURE_1_AND: IBT */

#endif

	.section .note.GNU-stack, "", %progbits
