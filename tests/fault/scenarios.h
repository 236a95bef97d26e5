/* scenarios.h - small programs that handle every error, and the helpers they share.
 *
 * A world is a loop plus the number of callbacks it still owes.  A job is an op plus its
 * outcome.
 */
#ifndef WEFT_FAULT_SCENARIOS_H
#define WEFT_FAULT_SCENARIOS_H

#include <weft/weft.h>

/* run() reports failed checks with fault_problem(). */
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
void run_stop_request(const char *backend);
void run_choice(const char *backend);
void run_flood(const char *backend);
void run_late(const char *backend);
void run_caller(const char *backend);
void run_prompt(const char *backend);
void run_early(const char *backend);
void run_stream(const char *backend);
void run_clients(const char *backend);
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
void run_tls_client(const char *backend);
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

/* Programs on a bare ring that contain a mistake.  The sweep must find it. */
extern const struct scenario mistaken[];
extern const size_t          mistaken_count;

/* --- shared by the scenarios -------------------------------------------- */

extern uint64_t scenario_wait_ns; /* upper limit of every wait */
#define WAIT_NS   scenario_wait_ns
#define STEPS_MIN 10 /* loop iterations of every wait, even after its time is up */

struct world {
	weft_loop *loop;
	int        left; /* callbacks of accepted calls that have not run yet */
};

/* Create the world's loop; shut it down and free it. */
bool make_world(struct world *world, const char *backend, uint32_t flags);
void end_world(struct world *world);

/* Heal the fault if it was injected.  Then check that every accepted callback runs, and that a
 * new post and a new op work. */
void check_works(struct world *world);

/* Count an accepted call.  on_call() is the callback to pass to such a call. */
void accepted(struct world *world, int64_t rc);
void on_call(void *arg);

/* drive(): run the loop until *left is 0, nothing keeps the loop alive, or the time is up.
 * turn(): run a few loop iterations without waiting. */
void drive(weft_loop *loop, const int *left);
void turn(weft_loop *loop);

/* Whether `rc` is `want`.  Another result is a problem unless a fault was injected. */
bool went_well(int64_t rc, int64_t want);

/* The same.  In addition, WEFT_ETIMEDOUT is a problem, unless the injected error was untrue
 * (for example EAGAIN on a ready descriptor), or the fault was one of recv: after a short count
 * the library expects no more data. */
bool went_in_time(int64_t rc, int64_t want);

/* soon(): a deadline for the waits of a threadlet.  start_on(): start a threadlet; 1 if it
 * started.  await_zero(): run the loop until *left is 0, and check that it is. */
uint64_t soon(void);
int      start_on(struct world *world, weft_threadlet_fn fn, void *arg);
void     await_zero(struct world *world, const int *left);

struct job {
	weft_op op;
	int64_t result;
	size_t  bytes;    /* sum of all results */
	int     left;     /* 1: started and not finished */
	int     fds[4];   /* accepted */
	int     fd_count;
};

/* init(): prepare a job.  begin(): record what its start returned.  await(): wait for its
 * result, and cancel it if it is late.  end_job(): cancel it at once and wait for its result. */
void    init(struct world *world, struct job *job);
void    begin(struct job *job, int rc);
int64_t await(struct world *world, struct job *job);
int64_t end_job(struct world *world, struct job *job);
void    on_done(weft_op *op, int64_t result, void *arg);

/* Close `fd` with an op, or directly if the op is refused. */
void close_by_op(struct world *world, int fd);

/* Descriptors that belong to the scenario. */
bool make_pair(int fds[2]);
bool make_blocking_pair(int fds[2]);
bool make_pipe(int fds[2]);
void close_both(int fds[2]);
void put_byte(int fd);

#endif
