/* hooks_test.c - a program that sets its hooks first, as real programs do.
 *
 * It has its own main(), because under the usual runner the library has already allocated
 * before the first test begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>
#include "base/report.h"
#include "base/sys.h"

struct heap {
	int allocs, resizes, releases, reports;
};

static void *
heap_alloc(void *arg, size_t size)
{
	((struct heap *)arg)->allocs++;
	return malloc(size);
}

static void *
heap_resize(void *arg, void *mem, size_t size)
{
	((struct heap *)arg)->resizes++;
	return realloc(mem, size);
}

static void
heap_release(void *arg, void *mem)
{
	((struct heap *)arg)->releases++;
	free(mem);
}

static void
on_report(void *arg, const weft_report *report)
{
	((struct heap *)arg)->reports += report->level + 1;
}

static int
check(const char *sentence, int ok)
{
	printf("%s %s\n", ok ? "ok    " : "FAILED", sentence);
	return !ok;
}

int
main(void)
{
	struct heap heap = { 0 };
	weft_hooks hooks = { .alloc = heap_alloc,
		             .resize = heap_resize,
		             .release = heap_release,
		             .on_report = on_report,
		             .arg = &heap,
		             .log_level = 1 };
	weft_report quiet = { .kind = WEFT_REPORT_LOG, .level = 2 };
	weft_report loud = { .kind = WEFT_REPORT_LOG, .level = 1 };
	void *mem;
	int failed = 0;

	failed += check("hooks_are_taken_before_first_use", weft_set_hooks(&hooks) == 0);
	mem = weft__sys->resize(weft__sys->alloc(8), 800);
	weft__sys->release(mem);
	failed += check("all_memory_comes_from_the_programs_allocator",
	                heap.allocs == 1 && heap.resizes == 1 && heap.releases == 1);
	failed += check("hooks_are_refused_after_first_use", weft_set_hooks(&hooks) == WEFT_EBUSY);
	weft__report(&quiet);
	failed += check("a_report_above_the_level_is_not_made", heap.reports == 0);
	weft__report(&loud);
	failed += check("a_report_up_to_the_level_is_made", heap.reports == 2);
	printf("%d passed, %d failed\n", 5 - failed, failed);
	return failed != 0;
}
