/* scenarios.h - small programs that live with every error, and what they share.
 *
 * A world is a loop and what it owes; a job is an op and what became of it.
 */
#ifndef WEFT_FAULT_SCENARIOS_H
#define WEFT_FAULT_SCENARIOS_H

#include <weft/weft.h>

/* What goes wrong in it is told with fault_problem(). */
struct scenario {
	const char *name;
	void      (*run)(const char *backend);
};

extern const struct scenario scenarios[];
extern const size_t          scenario_count;

void run_echo(const char *backend);
void run_tcp(const char *backend);
void run_full(const char *backend);
void run_full_two(const char *backend);
void run_poller(const char *backend);
void run_watch(const char *backend);
void run_ops(const char *backend);
void run_stop(const char *backend);
void run_stop_both(const char *backend);
void run_stop_ask(const char *backend);
void run_choice(const char *backend);
void run_flood(const char *backend);
void run_late(const char *backend);
void run_caller(const char *backend);
void run_prompt(const char *backend);
void run_early(const char *backend);
void run_stream(const char *backend);
void run_guests(const char *backend);
void run_line(const char *backend);
void run_work(const char *backend);
void run_dag(const char *backend);
void run_promise(const char *backend);
void run_file(const char *backend);
void run_dgram(const char *backend);
void run_dns(const char *backend);
void run_streams(const char *backend);
void run_stream_events(const char *backend);
void run_stream_file(const char *backend);
void run_tls(const char *backend);
void run_tls_guest(const char *backend);
void run_fetch(const char *backend);
void run_http(const char *backend);
void run_admin(const char *backend);
void run_redis(const char *backend);
void run_signal(const char *backend);
void run_child(const char *backend);
void run_child_stop(const char *backend);
void run_pid(const char *backend);
void run_spawn(const char *backend);
void run_spawn_there(const char *backend);

/* Programs on a bare ring that the sweep must find wrong. */
extern const struct scenario mistaken[];
extern const size_t          mistaken_count;

/* --- shared by them ----------------------------------------------------- */

extern uint64_t scenario_wait_ns; /* of every wait, at most */
#define WAIT_NS   scenario_wait_ns
#define STEPS_MIN 10 /* turns that a wait has, however late it is */

struct world {
	weft_loop *loop;
	int        left; /* calls that were accepted and have not come */
};

/* Make its loop, stop it, free it. */
bool make_world(struct world *world, const char *backend, uint32_t flags);
void end_world(struct world *world);

/* Heal what has been struck; then all that was accepted comes, and more can be. */
void check_works(struct world *world);

/* Count what a call accepted; on_call() is what comes of it. */
void accepted(struct world *world, int64_t rc);
void on_call(void *arg);

/* Turn until *left is 0, nothing is alive, or the time is up; or a few times without
 * waiting. */
void drive(weft_loop *loop, const int *left);
void turn(weft_loop *loop);

/* What was struck may have failed; all else goes well: whether this did. */
bool went_well(int64_t rc, int64_t want);

/* The same, and nothing is late, unless an error was told that was not true; after a short
 * count there should be no more. */
bool went_in_time(int64_t rc, int64_t want);

/* A deadline for what a threadlet waits for; start one; turn until *left is 0, as it must
 * become. */
uint64_t soon(void);
int      start_on(struct world *world, weft_threadlet_fn fn, void *arg);
void     await_zero(struct world *world, const int *left);

struct job {
	weft_op op;
	int64_t result;
	size_t  bytes;    /* of all results */
	int     left;     /* 1: started and not finished */
	int     fds[4];   /* accepted */
	int     fd_count;
};

/* Prepare a job; note what its start returned; wait for its result, or cancel it
 * first.  One that is late is cancelled. */
void    init(struct world *world, struct job *job);
void    begin(struct job *job, int rc);
int64_t await(struct world *world, struct job *job);
int64_t end_job(struct world *world, struct job *job);
void    on_done(weft_op *op, int64_t result, void *arg);

/* Close `fd` by an op, or if that is refused by hand. */
void close_by_op(struct world *world, int fd);

/* Descriptors of the scenario's own. */
bool make_pair(int fds[2]);
bool make_blocking_pair(int fds[2]);
bool make_pipe(int fds[2]);
void close_both(int fds[2]);
void put_byte(int fd);

#endif
