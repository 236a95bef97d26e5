/* exceptions_test.cc - C++ exceptions stay with the threadlet that has them.
 *
 * The C++ runtime keeps for each thread which exceptions are caught, and how many are in
 * flight.  Here threadlets suspend in catch blocks, and in destructors that run while an
 * exception unwinds the stack.  Afterwards each threadlet must find its own exceptions.
 */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <weft/weft.h>

#define CHECK(cond)                                                                         \
	((cond) ? (void)0                                                                   \
	        : (std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond), \
	           std::exit(1)))

namespace
{

const int rounds = 20;
int ended;

/* Its destructor suspends while an exception unwinds the stack. */
struct suspends_at_end {
	int before = std::uncaught_exceptions();

	~suspends_at_end()
	{
		for (int i = 0; i < 3; i++) {
			CHECK(std::uncaught_exceptions() == before + 1);
			CHECK(weft_yield() == 0);
		}
		CHECK(std::uncaught_exceptions() == before + 1);
	}
};

[[noreturn]] void
throw_past(const std::string &text)
{
	suspends_at_end guard;

	CHECK(weft_sleep_until(weft_after(1)) == 0);
	throw std::runtime_error(text);
}

/* Check that the exception that is being handled here has this text. */
void
check_current(const std::string &text)
{
	CHECK(std::uncaught_exceptions() == 0);
	try {
		std::rethrow_exception(std::current_exception());
	} catch (const std::runtime_error &again) {
		CHECK(weft_yield() == 0);
		CHECK(again.what() == text);
	}
}

void
throw_and_catch(const std::string &text)
{
	try {
		throw_past(text);
	} catch (const std::runtime_error &caught) {
		CHECK(weft_yield() == 0);
		check_current(text);
		try {
			throw_past(text + ", again");
		} catch (const std::runtime_error &inner) {
			CHECK(weft_sleep_until(weft_after(1)) == 0);
			check_current(text + ", again");
			CHECK(inner.what() == text + ", again");
		}
		check_current(text);
		CHECK(caught.what() == text);
	}
	CHECK(!std::current_exception());
}

int
throw_often(void *arg)
{
	const std::string name(static_cast<const char *>(arg));

	for (int i = 0; i < rounds; i++) {
		CHECK(std::uncaught_exceptions() == 0);
		CHECK(!std::current_exception());
		throw_and_catch(name + std::to_string(i));
		CHECK(weft_yield() == 0);
	}
	ended++;
	return 0;
}

/* Rethrows by `throw;` after other threadlets have caught their exceptions. */
int
rethrow(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		try {
			try {
				throw i;
			} catch (...) {
				CHECK(weft_yield() == 0);
				throw;
			}
		} catch (int value) {
			CHECK(value == i);
		}
	}
	ended++;
	(void)arg;
	return 0;
}

/* Exceptions of callbacks, and the one caught around weft_loop_run(), belong to the loop. */
void
throw_in_callback(void *arg)
{
	const std::exception_ptr around = std::current_exception();

	CHECK(around == *static_cast<std::exception_ptr *>(arg));
	try {
		throw std::runtime_error("callback");
	} catch (const std::exception &caught) {
		CHECK(std::string(caught.what()) == "callback");
	}
	CHECK(std::current_exception() == around);
	if (ended < 5)
		CHECK(weft_loop_post(nullptr, throw_in_callback, arg) == 0);
}

void
run_all(weft_loop *loop)
{
	static char names[4][8] = { "one ", "two ", "three ", "four " };
	std::exception_ptr around = std::current_exception();
	weft_go_opts opts = {};

	opts.loop = loop;
	ended = 0;
	for (auto &name : names)
		CHECK(weft_go_with(&opts, throw_often, name) > 0);
	CHECK(weft_go_with(&opts, rethrow, nullptr) > 0);
	CHECK(weft_loop_post(loop, throw_in_callback, &around) == 0);
	CHECK(weft_loop_run(loop) == 0);
	CHECK(ended == 5);
}

} // namespace

int
main()
{
	weft_loop *loop = weft_loop_new(nullptr);

	CHECK(loop != nullptr);
	run_all(loop);
	CHECK(!std::current_exception());
	try {
		throw std::runtime_error("around");
	} catch (const std::runtime_error &around) {
		const std::exception_ptr before = std::current_exception();

		run_all(loop); /* what the loop's thread has caught is kept */
		CHECK(std::current_exception() == before);
		CHECK(std::string(around.what()) == "around");
	}
	CHECK(weft_loop_free(loop) == 0);
	std::puts("ok");
	return 0;
}
