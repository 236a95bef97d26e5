/* admin_entry.c - write one threadlet as JSON or text, and match it against the query.
 *
 * Many threadlets wait at the same places, and looking up a symbol is slow: some symbols are
 * cached for the duration of the request.
 */
#include "admin_listing.h"
#include <string.h>
#include <weft/debug.h>
#include "base/utf8.h"

#define FRAMES 16
#define FD_MAX (1 << 24) /* file descriptors are below, addresses of objects above */

const char *
weft__admin_symbol(struct weft__admin_listing *listing, const void *address)
{
	uintptr_t number = (uintptr_t)address;
	size_t slot = (number ^ number >> 8 ^ number >> 16) % WEFT__ADMIN_SYMBOLS;
	struct weft__admin_symbol *symbol = &listing->symbols[slot];

	if (!address)
		return "";
	if (symbol->address != address) {
		(void)weft_symbol(address, symbol->text, sizeof(symbol->text));
		if (strncmp(symbol->text, "0x", 2) == 0)
			memcpy(symbol->text, "?", 2);
		symbol->address = address;
	}
	return symbol->text;
}

/* What a threadlet waits on: a file descriptor or threadlet ID as it is; for an object a number
 * that is the same for all that wait on it, but does not reveal its address. */
static int64_t
number_of(struct weft__admin_listing *listing, const weft_threadlet_info *info)
{
	uint64_t number = (uint64_t)info->waits_on;

	if (info->waits_on < FD_MAX || strcmp(info->waits_for, "join") == 0)
		return info->waits_on;
	for (int i = 0; i < 2; i++) {
		number = (number ^ listing->admin->secret[i]) * UINT64_C(0x9e3779b97f4a7c15);
		number ^= number >> 32;
	}
	return (int64_t)(number >> 32 | FD_MAX);
}

/* --- search --------------------------------------------------------------------- */

static char
lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* Whether `text` contains `part`, ignoring case. */
static bool
contains(const char *text, const char *part)
{
	for (; *text; text++) {
		size_t i = 0;

		while (part[i] && lower(text[i]) == lower(part[i]))
			i++;
		if (!part[i])
			return true;
	}
	return false;
}

bool
weft__admin_matches(struct weft__admin_listing *listing, const weft_threadlet_info *info)
{
	const char *q = listing->query;

	if (!q || !*q || contains(info->name, q) || contains(info->state, q)
	    || contains(info->waits_for, q) || contains(weft__admin_symbol(listing, info->fn), q)
	    || contains(weft__admin_symbol(listing, info->spawned_at), q))
		return true;
	for (int i = 0; i < FRAMES && info->frames[i]; i++)
		if (contains(weft__admin_symbol(listing, info->frames[i]), q))
			return true;
	return false;
}

/* --- JSON ------------------------------------------------------------------------ */

static void
put_wait(struct weft__admin_listing *listing, const weft_threadlet_info *info)
{
	struct weft__admin_text *text = &listing->text;
	uint64_t now = weft_now();

	weft__json_key(text, "state");
	weft__json_text(text, info->state);
	weft__json_key(text, "waits_for");
	weft__json_text(text, info->waits_for);
	weft__json_key(text, "waits_on");
	weft__json_signed(text, number_of(listing, info));
	weft__json_key(text, "waited_ns");
	weft__json_number(text, now > info->since_ns ? now - info->since_ns : 0);
	weft__json_key(text, "left_ns");
	if (info->deadline_ns == WEFT_NEVER)
		weft__json_raw(text, "null");
	else
		weft__json_number(text, info->deadline_ns > now ? info->deadline_ns - now : 0);
}

static void
put_stack(struct weft__admin_listing *listing, const weft_threadlet_info *info)
{
	struct weft__admin_text *text = &listing->text;

	weft__json_key(text, "stack_bytes");
	weft__json_number(text, info->stack_bytes);
	weft__json_key(text, "stack_used");
	weft__json_number(text, info->stack_used);
	weft__json_key(text, "stack_high");
	weft__json_number(text, info->stack_high);
	weft__json_key(text, "frames");
	weft__json_open(text, '[');
	for (int i = 0; i < FRAMES && info->frames[i]; i++)
		weft__json_text(text, weft__admin_symbol(listing, info->frames[i]));
	weft__json_close(text, ']');
}

