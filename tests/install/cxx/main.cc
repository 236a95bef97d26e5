#include <cstdio>
#include <weft/weft.h>

int
main()
{
	weft_hooks hooks = WEFT_INIT;

	if (weft_set_hooks(&hooks) < 0)
		return 1;
	std::printf("weft %s from C++\n", weft_version());
	return weft_after(0) == WEFT_NEVER;
}
