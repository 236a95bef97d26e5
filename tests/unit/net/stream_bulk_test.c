/* stream_bulk_test.c - bulk data over each kind of stream, in pieces of all sizes. */
#include "bulk.h"

TEST(bulk_data_arrives_complete_over_each_kind_of_stream)
{
	bulk_run(CUT_NOT);
}

TEST(bulk_data_arrives_complete_when_transfers_are_cut_at_random)
{
	bulk_run(CUT_BY_CHANCE);
}

TEST(data_arrives_complete_when_transfers_are_cut_to_single_bytes)
{
	bulk_run(CUT_TO_BYTES);
}

TEST(bulk_data_arrives_after_the_receiver_has_half_closed)
{
	bulk_run_half(NULL, NULL);
}
