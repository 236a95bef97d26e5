/* http_scan_test.c - all variants of a scan find the same byte, and none reads beyond the
 * input.
 *
 * The inputs are at the end of allocations of their exact size, so that a sanitizer detects
 * reads beyond; and at every offset from the start.
 */
#include "http/parse/scan.h"
#include "test.h"

struct variant {
	const char *name;
	size_t (*text)(const char *data, size_t at, size_t size);
	size_t (*word)(const char *data, size_t at, size_t size);
	size_t (*letters)(const char *data, size_t at, size_t size);
};

static const struct variant variants[] = {
	{ "swar", weft__http_text_swar, weft__http_word_swar, weft__http_name_swar },
#if WEFT__HTTP_WIDE
	{ "wide", weft__http_text_wide, weft__http_word_wide, weft__http_name_wide },
#endif
	{ "chosen", weft__http_scan_text, weft__http_scan_word, weft__http_scan_name },
};

static void
compare(const char *data, size_t at, size_t size)
{
	size_t text = weft__http_text_bytes(data, at, size);
	size_t word = weft__http_word_bytes(data, at, size);
	size_t name = weft__http_name_bytes(data, at, size);

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		const struct variant *variant = &variants[i];

		if (variant->text(data, at, size) != text || variant->word(data, at, size) != word
		    || variant->letters(data, at, size) != name)
			test_fail(__FILE__, __LINE__, "%s differs at %zu of %zu", variant->name, at,
			          size);
	}
}

TEST(scan_has_a_variant_for_this_cpu)
{
	CHECK(sizeof(variants) / sizeof(variants[0]) >= 3);
}

TEST(every_byte_at_every_position_stops_all_variants_alike)
{
	char *data = malloc(50);

	for (int byte = 0; byte < 256; byte++) {
		for (size_t place = 0; place < 50; place++) {
			memset(data, 'a', 50);
			data[place] = (char)byte;
			compare(data, 0, 50);
			compare(data, place, 50);
			compare(data, 0, place);
		}
	}
	free(data);
}

TEST(scans_stop_at_the_bytes_of_the_grammar)
{
	for (int byte = 0; byte < 256; byte++) {
		char data = (char)byte;
		bool text = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
		bool word = byte > 0x20 && byte < 0x7f;
		bool name = byte == '-' || (byte >= 'A' && byte <= 'Z')
		            || (byte >= 'a' && byte <= 'z');

		CHECK_EQ(weft__http_scan_text(&data, 0, 1), text);
		CHECK_EQ(weft__http_scan_word(&data, 0, 1), word);
		CHECK_EQ(weft__http_scan_name(&data, 0, 1), name);
	}
}

TEST(variants_agree_on_random_bytes)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < 20000; i++) {
		size_t size = test_random(&seed) % 100;
		char *data = malloc(size + 1);
		uint64_t rare = 1 + test_random(&seed) % 40;

		for (size_t j = 0; j < size; j++)
			data[j] = test_random(&seed) % rare == 0
			                  ? (char)test_random(&seed)
			                  : (char)(0x21 + test_random(&seed) % 94);
		for (size_t at = 0; at <= size; at += 1 + at / 8)
			compare(data, at, size);
		free(data);
	}
}
