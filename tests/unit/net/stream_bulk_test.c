/* stream_bulk_test.c - much over each kind of stream, at counts of all sizes. */
#include "bulk.h"

TEST(much_comes_whole_over_each_kind_of_stream_at_full_counts)
{
	bulk_run(BULK_FULL, LINE_PIPE, NULL, NULL);
}

TEST(much_comes_whole_over_each_kind_of_stream_at_counts_by_chance)
{
	bulk_run(BULK_MIXED, LINE_PIPE, NULL, NULL);
}

TEST(all_comes_whole_over_each_kind_of_stream_byte_by_byte)
{
	bulk_run(BULK_BYTES, LINE_PIPE, NULL, NULL);
}

TEST(much_comes_after_the_last_word_of_the_other_side)
{
	bulk_run_half(NULL, NULL);
}
