/* proto_lock.h - a spin lock of four bytes.  Private to proto/ and bindings/.
 *
 * For sections of a few instructions that several threads enter.  A section must neither
 * suspend nor call a function of the program.  Not recursive.  A zeroed lock is free.
 */
#ifndef WEFT_PROTO_LOCK_H
#define WEFT_PROTO_LOCK_H

#include <stdint.h>

struct weft__spin {
	uint32_t word; /* atomic: 0 free, 1 held */
};

/* A hint to the CPU that this thread spins: the other thread of its core then runs faster. */
static inline void
weft__spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline void
weft__spin_lock(struct weft__spin *lock)
{
	while (__atomic_exchange_n(&lock->word, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock->word, __ATOMIC_RELAXED))
			weft__spin_pause();
}

static inline void
weft__spin_unlock(struct weft__spin *lock)
{
	__atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
}

#endif
