/* atomic.h - every atomic operation of the library.  No other file uses atomics directly.
 *
 * Atomics are structs, so that a plain access does not compile.  Each call spells out its
 * memory order.  Calls that pair are marked, mostly by a letter in a comment beside each.
 *
 * In a release build these are the compiler's builtins.  Built with WEFT__HOOK_ATOMICS, each
 * becomes one call of weft__atomic_hook.  Through it the simulator chooses the next thread; the
 * schedule explorer chooses the thread and, for a load, which of the stores allowed by the
 * memory model it returns.  Plain memory that one thread writes and another reads goes through
 * weft__put() and weft__get(), so that the explorer can detect a data race.
 */
#ifndef WEFT_BASE_ATOMIC_H
#define WEFT_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct { uint16_t raw; } weft__a16; /* shared with the kernel only */
typedef struct { uint32_t raw; } weft__a32;
typedef struct { uint64_t raw; } weft__a64;
typedef struct { uintptr_t raw; } weft__aptr; /* a pointer, possibly with tag bits */

enum {
	WEFT__RELAXED = __ATOMIC_RELAXED,
	WEFT__ACQUIRE = __ATOMIC_ACQUIRE,
	WEFT__RELEASE = __ATOMIC_RELEASE,
	WEFT__ACQ_REL = __ATOMIC_ACQ_REL,
	WEFT__SEQ_CST = __ATOMIC_SEQ_CST,
};

enum weft__atomic_kind {
	WEFT__LOAD, WEFT__STORE, WEFT__EXCHANGE, WEFT__ADD, WEFT__OR,
	WEFT__CAS,
	WEFT__READ,  /* plain memory, by weft__get() */
	WEFT__WRITE, /* plain memory, by weft__put() */
};

struct weft__atomic_call {
	enum weft__atomic_kind kind;
	int         order;
	int         failed;   /* order of the load if a WEFT__CAS fails */
	void       *addr;
	uint32_t    size;     /* bytes: 4 or 8; 2 only where no test checks */
	uint64_t    value;    /* stored, added or exchanged in */
	uint64_t    expected; /* of WEFT__CAS */
	const char *file;     /* source position of the call; with `line` it identifies the call */
	int         line;
};

/* Performs the operation and returns the previous value.  A CAS succeeded if that equals
 * `expected`.  For plain memory the hook is only notified; the caller performs the access. */
typedef uint64_t (*weft__atomic_fn)(const struct weft__atomic_call *call);

#ifdef WEFT__HOOK_ATOMICS

extern weft__atomic_fn weft__atomic_hook; /* never NULL */

/* Performs `call` as the hardware would, without a scheduling choice. */
uint64_t weft__atomic_do(const struct weft__atomic_call *call);

#define weft__atomic(kind_, a, order_, value_, expected_, failed_)             \
	weft__atomic_hook(&(const struct weft__atomic_call){                   \
		.kind = (kind_), .order = (order_), .failed = (failed_),       \
		.addr = (void *)(uintptr_t)&(a)->raw,                         \
		.size = sizeof (a)->raw, .value = (uint64_t)(value_),          \
		.expected = (uint64_t)(expected_), .file = __FILE__,           \
		.line = __LINE__ })

#define weft__load(a, order) \
	((__typeof__((a)->raw))weft__atomic(WEFT__LOAD, a, order, 0, 0, 0))
#define weft__store(a, value, order) \
	((void)weft__atomic(WEFT__STORE, a, order, value, 0, 0))
#define weft__exchange(a, value, order) \
	((__typeof__((a)->raw))weft__atomic(WEFT__EXCHANGE, a, order, \
	                                    value, 0, 0))
#define weft__add(a, value, order) \
	((__typeof__((a)->raw))weft__atomic(WEFT__ADD, a, order, value, 0, 0))
#define weft__or(a, value, order) \
	((__typeof__((a)->raw))weft__atomic(WEFT__OR, a, order, value, 0, 0))
