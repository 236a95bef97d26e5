/* fds.c - the table of descriptors. */
#include "backend/fds.h"

#define PAGE_BYTES (WEFT__FDS_PAGE * sizeof(struct weft__fd))

static int
fds_grow(struct weft__fds *fds, uint32_t page)
{
	uint32_t count = fds->count ? 2 * fds->count : 8;
	struct weft__fd **pages;

	while (count <= page)
		count *= 2;
	pages = weft__sys->resize(fds->pages, count * sizeof(*pages));
	if (!pages)
		return WEFT_ENOMEM;
	for (uint32_t i = fds->count; i < count; i++)
		pages[i] = NULL;
	fds->pages = pages;
	fds->count = count;
	return 0;
}

struct weft__fd *
weft__fds_make(struct weft__fds *fds, int fd)
{
	uint32_t page = (uint32_t)fd / WEFT__FDS_PAGE;

	if (page >= fds->count && fds_grow(fds, page) < 0)
		return NULL;
	if (!fds->pages[page])
		fds->pages[page] = weft__alloc_zero(PAGE_BYTES);
	return weft__fds_get(fds, fd);
}

void
weft__fds_fini(struct weft__fds *fds)
{
	for (uint32_t i = 0; i < fds->count; i++)
		weft__sys->release(fds->pages[i]);
	weft__sys->release(fds->pages);
	*fds = (struct weft__fds){ 0 };
}
