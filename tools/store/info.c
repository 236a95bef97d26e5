/* info.c - INFO, which also reports that all data is in memory only. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "command.h"
#include "say.h"
#include "version.h"

struct page {
	struct heap *heap;
	struct text *text;
	const struct word *sections;
	size_t count;
};

__attribute__((format(printf, 2, 3))) static void
add(struct page *page, const char *format, ...)
{
	char line[256];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	page->text = text_reserve(page->heap, page->text, page->text->size + (size_t)size);
	memcpy(page->text->bytes + page->text->size, line, (size_t)size);
	page->text->size += (uint32_t)size;
}

/* Returns whether a section was requested; if so, adds its title. */
static bool
info_begin(struct page *page, const char *section)
{
	bool asked = page->count == 0;

	for (size_t i = 0; i < page->count; i++)
		asked |= word_is(page->sections[i], section) || word_is(page->sections[i], "all")
		         || word_is(page->sections[i], "default")
		         || word_is(page->sections[i], "everything");
	if (asked)
		add(page, "%s# %c%s\r\n", page->text->size ? "\r\n" : "", section[0] & ~0x20,
		    section + 1);
	return asked;
}

static void
add_server(struct page *page, const struct weft_store *store)
{
	if (!info_begin(page, "server"))
		return;
	add(page,
	    "redis_version:%s\r\nredis_mode:standalone\r\n"
	    "server_name:weft store\r\nweft_version:%s\r\n",
	    STORE_SPEAKS, weft_version());
	add(page, "process_id:%lld\r\nuptime_in_seconds:%lld\r\n", (long long)getpid(),
	    (long long)(store->now_ms - store->start_ms) / 1000);
}

static void
add_clients(struct page *page, const struct weft_store *store)
{
	if (info_begin(page, "clients"))
		add(page,
		    "connected_clients:%u\r\nmaxclients:%u\r\n"
		    "blocked_clients:%u\r\n",
		    store->client_count, store->opts.clients_max, store->blocked_count);
}

static void
add_memory(struct page *page, const struct weft_store *store)
{
	if (!info_begin(page, "memory"))
		return;
	add(page,
	    "used_memory:%zu\r\nused_memory_peak:%zu\r\n"
	    "mem_clients_normal:%zu\r\n",
	    store->heap.used, store->heap.peak, store->traffic.used);
	add(page, "maxmemory:%zu\r\nmaxmemory_policy:noeviction\r\n", store->opts.memory_max);
}

static void
add_persistence(struct page *page)
{
	if (info_begin(page, "persistence"))
		add(page, "in_memory_only:1\r\nloading:0\r\n"
		          "rdb_changes_since_last_save:0\r\n"
		          "aof_enabled:0\r\n");
}

static void
add_stats(struct page *page, const struct weft_store *store)
{
	const struct store_stats *stats = &store->stats;

	if (!info_begin(page, "stats"))
		return;
	add(page,
	    "total_connections_received:%llu\r\n"
	    "total_commands_processed:%llu\r\n"
	    "total_net_input_bytes:%llu\r\ntotal_net_output_bytes:%llu\r\n",
	    (unsigned long long)stats->connections, (unsigned long long)stats->commands,
	    (unsigned long long)stats->in_bytes, (unsigned long long)stats->out_bytes);
	add(page,
	    "rejected_connections:%llu\r\nexpired_keys:%llu\r\n"
	    "evicted_keys:0\r\nkeyspace_hits:%llu\r\nkeyspace_misses:%llu\r\n",
	    (unsigned long long)stats->rejected, (unsigned long long)stats->expired,
	    (unsigned long long)stats->hits, (unsigned long long)stats->misses);
	add(page, "pubsub_channels:%zu\r\npubsub_patterns:%zu\r\n", table_count(&store->channels),
	    table_count(&store->patterns));
}

static void
add_keyspace(struct page *page, const struct weft_store *store)
{
	if (!info_begin(page, "keyspace"))
		return;
	for (uint32_t i = 0; i < BASES; i++) {
		const struct base *base = &store->bases[i];

		if (table_count(&base->keys) > 0)
			add(page, "db%u:keys=%zu,expires=%u,avg_ttl=0\r\n", i,
			    table_count(&base->keys), base->mortal_count);
	}
}

COMMAND(info)
{
	const struct weft_store *store = client->store;
	struct page page = { &client->store->heap, text_new(&client->store->heap, WORD("")),
		             words + 1, count - 1 };

	add_server(&page, store);
	add_clients(&page, store);
	add_memory(&page, store);
	add_persistence(&page);
	add_stats(&page, store);
	if (info_begin(&page, "replication"))
		add(&page, "role:master\r\nconnected_slaves:0\r\n");
	if (info_begin(&page, "cluster"))
		add(&page, "cluster_enabled:0\r\n");
	add_keyspace(&page, store);
	say_verbatim(client, text_word(page.text));
	text_free(page.heap, page.text);
}
