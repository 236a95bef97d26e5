/* scan.h - find the first byte of a line that ends it or is not allowed in it.
 *
 * Nearly all bytes of a head have no special meaning.  So they are scanned sixteen at a time
 * where the CPU can (SSE2 is part of x86-64, NEON of arm64), else eight at a time in a word.
 * No byte outside the given range is read.
 *
 *   text   stops at a control byte other than HTAB: scans a line, or a value to send
 *   word   stops at a space, a control byte or a byte above 127: scans a request
 *          target
 *   name   stops at a byte that is not a letter or "-": header names rarely contain
 *          anything else, and end before a colon
 *
 * All variants of a scan return the same result.  Each has a name of its own, so that a test can
 * compare them: _bytes (one at a time, the definition), _swar (eight), _wide (sixteen).
 */
#ifndef WEFT_HTTP_SCAN_H
#define WEFT_HTTP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#define WEFT__HTTP_WIDE 1
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define WEFT__HTTP_WIDE 1
#else
#define WEFT__HTTP_WIDE 0
#endif

/* A test counts the scanned bytes, to check that their number is linear. */
#ifdef WEFT__HTTP_COUNT
extern uint64_t weft__http_scanned;
#define WEFT__HTTP_COUNT_SCANNED(count) (weft__http_scanned += (count))
#else
#define WEFT__HTTP_COUNT_SCANNED(count) ((void)0)
#endif

static inline bool
weft__http_stops_text(unsigned char byte)
{
	return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

static inline bool
weft__http_stops_word(unsigned char byte)
{
	return byte <= 0x20 || byte >= 0x7f;
}

static inline bool
weft__http_stops_name(unsigned char byte)
{
	return ((byte | 0x20) < 'a' || (byte | 0x20) > 'z') && byte != '-';
}

/* --- eight at a time ------------------------------------------------------- */

#define WEFT__HTTP_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Set the top bit of each byte that is below `limit`, which is at most 128.  Exact: no byte
 * borrows from its neighbor, since its top bit is set before the subtraction. */
static inline uint64_t
weft__http_bytes_below(uint64_t word, unsigned limit)
{
	uint64_t high = WEFT__HTTP_EACH(0x80);

	return ~((word | high) - WEFT__HTTP_EACH(limit)) & ~word & high;
}

/* Set the top bit of each byte that equals `byte`, which is below 128. */
static inline uint64_t
weft__http_bytes_equal(uint64_t word, unsigned byte)
{
	return weft__http_bytes_below(word ^ WEFT__HTTP_EACH(byte), 1);
}

static inline uint64_t
weft__http_text_stops8(uint64_t word)
{
	return (weft__http_bytes_below(word, 0x20) & ~weft__http_bytes_equal(word, '\t'))
	       | weft__http_bytes_equal(word, 0x7f);
}

static inline uint64_t
weft__http_word_stops8(uint64_t word)
{
	return weft__http_bytes_below(word, 0x21) | weft__http_bytes_equal(word, 0x7f)
	       | (word & WEFT__HTTP_EACH(0x80));
}

/* The letters are the 26 bytes from "a" on, after conversion to lower case. */
static inline uint64_t
weft__http_name_stops8(uint64_t word)
{
	uint64_t small = word | WEFT__HTTP_EACH(0x20);
	uint64_t letters = weft__http_bytes_below(small, 'z' + 1)
	                   & ~weft__http_bytes_below(small, 'a');

	return ~(letters | weft__http_bytes_equal(word, '-')) & WEFT__HTTP_EACH(0x80);
}

/* Groups of eight bytes of which none stops the scan are skipped.  Which byte of the next group
 * stops it is found byte by byte, so that the byte order of a word does not matter. */
#define WEFT__HTTP_DEFINE_SWAR(kind)                                                       \
	static inline size_t                                                               \
	weft__http_##kind##_bytes(const char *data, size_t at, size_t size)                \
	{                                                                                  \
		while (at < size && !weft__http_stops_##kind((unsigned char)data[at]))     \
			at++;                                                              \
		return at;                                                                 \
	}                                                                                  \
	static inline size_t                                                               \
	weft__http_##kind##_swar(const char *data, size_t at, size_t size)                 \
	{                                                                                  \
		uint64_t word;                                                             \
                                                                                           \
		for (; size - at >= 8; at += 8) {                                          \
			memcpy(&word, data + at, 8);                                       \
			if (weft__http_##kind##_stops8(word))                              \
				break;                                                     \
		}                                                                          \
		return weft__http_##kind##_bytes(data, at, size);                          \
	}

WEFT__HTTP_DEFINE_SWAR(text)
WEFT__HTTP_DEFINE_SWAR(word)
WEFT__HTTP_DEFINE_SWAR(name)

/* --- sixteen at a time: a mask with WEFT__HTTP_MASK_BITS bits for each byte that stops the scan,
 * those of the first byte lowest --- */

#if defined(__SSE2__)
#define WEFT__HTTP_MASK_BITS 1
#define WEFT__HTTP_LOAD(at)  _mm_loadu_si128((const __m128i *)(const void *)(at))

static inline uint64_t
weft__http_text_stops16(__m128i x)
{
	__m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1f)), x);
	__m128i tab = _mm_cmpeq_epi8(x, _mm_set1_epi8('\t'));
	__m128i del = _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, low), del));
}

