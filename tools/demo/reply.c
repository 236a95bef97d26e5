/* reply.c - formats a feed as JSON, with the times of its steps. */
#include "service.h"

static uint64_t
since_us(const struct request *request, uint64_t at_ns)
{
	return at_ns > request->begin_ns ? (at_ns - request->begin_ns) / WEFT_US : 0;
}

void
reply_write_nodes(struct text *text, const struct request *request)
{
	static const char *const states[] = { "waiting", "running", "done", "failed" };

	text_add(text, "\"nodes\":[");
	for (int i = 0; i < NODES; i++) {
		const struct node_time *time = &request->nodes[i];
		const char *const *after = steps_inputs((enum node)i);

		text_add(text,
		         "%s{\"name\":\"%s\",\"place\":\"%s\","
		         "\"begin_us\":%llu,\"end_us\":%llu,\"after\":[",
		         i ? "," : "", steps_name((enum node)i), steps_place((enum node)i),
		         (unsigned long long)since_us(request, time->begin_ns),
		         (unsigned long long)since_us(request, time->end_ns));
		for (int j = 0; j < 3 && after[j]; j++)
			text_add(text, "%s\"%s\"", j ? "," : "", after[j]);
		text_add(text, "],\"state\":\"%s\"}", states[time->state]);
	}
	text_add(text, "]");
}

void
reply_write(struct text *text, const struct request *request, const struct feed *feed)
{
	text_add(text, "{\"viewer\":%u,\"name\":", request->viewer);
	text_add_quoted(text, feed->profile.name);
	text_add(text, ",\"candidates\":%u,\"seen\":%u,\"items\":[", feed->candidates, feed->seen);
	for (uint32_t i = 0; i < feed->count; i++) {
		const struct ranked *item = &feed->items[i];

		text_add(text,
		         "%s{\"item\":%u,\"score\":%lld,\"author\":%u,"
		         "\"source\":\"%s\"}",
		         i ? "," : "", item->item, (long long)item->score, item->author,
		         source_names[item->source]);
	}
	text_add(text, "],\"total_us\":%llu,", (unsigned long long)since_us(request, weft_now()));
	reply_write_nodes(text, request);
	text_add(text, "}\n");
}
