/* promised.h - helpers for the tests of promises: counted values, handlers that leave a trace.
 *
 * A token is what a value points to.  It counts its owners.  So dropping a token twice fails
 * the test at once, and a leaked token is found when the test checks its owners.
 */
#ifndef WEFT_TEST_PROMISED_H
#define WEFT_TEST_PROMISED_H

#include "unit/threadlet/sched.h"

/* --- values ------------------------------------------------------------- */

struct token {
	weft__a32 owners;
	int       number;
};

static inline void
drop_token(void *ptr)
{
	struct token *token = ptr;

	CHECK(weft__add(&token->owners, UINT32_MAX, WEFT__ACQ_REL) > 0);
}

static inline void
share_token(void *ptr)
{
	struct token *token = ptr;

	CHECK(weft__add(&token->owners, 1, WEFT__ACQ_REL) > 0);
}

static const weft_type type_alone = { .name = "alone", .drop = drop_token };
static const weft_type type_shared = { .name = "shared",
	                               .drop = drop_token,
	                               .share = share_token };

static inline weft_value
make_value(const weft_type *type, struct token *token, int number)
{
	token->number = number;
	weft__store(&token->owners, 1, WEFT__RELAXED);
	return weft_value_ptr(type, token);
}

/* alone() makes a value that cannot be shared, shared() one that can. */
static inline weft_value
alone(struct token *token, int number)
{
	return make_value(&type_alone, token, number);
}

static inline weft_value
shared(struct token *token, int number)
{
	return make_value(&type_shared, token, number);
}

static inline weft_value
integer(int64_t number)
{
	return weft_value_integer(number);
}

static inline int64_t
owners(struct token *token)
{
	return weft__load(&token->owners, WEFT__ACQUIRE);
}

static inline int64_t
number_of(const weft_value *value)
{
	if (value->type == &type_alone || value->type == &type_shared)
		return ((struct token *)value->as.ptr)->number;
	CHECK(value->type == &weft_type_integer
	      || value->type == &weft_type_error);
	return value->as.integer;
}

/* --- promises ----------------------------------------------------------- */

static inline void
drop(weft_promise *promise)
{
	CHECK(!weft_promise_unref(promise));
}

static inline weft_promise *
hold(weft_promise *promise)
{
	CHECK(weft_promise_ref(promise) == promise);
	return promise;
}

/* Check the state, and that the value or reason is `number`. */
static inline void
check_settled(weft_promise *promise, weft_outcome want, int64_t number)
{
	weft_value value = { 0 };

	CHECK(promise != NULL);
	CHECK_EQ(weft_promise_state(promise, &value), want);
	if (want != WEFT_PENDING)
		CHECK_EQ(number_of(&value), number);
}

static inline void
check_fulfilled(weft_promise *promise, int64_t number)
{
	check_settled(promise, WEFT_FULFILLED, number);
}

static inline void
check_rejected(weft_promise *promise, int64_t number)
{
	check_settled(promise, WEFT_REJECTED, number);
}

static inline void
check_pending(weft_promise *promise)
{
	check_settled(promise, WEFT_PENDING, 0);
}

/* The same, and drop the promise. */
static inline void
end_fulfilled(weft_promise *promise, int64_t number)
{
	check_fulfilled(promise, number);
	drop(promise);
}

static inline void
end_rejected(weft_promise *promise, int64_t number)
{
	check_rejected(promise, number);
	drop(promise);
}

/* --- handlers ----------------------------------------------------------- */

/* Note the character.  The value is the input plus 1. */
static inline int
note_and_add(const weft_value *in, weft_value *out, void *arg)
{
	note(arg);
	*out = integer(number_of(in) + 1);
	return 0;
}

/* Note the character.  No value. */
static inline int
note_it(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	note(arg);
	return 0;
}

/* Note the character, and fail with the error of the input. */
static inline int
note_and_fail(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	note(arg);
	return (int)number_of(in);
}

/* Fail with the error in `arg`, and with a text. */
static inline int
fail(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	return weft_fail((int)(intptr_t)arg, "as it was to");
}

static inline weft_promise *
then_note(weft_promise *promise, char mark)
{
	return weft_promise_then(promise, note_it, NULL, MARK(mark));
}

/* Chain a handler, keep the promise, and drop the chained one. */
static inline void
also_note(weft_promise *promise, char mark)
{
	drop(weft_promise_then(hold(promise), note_it, note_it, MARK(mark)));
}

/* --- loops -------------------------------------------------------------- */

/* Call `fn(loop)` in a callback of a new loop, and run the loop until it has no work left. */
static inline weft_loop *
run_on_loop(weft_fn fn)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, fn, loop));
	OK(weft_loop_run(loop));
	return loop;
}

/* Call `arrange(loop)` before the loop runs, run it, and call `check()`.  Then do the same with
 * `arrange(loop)` in a callback of a second loop. */
static inline void
in_both_ways(weft_fn arrange, void (*check)(void))
{
	weft_loop *loop = make();

	arrange(loop);
	OK(weft_loop_run(loop));
	check();
	stop_idle(loop);
	loop = run_on_loop(arrange);
	check();
	stop_idle(loop);
}

#endif
