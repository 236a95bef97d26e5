/* addr_fuzz.c - an address that is parsed, formatted and parsed again stays the same. */
#include <string.h>
#include <weft/addr.h>
#include "fuzz.h"

static void
read_back(const weft_addr *addr)
{
	char text[WEFT_ADDR_TEXT_MAX], short_text[WEFT_ADDR_TEXT_MAX];
	int size = weft_addr_format(addr, text, sizeof(text));
	weft_addr again;

	ORACLE(size > 0 && (size_t)size == strlen(text), "no text");
	ORACLE(weft_addr_parse(text, &again) == 0, "not read back: %s", text);
	ORACLE(weft_addr_equal(addr, &again), "read as another: %s", text);
	ORACLE(weft_addr_format(addr, short_text, (size_t)size) == WEFT_EMSGSIZE,
	       "written beyond its room: %s", text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	weft_addr addr;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (weft_addr_parse(text, &addr) == 0)
		read_back(&addr);
	free(text);
	return 0;
}