static inline uint64_t
weft__http_word_stops16(__m128i x)
{
	/* As signed bytes, those above 127 are below the space too. */
	__m128i low = _mm_cmplt_epi8(x, _mm_set1_epi8(0x21));
	__m128i del = _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, del));
}

static inline uint64_t
weft__http_name_stops16(__m128i x)
{
	__m128i small = _mm_or_si128(x, _mm_set1_epi8(0x20));
	__m128i from_a = _mm_sub_epi8(small, _mm_set1_epi8('a'));
	__m128i letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a);
	__m128i dash = _mm_cmpeq_epi8(x, _mm_set1_epi8('-'));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(letter, dash)) ^ 0xffff;
}
#elif WEFT__HTTP_WIDE
#define WEFT__HTTP_MASK_BITS 4
#define WEFT__HTTP_LOAD(at)  vld1q_u8((const uint8_t *)(at))

static inline uint64_t
weft__http_neon_mask(uint8x16_t stop)
{
	uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(stop), 4);

	return vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
}

static inline uint64_t
weft__http_text_stops16(uint8x16_t x)
{
	uint8x16_t tab = vceqq_u8(x, vdupq_n_u8('\t')), del = vceqq_u8(x, vdupq_n_u8(0x7f));
	uint8x16_t low = vbicq_u8(vcltq_u8(x, vdupq_n_u8(0x20)), tab);

	return weft__http_neon_mask(vorrq_u8(low, del));
}

static inline uint64_t
weft__http_word_stops16(uint8x16_t x)
{
	uint8x16_t low = vcltq_u8(x, vdupq_n_u8(0x21)), high = vcgeq_u8(x, vdupq_n_u8(0x7f));

	return weft__http_neon_mask(vorrq_u8(low, high));
}

static inline uint64_t
weft__http_name_stops16(uint8x16_t x)
{
	uint8x16_t from_a = vsubq_u8(vorrq_u8(x, vdupq_n_u8(0x20)), vdupq_n_u8('a'));
	uint8x16_t letter = vcleq_u8(from_a, vdupq_n_u8(25));

	return weft__http_neon_mask(vmvnq_u8(vorrq_u8(letter, vceqq_u8(x, vdupq_n_u8('-')))));
}
#endif

#if WEFT__HTTP_WIDE
#define WEFT__HTTP_DEFINE_WIDE(kind)                                                       \
	static inline size_t                                                               \
	weft__http_##kind##_wide(const char *data, size_t at, size_t size)                 \
	{                                                                                  \
		for (; size - at >= 16; at += 16) {                                        \
			uint64_t mask = weft__http_##kind##_stops16(WEFT__HTTP_LOAD(data + at)); \
                                                                                           \
			if (mask)                                                          \
				return at + (size_t)__builtin_ctzll(mask) / WEFT__HTTP_MASK_BITS; \
		}                                                                          \
		return weft__http_##kind##_swar(data, at, size);                           \
	}

WEFT__HTTP_DEFINE_WIDE(text)
WEFT__HTTP_DEFINE_WIDE(word)
WEFT__HTTP_DEFINE_WIDE(name)

#define WEFT__HTTP_SCAN(kind) weft__http_##kind##_wide
#else
#define WEFT__HTTP_SCAN(kind) weft__http_##kind##_swar
#endif

/* The first offset in data[at..size) at which the scan stops, or `size`. */
#define WEFT__HTTP_DEFINE_SCAN(kind)                                                       \
	static inline size_t                                                               \
	weft__http_scan_##kind(const char *data, size_t at, size_t size)                   \
	{                                                                                  \
		size_t stop = WEFT__HTTP_SCAN(kind)(data, at, size);                       \
                                                                                           \
		WEFT__HTTP_COUNT_SCANNED(stop - at + 1);                                       \
		return stop;                                                               \
	}

WEFT__HTTP_DEFINE_SCAN(text)
WEFT__HTTP_DEFINE_SCAN(word)
WEFT__HTTP_DEFINE_SCAN(name)

#endif
