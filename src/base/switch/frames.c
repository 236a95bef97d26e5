/* frames.c - the call chain on a stack, by frame pointers.
 *
 *   1. Each frame is above the one it called, and inside the bounds.  So a walk ends, and
 *      reads only the stack.
 */
#include "base/switch/annotate.h"
#include "base/switch/frames.h"

bool
weft__is_root(const void *pc)
{
	uintptr_t at = (uintptr_t)pc, root = (uintptr_t)weft__stack_entry;

	return at >= root && at < root + 32;
}

WEFT__INSPECTS_STACKS struct weft__frame
weft__frame_of(const struct weft__context *context)
{
	const void *const *saved = context->sp;

	return (struct weft__frame){
		.pc = weft__code_at(saved[WEFT__SAVED_PC]),
		.fp = saved[WEFT__SAVED_FP],
		.low = context->sp,
		.high = (const char *)context->stack + context->stack_bytes,
	};
}

/* Step to the caller of a frame; 0 if there is none. */
WEFT__INSPECTS_STACKS static int
go_out(struct weft__frame *frame)
{
	const char *at = frame->fp;

	if (at < frame->low || at > frame->high - 2 * sizeof(void *)
	    || (uintptr_t)at % sizeof(void *) != 0)
		return 0;
	frame->pc = weft__code_at(((const void *const *)(const void *)at)[1]);
	frame->fp = *(const void *const *)(const void *)at;
	frame->low = at + 2 * sizeof(void *); /* invariant 1 */
	return frame->pc != NULL;
}

size_t
weft__frames_walk(struct weft__frame frame, const void **out, size_t max)
{
	size_t count = 0;
	int more = frame.pc ? 1 : go_out(&frame);

	while (more && !weft__is_root(frame.pc)) {
		if (count < max)
			out[count] = frame.pc;
		count++;
		more = go_out(&frame);
	}
	for (size_t i = count; i < max; i++)
		out[i] = NULL;
	return count;
}

size_t
weft__frames_of(const struct weft__context *context, const void **out, size_t max)
{
	size_t count = weft__os_unwind(context->sp, out, max);

	if (count == 0)
		return weft__frames_walk(weft__frame_of(context), out, max);
	for (size_t i = count; i < max; i++)
		out[i] = NULL;
	return count;
}
