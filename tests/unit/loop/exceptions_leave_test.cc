/* exceptions_leave_test.cc - an exception that leaves a function called by weft.
 *
 * The exception ends the program where it is thrown, with a message, even if the call that
 * entered weft is inside a try block.  Each case runs in a child process, whose standard error
 * is checked.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/dag.h>
#include <weft/embed.h>
#include <weft/weft.h>

#define CHECK(cond)                                                                         \
	((cond) ? (void)0                                                                   \
	        : (std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond), \
	           std::exit(1)))

namespace
{

weft_loop *loop;

void
throw_it(void *)
{
	throw std::runtime_error("of the program");
}

int
throw_from_work(void *arg)
{
	throw_it(arg);
	return 0;
}

void
throw_from_timer(weft_timer *, void *arg)
{
	throw_it(arg);
}

void
throw_from_op(weft_op *, int64_t, void *arg)
{
	throw_it(arg);
}

void
throw_from_watch(weft_watch *, int, void *arg)
{
	throw_it(arg);
}

int
throw_from_step(weft_dag_step *, void *arg)
{
	throw_it(arg);
	return 0;
}

/* --- the cases -------------------------------------------------------------- */

void
in_post()
{
	CHECK(weft_loop_post(loop, throw_it, nullptr) == 0);
	weft_loop_run(loop);
}

void
in_turn_of_run_once()
{
	CHECK(weft_loop_post(loop, throw_it, nullptr) == 0);
	weft_loop_run_once(loop, WEFT_NEVER);
}

void
in_microtask()
{
	CHECK(weft_schedule_microtask(loop, throw_it, nullptr) == 0);
	weft_loop_run(loop);
}

void
in_timer()
{
	static weft_timer timer;

	CHECK(weft_timer_start(loop, &timer, weft_now(), 0, throw_from_timer, nullptr) == 0);
	weft_loop_run(loop);
}

void
in_op()
{
	static weft_op op;

	CHECK(weft_op_init(&op, loop, throw_from_op, nullptr) == 0);
	CHECK(weft_op_sleep(&op, weft_now()) == 0);
	weft_loop_run(loop);
}

void
in_watch()
{
	static weft_watch watch;
	int fds[2];

	CHECK(pipe(fds) == 0 && write(fds[1], "x", 1) == 1);
	CHECK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, throw_from_watch, nullptr)
	      == 0);
	weft_loop_run(loop);
}

void
in_value_of_a_stopped_loop()
{
	CHECK(weft_loop_local_set(loop, weft_key_new(throw_it), &loop) == 0);
	weft_loop_shutdown(loop);
}

void
in_value_of_a_freed_loop()
{
	CHECK(weft_loop_local_set(loop, weft_key_new(throw_it), &loop) == 0);
	(void)weft_loop_free(loop);
}

void
in_threadlet()
{
	weft_go_opts opts = {};

	opts.loop = loop;
	CHECK(weft_go_with(&opts, throw_from_work, nullptr) > 0);
	weft_loop_run(loop);
}

void
in_main_threadlet()
{
	(void)weft_main(nullptr, throw_from_work, nullptr);
}

int
wait_for_work(void *)
{
	return (int)weft_work(WEFT_CPU, throw_from_work, nullptr, WEFT_NEVER);
}

void
in_work_of_a_pool()
{
	(void)weft_main(nullptr, wait_for_work, nullptr);
}

void
in_step_of_a_graph()
{
	weft_dag *dag = weft_dag_new("graph");
	weft_dag_node node = {};

	node.name = "step";
	node.fn = throw_from_step;
	CHECK(weft_dag_add(dag, &node) >= 0);
	CHECK(weft_dag_check(dag) == 0);
	(void)weft_dag_run_wait(weft_dag_run_new(dag, nullptr), WEFT_NEVER);
}

const struct {
	const char *name;
	void (*fn)();
} cases[] = {
	{ "post", in_post },
	{ "turn of run_once", in_turn_of_run_once },
	{ "microtask", in_microtask },
	{ "timer", in_timer },
	{ "op", in_op },
	{ "watch", in_watch },
	{ "value of a stopped loop", in_value_of_a_stopped_loop },
	{ "value of a freed loop", in_value_of_a_freed_loop },
	{ "threadlet", in_threadlet },
	{ "main threadlet", in_main_threadlet },
	{ "work of a pool", in_work_of_a_pool },
	{ "step of a graph", in_step_of_a_graph },
};

/* --- children --------------------------------------------------------------- */

[[noreturn]] void
be_child(void (*fn)(), int out)
{
	dup2(out, 2);
	loop = weft_loop_new(nullptr);
	try {
		fn();
	} catch (const std::exception &) {
		std::_Exit(3); /* the exception has passed through weft */
	}
	std::_Exit(4);
}

std::string
read_all(int fd)
{
	char bytes[256];
	std::string all;
	ssize_t got;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		all.append(bytes, (size_t)got);
	return all;
}

void
check_case(const char *name, void (*fn)())
{
	int fds[2], status = 0;
	std::string said;
	pid_t child;

	CHECK(pipe(fds) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		be_child(fn, fds[1]);
	close(fds[1]);
	said = read_all(fds[0]);
	close(fds[0]);
	CHECK(waitpid(child, &status, 0) == child);
	std::printf("%s: status %#x\n%s", name, (unsigned)status, said.c_str());
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(said.find("weft: an exception has left a function that weft called")
	      != std::string::npos);
	CHECK(said.find("of the program") != std::string::npos);
}

} // namespace

int
main()
{
	for (const auto &one : cases)
		check_case(one.name, one.fn);
	std::puts("ok");
	return 0;
}
