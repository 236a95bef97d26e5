/* os_stat.c - the type and identity of a descriptor. */
#include <sys/stat.h>
#include "base/os.h"

int
weft__os_kind(int fd)
{
	struct stat st;
	int rc = (int)weft__os_result(fstat(fd, &st));

	if (rc < 0)
		return rc;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return WEFT__FD_FILE;
	return S_ISSOCK(st.st_mode) ? WEFT__FD_SOCKET : WEFT__FD_OTHER;
}

int64_t
weft__os_identity(int fd)
{
	struct stat st;
	int rc = (int)weft__os_result(fstat(fd, &st));

	if (rc < 0)
		return rc;
	return (int64_t)(((uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 32
	                  ^ (uint64_t)st.st_mode << 48)
	                 & INT64_MAX);
}
