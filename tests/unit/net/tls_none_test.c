/* tls_none_test.c - a build without TLS says so. */
#include "test.h"

TEST(tls_is_not_in_this_build)
{
	weft_tls *tls = NULL;

	CHECK_EQ(weft_tls_open(NULL, &tls), WEFT_ENOSYS);
	CHECK(strstr(weft_detail(), "without TLS"));
	CHECK(!tls);
	CHECK_EQ(weft_tls_reload(tls), WEFT_ENOSYS);
	weft_tls_close(tls);
}
