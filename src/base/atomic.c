/* atomic.c - the hook of test builds; compiled only with WEFT__HOOK_ATOMICS.
 *
 * weft__atomic_do() is sequentially consistent whatever order the call requests.  The threads
 * of a hooked build run one at a time, and weaker orders are modeled by the explorer, which
 * does not call this function.
 */
#include "base/atomic.h"

weft__atomic_fn weft__atomic_hook = weft__atomic_do;

static uint64_t
read_place(const struct weft__atomic_call *call)
{
	if (call->size == 2)
		return *(volatile uint16_t *)call->addr;
	return call->size == 4 ? *(volatile uint32_t *)call->addr
	                       : *(volatile uint64_t *)call->addr;
}

static void
write_place(const struct weft__atomic_call *call, uint64_t value)
{
	if (call->size == 2)
		*(volatile uint16_t *)call->addr = (uint16_t)value;
	else if (call->size == 4)
		*(volatile uint32_t *)call->addr = (uint32_t)value;
	else
		*(volatile uint64_t *)call->addr = value;
}

uint64_t
weft__atomic_do(const struct weft__atomic_call *call)
{
	uint64_t old;

	if (call->kind == WEFT__READ || call->kind == WEFT__WRITE)
		return 0;
	old = read_place(call);
	switch (call->kind) {
	case WEFT__STORE:
	case WEFT__EXCHANGE:
		write_place(call, call->value);
		break;
	case WEFT__ADD:
		write_place(call, old + call->value);
		break;
	case WEFT__OR:
		write_place(call, old | call->value);
		break;
	case WEFT__CAS:
		if (old == call->expected)
			write_place(call, call->value);
		break;
	default:
		break;
	}
	return old;
}
