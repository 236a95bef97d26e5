/* listing.c - calls that block, in the blocking pool: the names in a directory.
 *
 *     listing [DIRECTORY]
 */
#include <dirent.h>
#include <stdio.h>
#include <weft/weft.h>

struct listing {
	const char *path;
	int count;
	char names[100][256];
};

/* On a thread of the pool: it may block, but not suspend. */
static int
read_names(void *arg)
{
	struct listing *listing = arg;
	DIR *dir = opendir(listing->path);
	const struct dirent *entry;

	if (!dir)
		return weft_fail(-errno, "opendir %s: %s", listing->path,
		                 weft_strerror(-errno));
	while (listing->count < 100 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(listing->names[listing->count++], 256, "%s",
			         entry->d_name);
	closedir(dir);
	return 0;
}

static int
run(void *arg)
{
	static struct listing listing; /* too large for a stack */
	int rc;

	listing.path = arg;
	rc = weft_work(WEFT_BLOCKING, read_names, &listing,
	               weft_after(5 * WEFT_S));
	for (int i = 0; rc == 0 && i < listing.count; i++)
		puts(listing.names[i]);
	return rc;
}

int
main(int argc, char **argv)
{
	static char here[] = ".";

	return weft_main(NULL, run, argc > 1 ? argv[1] : here);
}
