/* new.c - making a loop from its options. */
#include "base/text.h"
#include "loop/core/loop.h"

#define BUDGET_DEFAULT 1024u
#define INBOX_DEFAULT  65536u
#define SCHED_DEFAULT  (UINT32_C(1) << 22)
#define STACK_DEFAULT  ((size_t)64 << 10)
#define STACK_MAX      ((size_t)1 << 30)
#define KNOWN_FLAGS    (WEFT_LOOP_METRICS | WEFT_LOOP_NO_SPIN | WEFT_LOOP_KEEP | WEFT_LOOP_MOVABLE)

/* From the options, else from the environment, else NULL. */
static const char *
backend_wanted(const weft_loop_opts *opts)
{
	return opts->backend ? opts->backend : weft__sys->env("WEFT_BACKEND");
}

static int
check_opts(const weft_loop_opts *opts)
{
	const char *backend = backend_wanted(opts);

	if (opts->flags & ~(uint32_t)KNOWN_FLAGS)
		return weft__misuse(WEFT_EINVAL, "weft_loop_new: unknown flags");
	if (opts->stack_bytes > STACK_MAX)
		return weft__fail(WEFT_EINVAL, "weft_loop_new: stack_bytes is larger than 1 GiB");
	if (opts->cpus && weft__sys->set_cpus(NULL) < 0)
		return weft__fail(WEFT_ENOSYS, "weft_loop_new: this system cannot "
		                               "bind threads to CPUs");
	if (backend && !weft__backend_exists(backend))
		return weft__fail(WEFT_EINVAL, "weft_loop_new: unknown backend");
	return 0;
}

static void
copy_name(char *out, size_t room, const char *name)
{
	struct weft__text text = weft__text_begin(out, room);

	weft__text_add(&text, name ? name : "");
}

/* Allocates the loop, with its sampler if requested; NULL without memory. */
static weft_loop *
alloc_loop(uint32_t flags)
{
	weft_loop *loop = weft__alloc_zero(sizeof(*loop));
	struct weft__sampler *sampler;

	if (!loop || !(flags & WEFT_LOOP_METRICS))
		return loop;
	sampler = weft__sampler_new();
	if (sampler) {
		weft__store(&loop->sampler, (uintptr_t)sampler, WEFT__RELAXED);
		weft__store(&loop->observed_ns, WEFT_NEVER, WEFT__RELAXED);
		weft__sampler_on(loop);
		return loop;
	}
	weft__sys->release(loop);
	return NULL;
}

/* Parse the CPUs of the loop's thread.  0, or an error. */
static int
set_cpus(weft_loop *loop, const char *cpus)
{
	if (!cpus)
		return 0;
	loop->cpus = weft__alloc_zero(sizeof(*loop->cpus));
	if (!loop->cpus)
		return weft__fail(WEFT_ENOMEM, "weft_loop_new: out of memory");
	if (weft__cpus_read(loop->cpus, cpus))
		return 0;
	return weft__fail(WEFT_EINVAL, "weft_loop_new: cpus must look like \"0-3,6\"");
}

static int
watch(weft_loop *loop, uint64_t limit_ns)
{
	int rc;

	loop->watchdog_ns = limit_ns;
	rc = weft__watchdog_add(loop);
	if (rc < 0)
		loop->watchdog_ns = 0;
	return rc < 0 ? weft__fail(rc, "weft_loop_new: cannot start the watchdog") : 0;
}

weft_loop *
weft_loop_new(const weft_loop_opts *opts)
{
	static const weft_loop_opts defaults;
	weft_loop *loop;

	if (!opts)
		opts = &defaults;
	if (check_opts(opts) < 0)
		return NULL;
	loop = weft__watch_forks() < 0 ? NULL : alloc_loop(opts->flags);
	if (!loop) {
		(void)weft__fail(WEFT_ENOMEM, "weft_loop_new: out of memory");
		return NULL;
	}
	if (set_cpus(loop, opts->cpus) < 0) {
		weft__sys->release(loop->cpus);
		weft__sys->release((void *)weft__load(&loop->sampler, WEFT__RELAXED));
		weft__sys->release(loop);
		return NULL;
	}
	weft__inbox_init(&loop->inbox, opts->inbox_max ? opts->inbox_max : INBOX_DEFAULT);
	weft__tasks_init(loop);
	weft__wheel_init(&loop->wheel, weft__sys->now());
	weft__timer_handles_init(loop);
	loop->wake.kind = WEFT__NODE_KEEP | WEFT__NODE_OWN;
	copy_name(loop->name, sizeof(loop->name), opts->name);
	copy_name(loop->backend_name, sizeof(loop->backend_name), backend_wanted(opts));
	loop->backend.counters = &loop->backend_counters;
	loop->flags = opts->flags;
	loop->budget = opts->budget ? opts->budget : BUDGET_DEFAULT;
	loop->threadlet_max = opts->threadlet_max ? opts->threadlet_max : SCHED_DEFAULT;
	loop->stack_bytes = opts->stack_bytes ? opts->stack_bytes : STACK_DEFAULT;
	loop->on_report = opts->on_report;
	loop->report_arg = opts->report_arg;
	loop->hooks.notified_ns = WEFT_NEVER;
	loop->forks = loop->quick = weft__load(&weft__program.forks, WEFT__RELAXED);
	loop->spin.allowed = !(opts->flags & WEFT_LOOP_NO_SPIN) && weft__sys->cpus() > 1;
	if (opts->watchdog_ns && watch(loop, opts->watchdog_ns) < 0) {
		(void)weft_loop_free(loop);
		return NULL;
	}
	weft__registry_add(loop);
	return loop;
}
