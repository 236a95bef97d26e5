/* perf_test.c - a performance timeline with marks and measures. */
#include "unit/probe.h"

static weft_perf_entry
entry_at(const weft_perf *perf, size_t index)
{
	weft_perf_entry entry;

	OK(weft_perf_get(perf, index, &entry));
	return entry;
}

TEST(entries_are_ordered_by_their_start)
{
	weft_perf *perf = weft_perf_new(0);
	weft_perf_entry entry;

	CHECK(perf);
	CHECK(weft_perf_origin(perf) > UINT64_C(1500000000) * WEFT_S);
	OK(weft_perf_mark(perf, "a"));
	OK(weft_perf_mark(perf, "b"));
	OK(weft_perf_measure(perf, "a to b", "a", "b"));
	OK(weft_perf_measure(perf, "until b", NULL, "b"));
	OK(weft_perf_measure(perf, "since b", "b", NULL));
	CHECK_STR(entry_at(perf, 0).name, "until b");
	CHECK_STR(entry_at(perf, 1).name, "a");
	CHECK_STR(entry_at(perf, 2).name, "a to b");
	CHECK_STR(entry_at(perf, 3).name, "b");
	CHECK_STR(entry_at(perf, 4).name, "since b");
	CHECK_EQ(weft_perf_get(perf, 5, &entry), WEFT_ENOENT);
	entry = entry_at(perf, 2);
	CHECK(entry.is_measure && !entry_at(perf, 1).is_measure);
	CHECK_EQ(entry.start_ns, entry_at(perf, 1).start_ns);
	CHECK_EQ(entry.duration_ns, entry_at(perf, 3).start_ns - entry.start_ns);
	CHECK_EQ(entry_at(perf, 0).duration_ns, entry_at(perf, 3).start_ns);
	CHECK_EQ(entry_at(perf, 1).duration_ns, 0);
	CHECK(weft_perf_now(perf) >= entry_at(perf, 4).start_ns);
	weft_perf_free(perf);
}

TEST(a_measure_is_between_the_latest_marks_of_its_names)
{
	weft_perf *perf = weft_perf_new(0);

	OK(weft_perf_mark(perf, "a"));
	OK(weft_perf_mark(perf, "b"));
	OK(weft_perf_mark(perf, "a"));
	OK(weft_perf_measure(perf, "back", "a", "b")); /* a duration is never negative */
	CHECK_EQ(entry_at(perf, 3).start_ns, entry_at(perf, 2).start_ns);
	CHECK_EQ(entry_at(perf, 3).duration_ns, 0);
	CHECK_EQ(weft_perf_measure(perf, "x", "back", NULL), WEFT_ENOENT);
	CHECK(strstr(weft_detail(), "back"));
	CHECK_EQ(weft_perf_measure(perf, "x", NULL, "c"), WEFT_ENOENT);
	weft_perf_free(perf);
}

TEST(a_full_timeline_drops_its_oldest_entry_and_clears_by_name)
{
	weft_perf *perf = weft_perf_new(3);
	weft_perf_entry entry;

	for (int i = 0; i < 5; i++) {
		char name[2] = { (char)('a' + i % 4), '\0' };

		OK(weft_perf_mark(perf, name));
	}
	CHECK_STR(entry_at(perf, 0).name, "c");
	CHECK_STR(entry_at(perf, 2).name, "a");
	weft_perf_clear(perf, "d");
	CHECK_STR(entry_at(perf, 1).name, "a");
	CHECK_EQ(weft_perf_get(perf, 2, &entry), WEFT_ENOENT);
	weft_perf_clear(perf, NULL);
	CHECK_EQ(weft_perf_get(perf, 0, &entry), WEFT_ENOENT);
	weft_perf_free(perf);
	weft_perf_free(NULL);
}

TEST(marks_and_measures_without_names_are_misuse)
{
	weft_perf *perf = weft_perf_new(0);

	CHECK_MISUSE(weft_perf_mark(perf, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_perf_measure(perf, NULL, NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_perf_get(perf, 0, NULL), WEFT_EINVAL);
	weft_perf_free(perf);
}
