/* du.c - the size of a directory tree, by eight workers on all loops.
 *
 *     du [DIRECTORY]
 *
 * The workers share a stack of directories.  A worker that finds it empty
 * waits: another worker may still find more directories.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <weft/weft.h>

struct folder {
	struct folder *next;
	struct folder *found; /* the folders in this one */
	long long bytes;      /* of the files in this one */
	char path[];
};

static weft_mutex lock = WEFT_SHARED_INIT; /* of all that follows */
static weft_cond changed = WEFT_SHARED_INIT;
static struct folder *stack;
static int in_progress; /* folders being read */
static long long total;

static struct folder *
folder_new(const char *parent, const char *name)
{
	size_t size = strlen(parent) + strlen(name) + 2;
	struct folder *folder = calloc(1, sizeof *folder + size);

	if (folder)
		snprintf(folder->path, size, "%s%s%s", parent,
		         *parent ? "/" : "", name);
	return folder;
}

static void
add_entry(struct folder *folder, int dir, const char *name)
{
	struct folder *found;
	struct stat info;

	if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0
	    || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (S_ISREG(info.st_mode))
		folder->bytes += info.st_size;
	if (S_ISDIR(info.st_mode) && (found = folder_new(folder->path, name))) {
		found->next = folder->found;
		folder->found = found;
	}
}

/* On a thread of the blocking pool. */
static int
read_folder(void *arg)
{
	struct folder *folder = arg;
	DIR *dir = opendir(folder->path);
	const struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		add_entry(folder, dirfd(dir), entry->d_name);
	closedir(dir);
	return 0;
}

/* Wait for a folder; 0 when all have been read. */
static int
take(struct folder **out)
{
	int rc = weft_mutex_lock(&lock, WEFT_NEVER);

	if (rc < 0)
		return rc;
	while (rc == 0 && !stack && in_progress > 0)
		rc = weft_cond_wait(&changed, &lock, WEFT_NEVER);
	if (rc == 0 && stack) {
		*out = stack;
		stack = stack->next;
		in_progress++;
		rc = 1;
	}
	weft_mutex_unlock(&lock);
	return rc;
}

static int
finish(struct folder *folder)
{
	int rc = weft_mutex_lock(&lock, WEFT_NEVER);

	if (rc < 0)
		return rc;
	while (folder->found) {
		struct folder *found = folder->found;

		folder->found = found->next;
		found->next = stack;
		stack = found;
		weft_cond_wake(&changed); /* a worker, for this folder */
	}
	total += folder->bytes;
	if (--in_progress == 0 && !stack)
		weft_cond_wake_all(&changed); /* all workers are done */
	return weft_mutex_unlock(&lock);
}

static int
work(void *arg)
{
	struct folder *folder = NULL;
	int rc;

	(void)arg;
	while ((rc = take(&folder)) > 0) {
		rc = weft_work(WEFT_BLOCKING, read_folder, folder, WEFT_NEVER);
		if (rc < 0)
			fprintf(stderr, "%s: %s\n", folder->path,
			        weft_strerror(rc));
		rc = finish(folder);
		free(folder);
		if (rc < 0)
			break;
	}
	return rc;
}

static int
run(void *path)
{
	weft_scope scope;
	weft_go_opts opts = { .name = "worker",
		              .loop = WEFT_LEAST_LOADED,
		              .scope = &scope };
	int rc;

	stack = folder_new("", path);
	if (!stack)
		return WEFT_ENOMEM;
	weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);
	for (int i = 0; i < 8; i++)
		if (weft_go_with(&opts, work, NULL) < 0)
			weft_scope_cancel(&scope);
	rc = weft_scope_close(&scope);
	if (rc == 0)
		printf("%lld bytes\n", total);
	return rc;
}

int
main(int argc, char **argv)
{
	static char here[] = ".";

	return weft_main(NULL, run, argc > 1 ? argv[1] : here);
}
