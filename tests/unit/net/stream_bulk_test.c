/* stream_bulk_test.c - much over each kind of stream, at counts of all sizes. */
#include "bulk.h"

TEST(much_comes_whole_over_each_kind_of_stream_at_full_counts)
{
	bulk_run(CUT_NOT);
}

TEST(much_comes_whole_over_each_kind_of_stream_at_counts_by_chance)
{
	bulk_run(CUT_BY_CHANCE);
}

TEST(all_comes_whole_over_each_kind_of_stream_byte_by_byte)
{
	bulk_run(CUT_TO_BYTES);
}

TEST(much_comes_after_the_last_word_of_the_other_side)
{
	bulk_run_half(NULL, NULL);
}