#define weft__cas_else(a, expected, value, order, failed)                      \
	__extension__({                                                        \
		__typeof__(expected) want_ = (expected);                       \
		__typeof__(*want_) seen_ = (__typeof__(*want_))weft__atomic(   \
			WEFT__CAS, a, order, value, *want_, failed);           \
		bool done_ = seen_ == *want_;                                  \
		*want_ = seen_;                                                \
		done_;                                                         \
	})

#define weft__plain(kind_, place)                                              \
	weft__atomic_hook(&(const struct weft__atomic_call){                   \
		.kind = (kind_), .addr = (void *)(uintptr_t)&(place),          \
		.size = sizeof(place), .file = __FILE__, .line = __LINE__ })
#define weft__get(place) (weft__plain(WEFT__READ, place), (place))
#define weft__put(place, value) \
	((void)(weft__plain(WEFT__WRITE, place), ((place) = (value))))

#define weft__plain_bytes(kind_, at_, size_)                                   \
	((void)weft__atomic_hook(&(const struct weft__atomic_call){            \
		.kind = (kind_), .addr = (void *)(uintptr_t)(at_),             \
		.size = (uint32_t)(size_), .file = __FILE__,                   \
		.line = __LINE__ }))
#define weft__will_get(at, size) weft__plain_bytes(WEFT__READ, at, size)
#define weft__will_put(at, size) weft__plain_bytes(WEFT__WRITE, at, size)

#else

/* load returns the value; exchange, add and or return the previous value. */
#define weft__load(a, order) __atomic_load_n(&(a)->raw, order)
#define weft__store(a, value, order) __atomic_store_n(&(a)->raw, value, order)
#define weft__exchange(a, value, order) \
	__atomic_exchange_n(&(a)->raw, value, order)
#define weft__add(a, value, order) __atomic_fetch_add(&(a)->raw, value, order)
#define weft__or(a, value, order) __atomic_fetch_or(&(a)->raw, value, order)

/* Compare and exchange; true on success.  *expected becomes the value read, with the order
 * `failed` if the exchange fails. */
#define weft__cas_else(a, expected, value, order, failed)                      \
	__atomic_compare_exchange_n(&(a)->raw, expected, value, false, order,  \
	                            failed)

#define weft__get(place)        (place)
#define weft__put(place, value) ((void)((place) = (value)))

/* Announce bytes that are about to be read or written by other means, such as memcpy(). */
#define weft__will_get(at, size) ((void)0)
#define weft__will_put(at, size) ((void)0)

#endif

/* Like weft__cas_else(), for a caller that only compares the value read, or retries with it.  A
 * caller that dereferences it as a pointer, or relies on anything written before it, must
 * acquire it and needs weft__cas_else(). */
#define weft__cas(a, expected, value, order) \
	weft__cas_else(a, expected, value, order, WEFT__RELAXED)

/* The compiler does not move accesses across this point; the CPU may. */
#define weft__compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* A counter that one thread increments and any thread reads, never torn.  It implies no
 * ordering and nothing is decided by it, so it is not a step for the hook.  Returns the new
 * value.  It is a load and a store, not a locked instruction. */
#define weft__count(a, by)                                                     \
	__extension__({                                                        \
		__typeof__(&(a)->raw) at_ = &(a)->raw;                         \
		__typeof__((a)->raw) sum_ =                                    \
			__atomic_load_n(at_, __ATOMIC_RELAXED)                 \
			+ (__typeof__((a)->raw))(by);                          \
		__atomic_store_n(at_, sum_, __ATOMIC_RELAXED);                 \
		sum_;                                                          \
	})
#define weft__count_get(a)        __atomic_load_n(&(a)->raw, __ATOMIC_RELAXED)
#define weft__count_set(a, value) __atomic_store_n(&(a)->raw, value, __ATOMIC_RELAXED)

/* Hint to the CPU that this is a spin loop. */
static inline void
weft__pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

#endif