static void
write_json(struct weft__admin_listing *listing, const struct weft__admin_entry *entry)
{
	const weft_threadlet_info *info = &entry->info;
	struct weft__admin_text *text = &listing->text;

	weft__json_open(text, '{');
	weft__json_key(text, "loop");
	weft__json_number(text, entry->loop);
	weft__json_key(text, "id");
	weft__json_signed(text, info->id);
	weft__json_key(text, "name");
	weft__json_text(text, info->name);
	weft__json_key(text, "fn");
	weft__json_text(text, weft__admin_symbol(listing, info->fn));
	put_wait(listing, info);
	weft__json_key(text, "spawned_at");
	weft__json_text(text, weft__admin_symbol(listing, info->spawned_at));
	put_stack(listing, info);
	weft__json_close(text, '}');
}

/* --- text ------------------------------------------------------------------------ */

/* Names are not trusted, and a dump may be shown in a terminal.  0xc2 begins U+0080 to U+00bf, of
 * which the first half are control characters. */
void
weft__admin_put_name(struct weft__admin_text *text, const char *name)
{
	while (*name) {
		size_t size = weft__utf8_size(name);
		bool plain = size > 0 && (unsigned char)*name >= 0x20 && *name != 0x7f
		             && (unsigned char)*name != 0xc2;

		if (plain)
			weft__admin_put(text, name, size);
		else
			weft__admin_puts(text, "?");
		name += size ? size : 1;
	}
}

static void
put_seconds(struct weft__admin_text *text, uint64_t ns)
{
	char digits[3] = { (char)('0' + ns / 100000000 % 10), (char)('0' + ns / 10000000 % 10),
		           (char)('0' + ns / 1000000 % 10) };

	weft__admin_put_number(text, ns / WEFT_S);
	weft__admin_puts(text, ".");
	weft__admin_put(text, digits, sizeof(digits));
	weft__admin_puts(text, " s");
}

static void
write_wait(struct weft__admin_listing *listing, const weft_threadlet_info *info)
{
	struct weft__admin_text *text = &listing->text;
	int64_t number = number_of(listing, info);
	uint64_t now = weft_now();

	if (info->waits_for[0]) {
		weft__admin_puts(text, " for ");
		weft__admin_puts(text, info->waits_for);
	}
	if (info->waits_for[0] && number > 0) {
		weft__admin_puts(text, number < FD_MAX ? " " : " #");
		weft__admin_put_number(text, (uint64_t)number);
	}
	weft__admin_puts(text, ", for ");
	put_seconds(text, now > info->since_ns ? now - info->since_ns : 0);
	if (info->deadline_ns == WEFT_NEVER)
		return;
	weft__admin_puts(text, ", times out in ");
	put_seconds(text, info->deadline_ns > now ? info->deadline_ns - now : 0);
}

static void
write_stack(struct weft__admin_listing *listing, const weft_threadlet_info *info)
{
	struct weft__admin_text *text = &listing->text;

	weft__admin_puts(text, "    stack: ");
	weft__admin_put_number(text, info->stack_used);
	weft__admin_puts(text, " bytes in use, ");
	weft__admin_put_number(text, info->stack_high);
	weft__admin_puts(text, " at peak, of ");
	weft__admin_put_number(text, info->stack_bytes);
	weft__admin_puts(text, "\n");
	for (int i = 0; i < FRAMES && info->frames[i]; i++) {
		weft__admin_puts(text, "    #");
		weft__admin_put_number(text, (uint64_t)i);
		weft__admin_puts(text, " ");
		weft__admin_puts(text, weft__admin_symbol(listing, info->frames[i]));
		weft__admin_puts(text, "\n");
	}
}

static void
write_text(struct weft__admin_listing *listing, const struct weft__admin_entry *entry)
{
	const weft_threadlet_info *info = &entry->info;
	struct weft__admin_text *text = &listing->text;

	weft__admin_puts(text, "  threadlet ");
	weft__admin_put_number(text, (uint64_t)info->id);
	weft__admin_puts(text, " (");
	if (info->name[0])
		weft__admin_put_name(text, info->name);
	else
		weft__admin_puts(text, weft__admin_symbol(listing, info->fn));
	weft__admin_puts(text, ") is ");
	weft__admin_puts(text, info->state);
	write_wait(listing, info);
	weft__admin_puts(text, "\n    started at ");
	weft__admin_puts(text, weft__admin_symbol(listing, info->spawned_at));
	weft__admin_puts(text, "\n");
	write_stack(listing, info);
}

void
weft__admin_write_entry(struct weft__admin_listing *listing, const struct weft__admin_entry *entry)
{
	if (listing->json)
		write_json(listing, entry);
	else
		write_text(listing, entry);
	listing->shown++;
}
