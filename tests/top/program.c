/* program.c - a program with an admin endpoint, for the tests of weft top.
 *
 *     top_program ADDRESS [TOKEN]
 *
 * It has threadlets that wait for a long time, some with names that must not reach a terminal
 * unchanged, one that is always busy, and its own metrics.
 */
#include <stdio.h>
#include <string.h>
#include <weft/admin.h>
#include <weft/weft.h>

struct program {
	const char *address, *token;
	uint64_t begin_ns;
};

/* Sequences that change a terminal: its title, its screen, its cursor. */
#define EVIL                                        \
	"evil\033]0;owned\007\033[2J\033[H\xc2\x9b" \
	"31m"

static const char *const waiters[] = {
	"alpha",
	"beta",
	"Gamma-ray",
	EVIL,
	"na\xc3\xafve",
	"\xe5\x90\x8d\xe5\x89\x8d",
	"flip\xe2\x80\xae",
	"bad\xff\xfe",
};

#define WAITERS (sizeof(waiters) / sizeof(waiters[0]))
#define CROWD   60

static int
wait_for_ever(void *arg)
{
	(void)arg;
	return weft_sleep_until(WEFT_NEVER);
}

static int
work(void *arg)
{
	int rc = 0;

	(void)arg;
	while (rc == 0)
		rc = weft_sleep_until(weft_after(5 * WEFT_MS));
	return 0;
}

static double
requests(void *arg)
{
	const struct program *program = arg;

	return (double)((weft_now() - program->begin_ns) / WEFT_MS);
}

static double
temperature(void *arg)
{
	(void)arg;
	return 42.5;
}

static int
start(const char *name, weft_threadlet_fn fn)
{
	const weft_go_opts opts = { .name = name };

	return weft_go_with(&opts, fn, NULL) < 0 ? WEFT_ENOMEM : 0;
}

static int
start_all(void)
{
	char name[32];
	int rc = start("worker", work);

	for (size_t i = 0; i < WAITERS && rc == 0; i++)
		rc = start(waiters[i], wait_for_ever);
	for (int i = 0; i < CROWD && rc == 0; i++) {
		(void)snprintf(name, sizeof(name), "crowd-%02d", i);
		rc = start(name, wait_for_ever);
	}
	return rc;
}

static int
run(void *arg)
{
	struct program *program = arg;
	weft_admin_opts opts = { .token = program->token, .title = "the program" };
	weft_admin *admin;
	int rc = weft_admin_open(program->address, &opts, &admin);

	if (rc < 0) {
		fprintf(stderr, "%s\n", weft_detail());
		return rc;
	}
	rc = weft_admin_add_metric(admin, &(weft_admin_metric){ .name = "requests_total",
	                                                        .help = "answered so far",
	                                                        .type = WEFT_ADMIN_COUNTER,
	                                                        .read = requests,
	                                                        .arg = program });
	if (rc == 0)
		rc = weft_admin_add_metric(
			admin, &(weft_admin_metric){ .name = "temperature",
		                                     .help = "of \033[31mthe room\033[2J",
		                                     .read = temperature });
	if (rc == 0)
		rc = start_all();
	if (rc == 0)
		(void)weft_sleep_until(WEFT_NEVER);
	weft_admin_close(admin);
	return rc;
}

int
main(int argc, char **argv)
{
	weft_runtime_opts opts = { .loops = 2 };
	struct program program = { .address = argc > 1 ? argv[1] : NULL,
		                   .token = argc > 2 ? argv[2] : NULL,
		                   .begin_ns = weft_now() };

	return argc < 2 ? 2 : weft_main(&opts, run, &program);
}
