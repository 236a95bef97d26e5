/* valgrind.c - detects valgrind. */
#include "base/valgrind.h"

#include <string.h>
#include "base/os.h"

bool weft__on_valgrind;

__attribute__((constructor)) static void
detect_valgrind(void)
{
	const char *preloaded = weft__os_env("LD_PRELOAD");

	weft__on_valgrind = RUNNING_ON_VALGRIND || (preloaded && strstr(preloaded, "vgpreload_"));
}
