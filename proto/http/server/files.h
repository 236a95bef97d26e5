/* files.h - static files, shared by http_file.c and open_files.c.  Private. */
#ifndef WEFT_HTTP_FILES_H
#define WEFT_HTTP_FILES_H

#include "http/server/os_http.h"
#include "http/server/http_server.h"

/* An open file and the headers of its replies.  Shared by the requests that send it.  Immutable
 * except for the atomic members. */
struct weft__http_file {
	struct weft__refs       refs;
	uint32_t                reloaded;  /* atomic: a request reloads it */
	uint64_t                loaded_ns;
	uint64_t                hash;      /* of root and name */
	struct weft__http_opened opened;
	const char             *type;
	char                    etag[48];
	char                    modified[32]; /* Last-Modified */
	uint32_t                lines_size;
	char                    lines[160];   /* the header lines: ETag and so on */
	uint32_t                root_size;    /* including its NUL */
	char                    names[];      /* root, name */
};

/* Get the file, open; the caller gives it back.  The call loads the file if it is not cached, or
 * if it was loaded a second ago or earlier and no other request is reloading it.  `name` is as for
 * weft__http_os_open().  Returns 0 or -errno. */
int weft__http_file_take(weft_http_server *server, const char *root, const char *name,
                         struct weft__http_file **out);
void weft__http_file_give(struct weft__http_file *file);

/* The content type of a file by its suffix. */
const char *weft__http_type_of(const char *name);

#endif
