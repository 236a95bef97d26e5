/* thread.c - the per-thread struct, and the text of the last failure. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/build.h"
#include "base/thread.h"

/* Assembly code uses it, which link-time optimization does not see. */
__attribute__((used)) _Thread_local struct weft__thread *weft__thread_ptr;

void
weft__thread_end(struct weft__thread *thread)
{
	if (thread->end)
		thread->end(thread);
	weft__sys->release(thread->failure.words);
	*thread = (struct weft__thread){ 0 };
}

/* A xorshift generator: its period covers all values except 0. */
uint32_t
weft__chance(void)
{
	struct weft__thread *self = weft__thread_self();
	uint32_t x = self->chance;

	if (x == 0 && weft__sys->random(&x, sizeof(x)) < 0)
		x = 1;
	x = x ? x : 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return self->chance = x;
}

int
weft__fail(int error, const char *text)
{
	weft__failure_of(weft__thread_self())->text = text;
	return error;
}

int
weft__misuse(int error, const char *text)
{
	if (WEFT__DEBUG)
		weft__misuse_abort(text);
	return weft__fail(error, text);
}

const char *
weft_detail(void)
{
	const char *text = weft__failure_of(weft__thread_self())->text;

	return text ? text : "";
}

int
weft_fail(int error, const char *format, ...)
{
	struct weft__failure *last = weft__failure_of(weft__thread_self());
	va_list args;

	if (!last->words)
		last->words = weft__sys->alloc(sizeof(*last->words));
	if (!last->words || !format)
		return weft__fail(error, weft_strerror(error));
	last->words->error = error;
	va_start(args, format);
	/* Truncated to fit, as documented. */
	(void)vsnprintf(last->words->text, WEFT__TEXT_BYTES, format, args);
	va_end(args);
	return weft__fail(error, last->words->text);
}

int
weft__fail_in(int error, const char *call, const char *reason)
{
	return weft_fail(error, "%s: %s", call, reason);
}

int
weft__misuse_in(int error, const char *call, const char *reason)
{
	(void)weft__fail_in(error, call, reason);
	if (WEFT__DEBUG)
		weft__misuse_abort(weft_detail());
	return error;
}

/* A text belongs to one failure: a later failure with the same error must not reuse it. */
static bool
take_words(const struct weft__failure *last, int error)
{
	if (!last->words || last->text != last->words->text || last->words->error != error)
		return false;
	last->words->error = 0;
	return true;
}

const char *
weft__take_text(int error)
{
	struct weft__failure *last = weft__failure_of(weft__thread_self());

	return take_words(last, error) ? last->text : NULL;
}

void
weft__pass_words(int error, struct weft__failure *to)
{
	const char *text = weft__take_text(error);

	if (text)
		weft__pass_text(error, text, to);
}

void
weft__pass_text(int error, const char *text, struct weft__failure *to)
{
	if (text && !to->words)
		to->words = weft__sys->alloc(sizeof(*to->words));
	if (!text || !to->words) {
		to->text = weft_strerror(error);
		return;
	}
	to->words->error = error;
	/* Truncated to fit, as in weft_fail(). */
	(void)snprintf(to->words->text, WEFT__TEXT_BYTES, "%s", text);
	to->text = to->words->text;
}

char *
weft__copy_detail(int error)
{
	const struct weft__failure *last = weft__failure_of(weft__thread_self());
	size_t size = last->text ? strlen(last->text) + 1 : 0;
	char *copy;

	if (size <= 1
	    || (last->words && last->text == last->words->text && last->words->error != error))
		return NULL;
	copy = weft__sys->alloc(size);
	return copy ? memcpy(copy, last->text, size) : NULL;
}
