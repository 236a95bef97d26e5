/* base_bytes.c - bytes that grow. */
#include "base_bytes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/base.h>

/* Makes room for more bytes and a NUL. */
static int
bytes_reserve(struct bytes *bytes, size_t more)
{
	size_t room = bytes->room ? bytes->room : 256;
	char *data;

	while (room < bytes->size + more + 1)
		room *= 2;
	if (room == bytes->room)
		return 0;
	data = realloc(bytes->data, room);
	if (!data)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	bytes->data = data;
	bytes->room = room;
	return 0;
}

int
bytes_add(struct bytes *bytes, const void *data, size_t size)
{
	if (bytes->rc == 0)
		bytes->rc = bytes_reserve(bytes, size);
	if (bytes->rc < 0)
		return bytes->rc;
	if (size > 0)
		memcpy(bytes->data + bytes->size, data, size);
	bytes->size += size;
	bytes->data[bytes->size] = '\0';
	return 0;
}

int
bytes_add_text(struct bytes *bytes, const char *text)
{
	return bytes_add(bytes, text, strlen(text));
}

int
bytes_read(struct bytes *bytes, int fd, size_t max)
{
	ssize_t n = 1;

	while (n != 0 && bytes->size < max) {
		size_t more = max - bytes->size < 65536 ? max - bytes->size : 65536;
		int rc = bytes_reserve(bytes, more);

		if (rc < 0)
			return rc;
		n = read(fd, bytes->data + bytes->size, more);
		if (n < 0 && errno != EINTR)
			return -errno;
		bytes->size += n > 0 ? (size_t)n : 0;
		bytes->data[bytes->size] = '\0';
	}
	return 0;
}

void
bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){ 0 };
}
