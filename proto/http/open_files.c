/* open_files.c - descriptors of static files that are kept open. */
#include "server.h"

void
weft__http_files_free(struct weft__http_files *files)
{
	(void)files;
}

int
weft_http_reply_file(weft_http *http, const char *root, const char *name,
                     uint64_t deadline_ns)
{
	(void)root, (void)name;
	return weft__http_reply_status(http, 404, deadline_ns);
}
