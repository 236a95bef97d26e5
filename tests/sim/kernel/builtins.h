/* builtins.h - turns the compiler's atomic builtins into calls of the hook, for code that may
 * not include base/atomic.h.
 *
 * The build includes it before each file of proto/ that runs in the simulation.  So each
 * builtin there becomes a scheduling point, like the library's own atomics.
 *
 * Needs: base/.
 */
#ifndef WEFT_SIM_BUILTINS_H
#define WEFT_SIM_BUILTINS_H

#include "base/atomic.h"

#define sim_builtin(kind_, at_, order_, value_, expected_, failed_)            \
	((__typeof__(*(at_)))(uintptr_t)weft__atomic_hook(                     \
		&(const struct weft__atomic_call){                             \
			.kind = (kind_), .order = (order_),                    \
			.failed = (failed_),                                   \
			.addr = (void *)(uintptr_t)(at_),                      \
			.size = sizeof(*(at_)),                                \
			.value = (uint64_t)(uintptr_t)(value_),                \
			.expected = (uint64_t)(uintptr_t)(expected_),          \
			.file = __FILE__, .line = __LINE__ }))

#define __atomic_load_n(at, order) sim_builtin(WEFT__LOAD, at, order, 0, 0, 0)
#define __atomic_store_n(at, value, order) \
	((void)sim_builtin(WEFT__STORE, at, order, value, 0, 0))
#define __atomic_exchange_n(at, value, order) \
	sim_builtin(WEFT__EXCHANGE, at, order, value, 0, 0)
#define __atomic_fetch_add(at, value, order) \
	sim_builtin(WEFT__ADD, at, order, value, 0, 0)
#define sim_builtin_sum(at, value, order)                                      \
	__extension__({                                                        \
		__typeof__(*(at)) by_ = (__typeof__(*(at)))(value);            \
		__typeof__(*(at)) sum_ =                                       \
			sim_builtin(WEFT__ADD, at, order, by_, 0, 0) + by_;    \
		sum_;                                                          \
	})
#define __atomic_add_fetch(at, value, order) sim_builtin_sum(at, value, order)
#define __atomic_sub_fetch(at, value, order) sim_builtin_sum(at, -(value), order)
#define __atomic_compare_exchange_n(at, want, value, weak, order, failed)      \
	__extension__({                                                        \
		__typeof__(want) want_ = (want);                               \
		__typeof__(*want_) seen_ = sim_builtin(                        \
			WEFT__CAS, at, order, value, *want_, failed);          \
		bool done_ = seen_ == *want_;                                  \
		*want_ = seen_;                                                \
		done_;                                                         \
	})

#endif
