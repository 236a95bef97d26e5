/* pool_options.c - the configuration of a pool.
 *
 * Options come from programs and, in the case of `cpus`, from users.  So an invalid option is
 * an error with a text and never aborts, not even in a debug build.
 */
#include "loop/core/loop.h"
#include "work/pool.h"

#define QUEUE_DEFAULT 65536u
#define IDLE_DEFAULT  (10 * WEFT_S)
#define THREADS_MOST  65536u /* more must be a mistake */

static int
set_cpus(struct weft__pool_setup *out, const char *text)
{
	if (!text)
		return 0;
	if (!weft__cpus_read(&out->cpus, text))
		return weft__fail(WEFT_EINVAL,
		                  "weft_pool_new: cpus must be a list such as \"0-3,6\"");
	if (weft__sys->set_cpus(NULL) < 0)
		return weft__fail(WEFT_ENOSYS, "weft_pool_new: this system cannot "
		                               "bind threads to CPUs");
	out->has_cpus = true;
	return 0;
}

static uint32_t
threads_default(void)
{
	int cpus = weft__sys->cpus();

	return cpus < 1 ? 1 : (uint32_t)cpus;
}

int
weft__pool_setup(struct weft__pool_setup *out, const weft_pool_opts *opts)
{
	const char *name = opts->name ? opts->name : "weft-pool";
	size_t size = __builtin_strlen(name);

	*out = (struct weft__pool_setup){
		.threads_min = opts->threads_min,
		.threads_max = opts->threads_max,
		.queue_max = opts->queue_max ? opts->queue_max : QUEUE_DEFAULT,
		.idle_ns = opts->idle_ns ? opts->idle_ns : IDLE_DEFAULT,
		.stack_bytes = opts->stack_bytes,
		.may_spin = !opts->no_spin && weft__sys->cpus() > 1,
		.forks = weft__load(&weft__program.forks, WEFT__RELAXED),
	};
	__builtin_memcpy(out->name, name, size < sizeof(out->name) ? size : sizeof(out->name) - 1);
	if (out->threads_max == 0) {
		out->threads_max = threads_default();
		if (out->threads_max < out->threads_min)
			out->threads_max = out->threads_min;
	}
	if (out->threads_min > out->threads_max || out->threads_max > THREADS_MOST)
		return weft__fail(WEFT_EINVAL, "weft_pool_new: threads_min exceeds "
		                               "threads_max, or threads_max exceeds 65,536");
	return set_cpus(out, opts->cpus);
}
