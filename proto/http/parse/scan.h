/* scan.h - find the first byte of a line that ends it or is not allowed in it.
 *
 * Nearly all bytes of a head have no special meaning.  So they are scanned sixteen at a time
 * where the CPU can (SSE2 is part of x86-64, NEON of arm64), else eight at a time in a word.
 * No byte outside the given range is read.
 *
 *   text   stops at a control byte other than HTAB: scans a header value
 *   word   stops at a space, a control byte or a byte above 127: scans a request
 *          target
 *   name   stops at a byte that is not a letter or "-": header names rarely contain
 *          anything else, and end before a colon
 *
 * All variants of a scan return the same result.  Each variant that the CPU supports has a name
 * of its own, so that a test can compare them.
 */
#ifndef WEFT_HTTP_SCAN_H
#define WEFT_HTTP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#define WEFT__HTTP_SSE2 1
#else
#define WEFT__HTTP_SSE2 0
#endif
#if defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define WEFT__HTTP_NEON 1
#else
#define WEFT__HTTP_NEON 0
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

/* --- one byte at a time: the definition, and the remainder of the wider scans --- */

static inline size_t
weft__http_text_bytes(const char *data, size_t at, size_t size)
{
	while (at < size && !weft__http_stops_text((unsigned char)data[at]))
		at++;
	return at;
}

static inline size_t
weft__http_word_bytes(const char *data, size_t at, size_t size)
{
	while (at < size && !weft__http_stops_word((unsigned char)data[at]))
		at++;
	return at;
}

static inline size_t
weft__http_name_bytes(const char *data, size_t at, size_t size)
{
	while (at < size && !weft__http_stops_name((unsigned char)data[at]))
		at++;
	return at;
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

/* Skip groups of eight bytes of which none stops the scan.  Which byte of the next group stops it
 * is found byte by byte, so that the byte order of a word does not matter. */
static inline __attribute__((always_inline)) size_t
weft__http_skip8(const char *data, size_t at, size_t size, uint64_t (*stops8)(uint64_t word))
{
	uint64_t word;

	for (; size - at >= 8; at += 8) {
		memcpy(&word, data + at, 8);
		if (stops8(word))
			break;
	}
	return at;
}

static inline size_t
weft__http_text_swar(const char *data, size_t at, size_t size)
{
	at = weft__http_skip8(data, at, size, weft__http_text_stops8);
	return weft__http_text_bytes(data, at, size);
}

static inline size_t
weft__http_word_swar(const char *data, size_t at, size_t size)
{
	at = weft__http_skip8(data, at, size, weft__http_word_stops8);
	return weft__http_word_bytes(data, at, size);
}

static inline size_t
weft__http_name_swar(const char *data, size_t at, size_t size)
{
	at = weft__http_skip8(data, at, size, weft__http_name_stops8);
	return weft__http_name_bytes(data, at, size);
}

/* --- sixteen at a time ----------------------------------------------------- */

#if WEFT__HTTP_SSE2
static inline size_t
weft__http_text_sse2(const char *data, size_t at, size_t size)
{
	const __m128i last_control = _mm_set1_epi8(0x1f), tab = _mm_set1_epi8('\t');
	const __m128i del = _mm_set1_epi8(0x7f);

	for (; size - at >= 16; at += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(data + at));
		__m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, last_control), x);
		__m128i stop = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(x, tab), low),
		                            _mm_cmpeq_epi8(x, del));
		unsigned mask = (unsigned)_mm_movemask_epi8(stop);

		if (mask)
			return at + (size_t)__builtin_ctz(mask);
	}
	return weft__http_text_swar(data, at, size);
}

static inline size_t
weft__http_word_sse2(const char *data, size_t at, size_t size)
{
	/* As signed bytes, those above 127 are below the space too. */
	const __m128i first = _mm_set1_epi8(0x21), del = _mm_set1_epi8(0x7f);

	for (; size - at >= 16; at += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(data + at));
		__m128i stop = _mm_or_si128(_mm_cmplt_epi8(x, first), _mm_cmpeq_epi8(x, del));
		unsigned mask = (unsigned)_mm_movemask_epi8(stop);

		if (mask)
			return at + (size_t)__builtin_ctz(mask);
	}
	return weft__http_word_swar(data, at, size);
}

