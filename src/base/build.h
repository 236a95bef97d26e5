/* build.h - what this build is, as constants that code can test without #if. */
#ifndef WEFT_BASE_BUILD_H
#define WEFT_BASE_BUILD_H

/* Misuse of the API ends the process with a message, instead of an error. */
#ifdef WEFT_DEBUG
#define WEFT__DEBUG 1
#else
#define WEFT__DEBUG 0
#endif

/* Memory is made hostile: filled when it is new and when it is gone, moved whenever it
 * is resized. */
#ifdef WEFT_STRESS
#define WEFT__STRESS 1
#else
#define WEFT__STRESS 0
#endif

/* AddressSanitizer, or ThreadSanitizer, watches. */
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

#endif
