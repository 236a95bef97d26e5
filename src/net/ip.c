/* ip.c - IPv4 and IPv6 addresses as text.
 *
 * The functions of the C library accept more than is wanted (inet_aton), or depend on the
 * locale and the resolver.  These two grammars are small.
 */
#include <string.h>
#include "net/ip.h"

bool
weft__digits_read(const char *text, size_t size, uint32_t max, uint32_t *out)
{
	uint64_t number = 0;

	if (size == 0 || size > 10 || (size > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	if (number > max)
		return false;
	*out = (uint32_t)number;
	return true;
}

bool
weft__ip4_read(const char *text, size_t size, uint8_t out[4])
{
	const char *end = text + size;
	uint8_t ip[4];

	for (int i = 0; i < 4; i++) {
		const char *dot = i < 3 ? memchr(text, '.', (size_t)(end - text)) : end;
		uint32_t number;

		if (!dot || !weft__digits_read(text, (size_t)(dot - text), 255, &number))
			return false;
		ip[i] = (uint8_t)number;
		text = dot + 1;
	}
	memcpy(out, ip, sizeof(ip));
	return true;
}

static int
hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

struct groups {
	uint8_t bytes[16];
	size_t size; /* bytes read so far */
	int gap;     /* bytes before the "::", or -1 */
};

/* Parse one group, or an IPv4 address at the end.  Returns the byte after it, or NULL. */
static const char *
read_group(struct groups *groups, const char *at, const char *end)
{
	const char *stop = memchr(at, ':', (size_t)(end - at));
	unsigned value = 0;
	const char *c;

	if (!stop && memchr(at, '.', (size_t)(end - at))) {
		if (groups->size > 12
		    || !weft__ip4_read(at, (size_t)(end - at), groups->bytes + groups->size))
			return NULL;
		groups->size += 4;
		return end;
	}
	for (c = at; c < end && hex_of(*c) >= 0; c++)
		value = value << 4 | (unsigned)hex_of(*c);
	if (c == at || c > at + 4 || groups->size > 14)
		return NULL;
	groups->bytes[groups->size++] = (uint8_t)(value >> 8);
	groups->bytes[groups->size++] = (uint8_t)value;
	return c;
}

/* Parse a colon before another group, or the "::".  Returns the byte after it, or NULL. */
static const char *
read_colons(struct groups *groups, const char *at, const char *end)
{
	if (*at != ':' || at + 1 == end)
		return NULL;
	if (at[1] != ':')
		return groups->size > 0 ? at + 1 : NULL;
	if (groups->gap >= 0)
		return NULL;
	groups->gap = (int)groups->size;
	return at + 2;
}

bool
weft__ip6_read(const char *text, size_t size, uint8_t out[16])
{
	struct groups groups = { .gap = -1 };
	const char *at = text, *end = text + size;
	size_t tail;

	if (at < end && *at == ':')
		at = read_colons(&groups, at, end);
	while (at && at < end) {
		at = read_group(&groups, at, end);
		if (at && at < end)
			at = read_colons(&groups, at, end);
	}
	if (!at || (groups.gap < 0 ? groups.size != 16 : groups.size > 14))
		return false;
	memset(out, 0, 16);
	tail = groups.gap < 0 ? 0 : groups.size - (size_t)groups.gap;
	memcpy(out, groups.bytes, groups.size - tail);
	memcpy(out + 16 - tail, groups.bytes + groups.size - tail, tail);
	return true;
}

void
weft__ip4_write(struct weft__text *text, const uint8_t ip[4])
{
	for (int i = 0; i < 4; i++) {
		if (i > 0)
			weft__text_add(text, ".");
		weft__text_number(text, ip[i]);
	}
}

bool
weft__ip6_is_mapped(const uint8_t ip[16])
{
	static const uint8_t start[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(ip, start, sizeof(start)) == 0;
}

static unsigned
group_of(const uint8_t ip[16], int i)
{
	return (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
}

/* Find the longest run of two or more zero groups, the first of several.  Returns its start and
 * sets its length; returns 8 if there is none. */
static int
find_gap(const uint8_t ip[16], int *count)
{
	int at = 8;

	*count = 1;
	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && group_of(ip, i + n) == 0)
			n++;
		if (n > *count) {
			at = i;
			*count = n;
		}
		i += n;
	}
	return at;
}

static void
write_group(struct weft__text *text, unsigned group)
{
	char digits[5];
	int n = 0;

	for (int shift = 12; shift >= 0; shift -= 4)
		if (n > 0 || group >> shift || shift == 0)
			digits[n++] = "0123456789abcdef"[group >> shift & 15];
	digits[n] = '\0';
	weft__text_add(text, digits);
}

void
weft__ip6_write(struct weft__text *text, const uint8_t ip[16])
{
	int count, gap = find_gap(ip, &count);

	if (weft__ip6_is_mapped(ip)) {
		weft__text_add(text, "::ffff:");
		weft__ip4_write(text, ip + 12);
		return;
	}
	for (int i = 0; i < 8; i++) {
		if (i == gap) {
			weft__text_add(text, "::");
			i += count - 1;
			continue;
		}
		if (i > 0 && i != gap + count)
			weft__text_add(text, ":");
		write_group(text, group_of(ip, i));
	}
}
