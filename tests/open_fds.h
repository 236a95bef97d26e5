/* open_fds.h - counts the descriptors of this process, to detect leaks.
 *
 * In a header, because programs with their own main() cannot be linked with test.c.
 */
#ifndef WEFT_TESTS_OPEN_FDS_H
#define WEFT_TESTS_OPEN_FDS_H

#include <dirent.h>

/* Some entries of the directory (".", "..", its own descriptor) are not counted descriptors.
 * Their number is constant: compare two counts.  Returns -1 if the directory cannot be read. */
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
