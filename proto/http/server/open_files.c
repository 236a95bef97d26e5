/* open_files.c - a cache of open files.
 *
 * The cache is direct-mapped: the hash of a name selects one slot, and a new entry replaces the
 * slot's old one, so there are at most SLOTS entries.  When an entry is a second old, one of the
 * requests for it reloads it, while the others continue to send the old one.
 *
 * Files are opened and inspected on the blocking pool, since both may wait for a disk.
 */
#include "http/server/files.h"
#include <weft/loop.h>
#include <weft/work.h>
#include "http/parse/http_values.h"

#define SLOTS    256u
#define FRESH_NS WEFT_S

struct weft__http_files {
	struct weft__spin lock;
	struct weft__http_file *slots[SLOTS];
};

void
weft__http_file_give(struct weft__http_file *file)
{
	if (!file || !weft__refs_drop(&file->refs))
		return;
	weft__http_os_close(file->opened.fd);
	weft_release(file);
}

/* --- slots ------------------------------------------------------------------ */

static uint64_t
hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ '\n') * UINT64_C(0x100000001b3);
}

static bool
is_file(const struct weft__http_file *file, uint64_t hash, const char *root, const char *name)
{
	return file && file->hash == hash && strcmp(file->names, root) == 0
	       && strcmp(file->names + file->root_size, name) == 0;
}

/* Look up the cached file; NULL if there is none. */
static struct weft__http_file *
open_files_check(struct weft__http_files *files, uint64_t hash, const char *root, const char *name)
{
	struct weft__http_file *file;

	weft__spin_lock(&files->lock);
	file = files->slots[hash % SLOTS];
	if (is_file(file, hash, root, name))
		weft__refs_add(&file->refs);
	else
		file = NULL;
	weft__spin_unlock(&files->lock);
	return file;
}

static void
open_files_keep(struct weft__http_files *files, struct weft__http_file *file)
{
	struct weft__http_file **slot = &files->slots[file->hash % SLOTS];
	struct weft__http_file *old;

	weft__refs_add(&file->refs);
	weft__spin_lock(&files->lock);
	old = *slot;
	*slot = file;
	weft__spin_unlock(&files->lock);
	weft__http_file_give(old);
}

/* Remove the entry of a file that no longer exists. */
static void
forget(struct weft__http_files *files, struct weft__http_file *file)
{
	struct weft__http_file **slot = &files->slots[file->hash % SLOTS];
	bool there;

	weft__spin_lock(&files->lock);
	there = *slot == file;
	if (there)
		*slot = NULL;
	weft__spin_unlock(&files->lock);
	if (there)
		weft__http_file_give(file);
}

void
weft__http_files_free(struct weft__http_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; i < SLOTS; i++)
		weft__http_file_give(files->slots[i]);
	weft_release(files);
}

/* The server's cache, created when a file is first sent; NULL without memory. */
static struct weft__http_files *
files_of(weft_http_server *server)
{
	struct weft__http_files *files = __atomic_load_n(&server->files, __ATOMIC_ACQUIRE);
	struct weft__http_files *none = NULL;

	if (files)
		return files;
	files = weft_alloc(sizeof(*files));
	if (!files)
		return NULL;
	memset(files, 0, sizeof(*files));
	if (__atomic_compare_exchange_n(&server->files, &none, files, false, __ATOMIC_ACQ_REL,
	                                __ATOMIC_ACQUIRE))
		return files;
	weft_release(files);
	return none;
}

/* --- loading ------------------------------------------------------------------ */

struct job {
	const char *root, *name;
	struct weft__http_opened opened;
};

static int
open_files_find(void *arg)
{
	struct job *job = arg;

	return weft__http_os_open(job->root, job->name, &job->opened);
}

static char *
put_line(char *at, struct text name, const char *value)
{
	at = weft__http_put_text(at, name);
	at = weft__http_put_text(at, (struct text){ value, strlen(value) });
	return weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
}

static void
open_files_describe(struct weft__http_file *file, const char *name)
{
	const struct weft__http_opened *opened = &file->opened;
	char *at = file->etag;

	*at++ = '"';
	at = weft__http_put_hex(at, (uint64_t)opened->modified_s);
	*at++ = '.';
	at = weft__http_put_hex(at, opened->modified_ns);
	*at++ = '-';
	at = weft__http_put_hex(at, opened->size);
	*at++ = '"';
	*at = '\0';
	if (weft__http_date_format(opened->modified_s, file->modified) < 0)
		(void)weft__http_date_format(0, file->modified);
	file->type = weft__http_type_of(name);
	at = put_line(file->lines, WEFT__HTTP_LITERAL("ETag: "), file->etag);
	at = put_line(at, WEFT__HTTP_LITERAL("Last-Modified: "), file->modified);
	at = put_line(at, WEFT__HTTP_LITERAL("Accept-Ranges: "), "bytes");
	file->lines_size = (uint32_t)(at - file->lines);
}

static int
open_files_load(uint64_t hash, const char *root, const char *name, struct weft__http_file **out)
{
	struct job job = { .root = root, .name = name };
	size_t root_size = strlen(root) + 1, name_size = strlen(name) + 1;
	struct weft__http_file *file;
	int rc = weft_work(WEFT_BLOCKING, open_files_find, &job, WEFT_NEVER);

	if (rc < 0)
		return rc;
	file = weft_alloc(sizeof(*file) + root_size + name_size);
	if (!file) {
		weft__http_os_close(job.opened.fd);
		return weft_fail(WEFT_ENOMEM, "weft_http_reply_file: out of memory");
	}
	memset(file, 0, sizeof(*file));
	file->refs = WEFT__REFS_ONE;
	file->hash = hash;
	file->opened = job.opened;
	file->loaded_ns = weft_loop_now(weft_loop_current());
	file->root_size = (uint32_t)root_size;
	memcpy(file->names, root, root_size);
	memcpy(file->names + root_size, name, name_size);
	open_files_describe(file, name);
	*out = file;
	return 0;
}

/* Whether to use the entry as it is.  Of the requests that find it too old, one gets false. */
static bool
is_usable(struct weft__http_file *file)
{
	/* loaded_ns may come from another loop, whose clock may be ahead. */
	return weft_loop_now(weft_loop_current()) < file->loaded_ns + FRESH_NS
	       || __atomic_exchange_n(&file->reloaded, 1, __ATOMIC_RELAXED);
}

int
weft__http_file_take(weft_http_server *server, const char *root, const char *name,
                     struct weft__http_file **out)
{
	uint64_t hash = hash_text(hash_text(UINT64_C(0xcbf29ce484222325), root), name);
	struct weft__http_files *files = files_of(server);
	struct weft__http_file *file;
	int rc;

	file = files ? open_files_check(files, hash, root, name) : NULL;
	if (file && is_usable(file)) {
		*out = file;
		return 0;
	}
	rc = open_files_load(hash, root, name, out);
	if (file && rc < 0) /* the next request tries again */
		__atomic_store_n(&file->reloaded, 0, __ATOMIC_RELAXED);
	if (file && rc == WEFT_ENOENT)
		forget(files, file);
	weft__http_file_give(file);
	if (rc == 0 && files)
		open_files_keep(files, *out);
	return rc;
}
