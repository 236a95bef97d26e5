/* hooks.c - the program's allocator, and the delivery of reports.
 *
 * There is one copy of the hooks per process.  It is written before the library's first
 * allocation and only read after that, so it needs no lock.
 *
 * A report goes to the program's hook; without a hook it becomes a line on standard error.  The
 * line is built on the stack, so that a signal handler can report too.  One call writes it, unless
 * it is longer than the buffer, so that lines of several threads do not mix.
 */
#include "base/os.h"
#include "base/report.h"
#include "base/thread.h"
#include "base/switch/frames.h"

#define STANDARD_ERROR 2
#define LINE_BYTES     1400 /* the longest detail, with name and error */
#define CALLERS_MAX    24

weft_hooks weft__hooks;
weft__a32 weft__hooks_used;

int
weft_set_hooks(const weft_hooks *hooks)
{
	int memory;

	if (!hooks)
		return weft__misuse(WEFT_EINVAL, "weft_set_hooks: hooks is NULL");
	memory = !!hooks->alloc + !!hooks->resize + !!hooks->release;
	if (memory != 0 && memory != 3)
		return weft__misuse(WEFT_EINVAL, "weft_set_hooks: alloc, resize and "
		                                 "release must be set together or not at all");
	if (weft__load(&weft__hooks_used, WEFT__RELAXED))
		return weft__fail(
			WEFT_EBUSY,
			"weft_set_hooks: the library has already allocated memory; set the hooks "
			"before any other call");
	weft__hooks = *hooks;
	return 0;
}

/* --- reports ------------------------------------------------------------ */

/* The process dies after these, so they are printed even if the program has set `silent`. */
static bool
report_is_fatal(const weft_report *report)
{
	return report->kind == WEFT_REPORT_BUG || report->kind == WEFT_REPORT_OVERFLOW;
}

/* The subject of the report: "threadlet loader failed: ", "loop weft-0: ". */
static void
report_add_subject(struct weft__text *line, const weft_report *report)
{
	bool failed = report->kind == WEFT_REPORT_FAILED;
	bool is_of_loop = report->loop
	                  && (report->kind == WEFT_REPORT_DEADLOCK
	                      || report->kind == WEFT_REPORT_LATE_STOP
	                      || report->kind == WEFT_REPORT_BACKEND
	                      || report->kind == WEFT_REPORT_MICROTASK_FLOOD);
	const char *name = report->name ? report->name : "";

	if (report_is_fatal(report) || (!failed && !name[0]))
		return;
	weft__text_add(line, failed ? "threadlet " : is_of_loop ? "loop " : "");
	if (name[0])
		weft__text_add(line, name);
	else
		weft__text_number(line, report->threadlet);
	weft__text_add(line, failed ? " failed: " : ": ");
}

static bool
report_shows_error(const weft_report *report)
{
	return report->error < 0
	       && (report->kind == WEFT_REPORT_FAILED || report->kind == WEFT_REPORT_UNHANDLED
	           || report->kind == WEFT_REPORT_LOG);
}

static void
report_write(const char *text, size_t size)
{
	/* There is nowhere to report a failure. */
	(void)weft__sys->write(STANDARD_ERROR, text, size);
}

void
weft_report_print(const weft_report *report)
{
	char buf[LINE_BYTES];
	struct weft__text line = weft__text_begin(buf, sizeof(buf) - 1);
	size_t size;

	if (!report || !report->text)
		return;
	size = __builtin_strlen(report->text);
	weft__text_add(&line, "weft: ");
	report_add_subject(&line, report);
	if (size > sizeof(buf) - 1 - line.size) { /* too long for the buffer */
		report_write(buf, line.size);
		report_write(report->text, size);
		line = weft__text_begin(buf, sizeof(buf) - 1);
	} else {
		weft__text_add(&line, report->text);
	}
	if (report_shows_error(report)) {
		weft__text_add(&line, " (");
		weft__text_add(&line, weft_errname(report->error));
		weft__text_add(&line, ")");
	}
	buf[line.size++] = '\n'; /* one byte was reserved for it */
	report_write(buf, line.size);
}

void
weft__report(const weft_report *report)
{
	if (report->kind == WEFT_REPORT_LOG && report->level > weft__hooks.log_level)
		return;
	if (weft__hooks.on_report)
		weft__hooks.on_report(weft__hooks.arg, report);
	else if (report_is_fatal(report) || (!weft__hooks.silent && report->level <= 1))
		weft_report_print(report);
}

static _Noreturn void
report_bug(const char *text)
{
	weft__report(&(weft_report){ .kind = WEFT_REPORT_BUG, .text = text });
	weft__os_abort();
}

/* The buffer is on the stack: there may be no memory to allocate. */
void
weft__panic(const char *file, int line, const char *text)
{
	char buf[512];
	struct weft__text message = weft__text_begin(buf, sizeof(buf));

	weft__text_add(&message, file);
	weft__text_add(&message, ":");
	weft__text_number(&message, line);
	weft__text_add(&message, ": ");
	weft__text_add(&message, text);
	report_bug(buf);
}

/* --- misuse ------------------------------------------------------------- */

static bool
begins_with(const char *text, const char *with)
{
	return __builtin_strncmp(text, with, __builtin_strlen(with)) == 0;
}

bool
weft__find_caller(const void *const *callers, size_t count, char *out, size_t room)
{
	bool is_inside = false;

	for (size_t i = 0; i < count && callers[i]; i++) {
		struct weft__text text = weft__text_begin(out, room);

		weft__os_add_symbol(&text, callers[i]);
		if (is_inside && !begins_with(out, "weft_"))
			return true;
		is_inside |= begins_with(out, "weft_") && !begins_with(out, "weft__");
	}
	return false;
}

static bool
find_caller_here(char *out, size_t room)
{
	const struct weft__thread *self = weft__thread_self();
	const void *high = self->threadlet ? (const void *)self->threadlet : weft__os_stack_end();
	const void *callers[CALLERS_MAX];

	(void)weft__frames_walk(weft__frame_here(high), callers, CALLERS_MAX);
	return weft__find_caller(callers, CALLERS_MAX, out, room);
}

void
weft__misuse_abort(const char *what)
{
	char place[160], buf[512];
	struct weft__text message = weft__text_begin(buf, sizeof(buf));

	weft__text_add(&message, "misuse");
	if (find_caller_here(place, sizeof(place))) {
		weft__text_add(&message, " at ");
		weft__text_add(&message, place);
	}
	weft__text_add(&message, ": ");
	weft__text_add(&message, what);
	report_bug(buf);
}

/* --- memory ------------------------------------------------------------- */

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
