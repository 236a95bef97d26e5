/* files.h - static files, as file.c and open_files.c share them.  Private. */
#ifndef WEFT_HTTP_FILES_H
#define WEFT_HTTP_FILES_H

#include "os_http.h"
#include "server.h"

/* A file that is open, and what its replies say of it.  Shared by those that send it;
 * only read, but for the count. */
struct weft__http_file {
	uint32_t                holders;   /* atomic */
	uint32_t                reloaded;  /* atomic: somebody looks at it anew */
	uint64_t                loaded_ns;
	uint64_t                hash;      /* of root and name */
	struct weft__http_found found;
	const char             *type;
	char                    etag[48];
	char                    modified[32]; /* a date */
	uint32_t                lines_size;
	char                    lines[160];   /* of a head: ETag and so on */
	uint32_t                root_size;    /* with its NUL */
	char                    names[];      /* root, name */
};

/* The file, open, to be given back; looked for if it is not at hand or more than a second
 * old.  `name` as weft__http_os_find() wants it.  Returns 0 or -errno. */
int weft__http_file_take(weft_http_server *server, const char *root, const char *name,
                         struct weft__http_file **out);
void weft__http_file_give(struct weft__http_file *file);

/* The type of a file by its suffix. */
const char *weft__http_type_of(const char *name);

#endif