static inline size_t
weft__http_name_sse2(const char *data, size_t at, size_t size)
{
	const __m128i a = _mm_set1_epi8('a'), case_bit = _mm_set1_epi8(0x20);
	const __m128i count = _mm_set1_epi8(25), dash = _mm_set1_epi8('-');

	for (; size - at >= 16; at += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(data + at));
		__m128i from_a = _mm_sub_epi8(_mm_or_si128(x, case_bit), a);
		__m128i letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, count), from_a);
		__m128i good = _mm_or_si128(letter, _mm_cmpeq_epi8(x, dash));
		unsigned mask = (unsigned)_mm_movemask_epi8(good) ^ 0xffff;

		if (mask)
			return at + (size_t)__builtin_ctz(mask);
	}
	return weft__http_name_swar(data, at, size);
}
#endif

#if WEFT__HTTP_NEON
/* Four bits for each byte that stops the scan; the first byte's are the lowest. */
static inline uint64_t
weft__http_neon_mask(uint8x16_t stop)
{
	uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(stop), 4);

	return vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
}

static inline size_t
weft__http_text_neon(const char *data, size_t at, size_t size)
{
	const uint8x16_t space = vdupq_n_u8(0x20), tab = vdupq_n_u8('\t');
	const uint8x16_t del = vdupq_n_u8(0x7f);

	for (; size - at >= 16; at += 16) {
		uint8x16_t x = vld1q_u8((const uint8_t *)data + at);
		uint8x16_t low = vbicq_u8(vcltq_u8(x, space), vceqq_u8(x, tab));
		uint64_t mask = weft__http_neon_mask(vorrq_u8(low, vceqq_u8(x, del)));

		if (mask)
			return at + (size_t)__builtin_ctzll(mask) / 4;
	}
	return weft__http_text_swar(data, at, size);
}

static inline size_t
weft__http_word_neon(const char *data, size_t at, size_t size)
{
	const uint8x16_t first = vdupq_n_u8(0x21), del = vdupq_n_u8(0x7f);

	for (; size - at >= 16; at += 16) {
		uint8x16_t x = vld1q_u8((const uint8_t *)data + at);
		uint8x16_t stop = vorrq_u8(vcltq_u8(x, first), vcgeq_u8(x, del));
		uint64_t mask = weft__http_neon_mask(stop);

		if (mask)
			return at + (size_t)__builtin_ctzll(mask) / 4;
	}
	return weft__http_word_swar(data, at, size);
}

static inline size_t
weft__http_name_neon(const char *data, size_t at, size_t size)
{
	const uint8x16_t a = vdupq_n_u8('a'), case_bit = vdupq_n_u8(0x20);
	const uint8x16_t count = vdupq_n_u8(25), dash = vdupq_n_u8('-');

	for (; size - at >= 16; at += 16) {
		uint8x16_t x = vld1q_u8((const uint8_t *)data + at);
		uint8x16_t from_a = vsubq_u8(vorrq_u8(x, case_bit), a);
		uint8x16_t good = vorrq_u8(vcleq_u8(from_a, count), vceqq_u8(x, dash));
		uint64_t mask = weft__http_neon_mask(vmvnq_u8(good));

		if (mask)
			return at + (size_t)__builtin_ctzll(mask) / 4;
	}
	return weft__http_name_swar(data, at, size);
}
#endif

#if WEFT__HTTP_SSE2
#define WEFT__HTTP_SCAN(kind) weft__http_##kind##_sse2
#elif WEFT__HTTP_NEON
#define WEFT__HTTP_SCAN(kind) weft__http_##kind##_neon
#else
#define WEFT__HTTP_SCAN(kind) weft__http_##kind##_swar
#endif

/* The first offset in data[at..size) at which the scan stops, or `size`. */
static inline size_t
weft__http_scan_text(const char *data, size_t at, size_t size)
{
	size_t stop = WEFT__HTTP_SCAN(text)(data, at, size);

	WEFT__HTTP_COUNT_SCANNED(stop - at + 1);
	return stop;
}

static inline size_t
weft__http_scan_word(const char *data, size_t at, size_t size)
{
	size_t stop = WEFT__HTTP_SCAN(word)(data, at, size);

	WEFT__HTTP_COUNT_SCANNED(stop - at + 1);
	return stop;
}

static inline size_t
weft__http_scan_name(const char *data, size_t at, size_t size)
{
	size_t stop = WEFT__HTTP_SCAN(name)(data, at, size);

	WEFT__HTTP_COUNT_SCANNED(stop - at + 1);
	return stop;
}

#endif
