/* report.c - the schedule of a failed execution, as text.
 *
 * Nothing is recorded while exploring.  A failed execution is replayed with tracing on; each
 * step then becomes a line: number, thread, operation, place in the source.  An address is
 * named by the block that contains it, so that the text is the same each time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "internal.h"

static struct {
	char text[256 * 1024];
	size_t used;
	uint32_t steps;
} report;

void
explore__trace_begin(void)
{
	report.used = 0;
	report.steps = 0;
	report.text[0] = '\0';
}

const char *
explore__trace_text(void)
{
	return report.text;
}

const char *
explore__base_name(const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (!file)
		return "(start)";
	return slash ? slash + 1 : file;
}

const char *
explore__order_name(int order)
{
	switch (order) {
	case WEFT__ACQUIRE:
		return "acquire";
	case WEFT__RELEASE:
		return "release";
	case WEFT__ACQ_REL:
		return "acq_rel";
	case WEFT__SEQ_CST:
		return "seq_cst";
	default:
		return "relaxed";
	}
}

const char *
explore__kind_name(int kind)
{
	static const char *const names[] = {
		[WEFT__LOAD] = "load", [WEFT__STORE] = "store", [WEFT__EXCHANGE] = "exchange",
		[WEFT__ADD] = "add",   [WEFT__OR] = "or",       [WEFT__CAS] = "cas",
		[WEFT__READ] = "get",  [WEFT__WRITE] = "put",
	};

	return kind >= 0 && kind <= WEFT__WRITE && names[kind] ? names[kind] : "";
}

const char *
explore__slot_name(int slot)
{
	static const char *const names[EXPLORE__SLOTS] = { "T0", "T1", "T2", "T3", "main" };

	return names[slot];
}

void
explore__label(uintptr_t addr, char *text, size_t size)
{
	int slot;

	if (explore__heap_owns(addr))
		explore__heap_label(addr, text, size);
	else if (explore__on_stack(addr, &slot))
		snprintf(text, size, "%s's stack-%zu", explore__slot_name(slot),
		         (size_t)((uintptr_t)explore__run.slots[slot].context.stack
		                  + explore__run.slots[slot].context.stack_bytes - addr));
	else
		snprintf(text, size, "global %#zx", (size_t)addr);
}

void
explore__trace(int kind, struct explore__place place, const char *format, ...)
{
	size_t room = sizeof report.text - report.used;
	char what[160];
	va_list args;
	int length;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	length = snprintf(report.text + report.used, room, "  %4u  %-4s  %-8s %s  (%s:%d)\n",
	                  ++report.steps, explore__slot_name(explore__run.current),
	                  explore__kind_name(kind), what, explore__base_name(place.file),
	                  place.line);
	if (length > 0 && (size_t)length < room)
		report.used += (size_t)length;
	else
		report.text[report.used] = '\0';
}
