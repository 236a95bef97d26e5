/* proto_buffer.h - bytes in memory that grows.  Private to proto/ and bindings/.
 *
 * A zeroed buffer is empty.  A buffer may be copied; then only one of the two may be used.
 */
#ifndef WEFT_PROTO_BUFFER_H
#define WEFT_PROTO_BUFFER_H

#include <string.h>
#include <weft/base.h>

struct weft__buffer {
	char  *data;
	size_t size, room;
};

/* Make room for `more` bytes behind the present ones.  The room is 4 KiB at first, and doubles.
 * False without memory. */
static inline bool
weft__buffer_reserve(struct weft__buffer *buffer, size_t more)
{
	size_t room = buffer->room ? buffer->room : 4096;
	char *data;

	if (more <= buffer->room - buffer->size)
		return true;
	if (more > SIZE_MAX / 4 - buffer->size)
		return false;
	while (room < buffer->size + more)
		room *= 2;
	data = weft_alloc(room);
	if (!data)
		return false;
	if (buffer->size > 0)
		memcpy(data, buffer->data, buffer->size);
	weft_release(buffer->data);
	buffer->data = data;
	buffer->room = room;
	return true;
}

static inline void
weft__buffer_free(struct weft__buffer *buffer)
{
	weft_release(buffer->data);
	*buffer = (struct weft__buffer){ 0 };
}

#endif
