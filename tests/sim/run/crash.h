/* crash.h - print the seed when the process crashes.
 *
 * A sanitizer prints its own report and then calls our callback; without a sanitizer we handle
 * the signals ourselves.
 *
 * Needs: sim.h.
 */
#ifndef WEFT_SIM_CRASH_H
#define WEFT_SIM_CRASH_H

#if defined(__has_feature)
#define SIM_HAS_FEATURE(name) __has_feature(name)
#else
#define SIM_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) \
	|| SIM_HAS_FEATURE(address_sanitizer) \
	|| SIM_HAS_FEATURE(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define SIM_SANITIZED 1
#define sim_at_death(fn) __sanitizer_set_death_callback(fn)
#else
#define SIM_SANITIZED 0
#define sim_at_death(fn) ((void)(fn))
#endif

/* From now on a crash, an abort, or a run that takes more than `seconds` of real time prints
 * the seed and how to run it again, to standard error.  The process then dies by the signal. */
void sim_crash_install(unsigned seconds);

/* Call at the start of each run: restarts the time limit. */
void sim_crash_watch(void);

#endif
