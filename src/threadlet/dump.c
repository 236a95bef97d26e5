/* dump.c - threadlets as text.
 *
 * The text about each threadlet is first put together in memory.  So a block is one write, and a
 * slow descriptor blocks only the calling thread, not the loops that are listed.
 */
#include <poll.h>
#include "base/os.h"
#include "threadlet/threadlet.h"

#define ANSWER_NS WEFT_S /* how long to wait for a loop's answer */
#define SLICE     16u
#define BLOCK     ((size_t)4096) /* of text about one threadlet */

struct dump {
	int fd;
	int count;
	uint64_t now_ns;
	weft_threadlet_info infos[SLICE];
	char block[BLOCK];
};

/* --- text --------------------------------------------------------------- */

static void
add_wait(struct weft__text *text, const weft_threadlet_info *info)
{
	if (!info->waits_for[0])
		return;
	weft__text_add(text, " for ");
	weft__text_add(text, info->waits_for);
	if (info->waits_on == 0)
		return;
	weft__text_add(text, " ");
	if (info->waits_on > INT64_C(1) << 40)
		weft__text_hex(text, (uint64_t)info->waits_on);
	else
		weft__text_number(text, info->waits_on);
}

static void
add_times(struct weft__text *text, const weft_threadlet_info *info, uint64_t now_ns)
{
	weft__text_add(text, ", for ");
	weft__text_seconds(text, now_ns > info->since_ns ? now_ns - info->since_ns : 0);
	if (info->deadline_ns == WEFT_NEVER)
		return;
	weft__text_add(text, ", times out in ");
	weft__text_seconds(text, info->deadline_ns > now_ns ? info->deadline_ns - now_ns : 0);
}

static void
add_stack(struct weft__text *text, const weft_threadlet_info *info)
{
	weft__text_add(text, "    stack: ");
	weft__text_number(text, (int64_t)info->stack_used);
	weft__text_add(text, " bytes in use, ");
	weft__text_number(text, (int64_t)info->stack_high);
	weft__text_add(text, " at peak, of ");
	weft__text_number(text, (int64_t)info->stack_bytes);
	weft__text_add(text, "\n");
	for (int i = 0; i < 16 && info->frames[i]; i++) {
		weft__text_add(text, "    #");
		weft__text_number(text, i);
		weft__text_add(text, " ");
		weft__os_add_symbol(text, info->frames[i]);
		weft__text_add(text, "\n");
	}
}

void
weft__add_name(struct weft__text *text, const weft_threadlet_info *info)
{
	if (info->name[0])
		weft__text_add(text, info->name);
	else
		weft__os_add_symbol(text, info->fn);
}

void
weft__add_threadlet(struct weft__text *text, const weft_threadlet_info *info, uint64_t now_ns)
{
	weft__text_add(text, "  threadlet ");
	weft__text_number(text, info->id);
	weft__text_add(text, " (");
	weft__add_name(text, info);
	weft__text_add(text, ") is ");
	weft__text_add(text, info->state);
	add_wait(text, info);
	add_times(text, info, now_ns);
	weft__text_add(text, "\n    started at ");
	weft__os_add_symbol(text, info->spawned_at);
	weft__text_add(text, "\n");
	add_stack(text, info);
}

void
weft__add_sched(struct weft__text *text, const struct weft__sched *sched)
{
	weft_threadlet_info info;

	for (struct weft__threadlet *t = sched->newest; t; t = t->older) {
		if (text->room - text->size < BLOCK / 4) {
			weft__text_add(text, "  ...\n");
			return;
		}
		weft__threadlet_describe(t, &info);
		weft__add_threadlet(text, &info, weft__sys->now());
	}
}

size_t
weft_symbol(const void *address, char *buf, size_t size)
{
	struct weft__text text;

	if (!buf || size == 0)
		return 0;
	text = weft__text_begin(buf, size);
	weft__os_add_symbol(&text, address);
	return text.size;
}

