/* open_fds.h - count the descriptors of this process, to see whether one is left.
 *
 * In a header, as programs with a main() of their own cannot be linked to test.c.
 */
#ifndef WEFT_TESTS_OPEN_FDS_H
#define WEFT_TESTS_OPEN_FDS_H

#include <dirent.h>

/* Some entries of the folder are none, always as many: compare two counts.  -1 if it
 * cannot be read. */
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
