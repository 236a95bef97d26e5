/* base_bytes.h - bytes that grow. */
#ifndef WEFT_TOOLS_BYTES_H
#define WEFT_TOOLS_BYTES_H

#include <stddef.h>

/* Initialize with zeros. */
struct bytes {
	char  *data; /* with a NUL after the last byte; or NULL */
	size_t size, room;
	int    rc;   /* 0, or the error of the first bytes_add() that failed */
};

/* Append bytes; a text.  Return 0, or WEFT_ENOMEM with an error text.  After a failure every
 * further call fails, so that only the last one of several needs a check. */
int bytes_add(struct bytes *bytes, const void *data, size_t size);
int bytes_add_text(struct bytes *bytes, const char *text);

/* Append what can be read from the file `fd`, until there are `max` bytes.  Returns 0, WEFT_ENOMEM,
 * or -errno. */
int bytes_read(struct bytes *bytes, int fd, size_t max);

void bytes_free(struct bytes *bytes);

#endif
