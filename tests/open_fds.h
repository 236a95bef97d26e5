/* open_fds.h - count the open descriptors of this process, to detect leaks.
 *
 * The function is in a header because programs with their own main() cannot link test.c.
 */
#ifndef WEFT_TESTS_OPEN_FDS_H
#define WEFT_TESTS_OPEN_FDS_H

#include <dirent.h>

/* The count includes a constant number of entries that are not descriptors, so only compare two
 * counts with each other.  Returns -1 if the directory cannot be read. */
static inline int
test_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

#endif