/* --- to a descriptor ---------------------------------------------------- */

/* Write all of it.  Returns 0, or an error. */
static int
write_out(int fd, const struct weft__text *text)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	size_t done = 0;

	while (done < text->size) {
		int64_t n = weft__sys->write(fd, text->buf + done, text->size - done);

		if (n == -EAGAIN)
			n = weft__sys->poll(&ready, 1, -1) < 0 ? -EAGAIN : 0;
		if (n < 0 && n != -EINTR)
			return (int)n;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static const char *
state_of(const weft_loop *loop)
{
	static const char *const names[] = { "idle",     "starting", "running",
		                             "sleeping", "stopping", "stopped" };

	return names[weft_loop_state(loop)];
}

static int
write_head(struct dump *dump, const weft_loop *loop, int rc)
{
	struct weft__text text = weft__text_begin(dump->block, BLOCK);
	const char *name = weft__loop_name(loop);

	weft__text_add(&text, "loop ");
	weft__text_number(&text, (int64_t)weft__loop_id(loop));
	weft__text_add(&text, name[0] ? " (" : "");
	weft__text_add(&text, name);
	weft__text_add(&text, name[0] ? ")" : "");
	if (rc < 0) {
		weft__text_add(&text, " does not answer: ");
		weft__text_add(&text, weft_strerror(rc));
	} else {
		weft__text_add(&text, " was ");
		weft__text_add(&text, state_of(loop));
	}
	weft__text_add(&text, "\n");
	return write_out(dump->fd, &text);
}

static int
write_slice(struct dump *dump, int count)
{
	for (int i = 0; i < count; i++) {
		struct weft__text text = weft__text_begin(dump->block, BLOCK);
		int rc;

		weft__add_threadlet(&text, &dump->infos[i], weft__sys->now());
		rc = write_out(dump->fd, &text);
		if (rc < 0)
			return rc;
		dump->count++;
	}
	return 0;
}

/* The first line about a loop, unless it has no threadlets.  The caller's visit of the loop ends.
 * Returns 1, 0 if there is nothing to write, or a write error. */
static int
begin_loop(struct dump *dump, weft_loop *loop, int error)
{
	bool has_sched = weft__sched_at(loop) != NULL;
	int rc = has_sched ? write_head(dump, loop, error) : 0;

	weft__loop_exit(loop);
	return rc < 0 ? rc : has_sched;
}

/* The loop has not answered in time. */
static int
write_no_answer(struct dump *dump, uint64_t id, int error)
{
	weft_loop *loop = weft__registry_find(id);
	int rc = loop ? begin_loop(dump, loop, error) : 0;

	return rc < 0 ? rc : 0;
}

/* Write the threadlets of a loop.  Returns 0, or a write error. */
static int
dump_threadlets(struct dump *dump, uint64_t id)
{
	uint64_t cursor = 0;
	int rc = 0, count = 1;

	while (rc == 0 && count > 0) {
		count = weft_threadlet_list(id, &cursor, dump->infos, SLICE, weft_after(ANSWER_NS));
		if (count == WEFT_ENOENT)
			break; /* it was freed */
		rc = count < 0 ? write_no_answer(dump, id, count) : write_slice(dump, count);
	}
	return rc;
}

int
weft_dump(int fd)
{
	struct dump *dump = weft__sys->alloc(sizeof(*dump));
	uint64_t after = 0;
	weft_loop *loop;
	int rc = 0;

	if (!dump)
		return weft__fail(WEFT_ENOMEM, "weft_dump: out of memory");
	dump->fd = fd;
	dump->count = 0;
	while (rc == 0 && (loop = weft__registry_next(&after))) {
		rc = begin_loop(dump, loop, 0);
		if (rc > 0)
			rc = dump_threadlets(dump, after);
	}
	if (rc == 0)
		rc = dump->count;
	else
		(void)weft__fail(rc, "weft_dump: cannot write to fd");
	weft__sys->release(dump);
	return rc;
}
