/* list.h - the backends of this build, best first. */
#ifndef WEFT_BACKEND_LIST_H
#define WEFT_BACKEND_LIST_H

#include "backend/backend.h"

static const struct weft__backend_ops *const backends[] = {
#ifndef WEFT_PORTABLE
	&weft__backend_uring,
	&weft__backend_epoll,
#endif
	&weft__backend_poll,
};

#endif
