/* window_none.c - no window: this weft was built without it. */
#include "service.h"

int
window_open(struct demo *demo, struct window **out)
{
	(void)demo;
	*out = NULL;
	return 0;
}

void
window_close(struct window *window)
{
	(void)window;
}

bool
window_allows(struct window *window, weft_http *http, bool writes)
{
	(void)window, (void)http, (void)writes;
	return true;
}
