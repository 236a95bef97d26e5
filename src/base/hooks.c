/* hooks.c - the program's allocator and report hook, and the last words.
 *
 * The hooks are one copy for the process, written before the library's first
 * allocation and only read after it, so they need no lock.
 */
#include <stdio.h>
#include "base/os.h"
#include "base/report.h"
#include "base/thread.h"

weft_hooks weft__hooks;
weft__a32 weft__hooks_used;

int
weft_set_hooks(const weft_hooks *hooks)
{
	int memory;

	if (!hooks)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_set_hooks: hooks is NULL");
	memory = !!hooks->alloc + !!hooks->resize + !!hooks->release;
	if (memory != 0 && memory != 3)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_set_hooks: alloc, resize and "
		                    "release come together or not at all");
	if (weft__load(&weft__hooks_used, WEFT__RELAXED))
		return weft__fail(
			WEFT_EBUSY,
			"weft_set_hooks: the library has allocated before");
	weft__hooks = *hooks;
	return 0;
}

void
weft__report(const weft_report *report)
{
	if (report->kind == WEFT_REPORT_LOG
	    && report->level > weft__hooks.log_level)
		return;
	if (weft__hooks.on_report)
		weft__hooks.on_report(weft__hooks.arg, report);
}

void
weft__report_or_print(const weft_report *report)
{
	const char *parts[3] = { "weft: ", report->text, "\n" };

	if (weft__hooks.on_report) {
		weft__report(report);
		return;
	}
	for (int i = 0; i < 3; i++) /* if it fails there is nobody to tell */
		(void)weft__sys->write(2, parts[i], __builtin_strlen(parts[i]));
}

/* The buffer is the stack's: there may be no memory, and no way back. */
void
weft__panic(const char *file, int line, const char *text)
{
	char message[512];

	(void)snprintf(message, sizeof(message), "weft: %s:%d: %s", file, line,
	               text);
	weft__report(
		&(weft_report){ .kind = WEFT_REPORT_BUG, .text = message });
	weft__os_abort(weft__hooks.on_report ? NULL : message);
}

void *
weft__alloc_zero(size_t size)
{
	void *mem = weft__sys->alloc(size);

	if (mem)
		__builtin_memset(mem, 0, size);
	return mem;
}

void *
weft_alloc(size_t size)
{
	return weft__sys->alloc(size ? size : 1);
}

void
weft_release(void *mem)
{
	weft__sys->release(mem);
}
