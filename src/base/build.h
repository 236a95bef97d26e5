/* build.h - properties of this build, as constants that code can test without #if. */
#ifndef WEFT_BASE_BUILD_H
#define WEFT_BASE_BUILD_H

/* Misuse of the API aborts with a message instead of returning an error. */
#ifdef WEFT_DEBUG
#define WEFT__DEBUG 1
#else
#define WEFT__DEBUG 0
#endif

/* Stress build: memory is filled with junk when allocated and when freed, and moved by every
 * resize. */
#ifdef WEFT_STRESS
#define WEFT__STRESS 1
#else
#define WEFT__STRESS 0
#endif

/* Built with AddressSanitizer, or ThreadSanitizer. */
#ifdef __has_feature
#define WEFT__ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define WEFT__ASAN 1
#else
#define WEFT__ASAN 0
#endif
#ifdef __has_feature
#define WEFT__TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define WEFT__TSAN 1
#else
#define WEFT__TSAN 0
#endif

/* Declares a private function or variable that a library beside the core uses, too. */
#define WEFT__SHARED __attribute__((visibility("default")))

#endif
