/* tls_none_test.c - a build without TLS reports that. */
#include "test.h"

TEST(tls_calls_fail_with_enosys_in_a_build_without_tls)
{
	weft_tls *tls = NULL;

	CHECK_EQ(weft_tls_open(NULL, &tls), WEFT_ENOSYS);
	CHECK(strstr(weft_detail(), "without TLS"));
	CHECK(!tls);
	CHECK_EQ(weft_tls_reload(tls), WEFT_ENOSYS);
	weft_tls_close(tls);
}
