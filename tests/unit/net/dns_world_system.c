/* dns_world_system.c - replaces the system's resolver by one that knows a few names. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include "test.h"
#include "base/sys.h"
#include "dns_world.h"

enum { NAMES = 16384 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct {
		char name[64];
		int count;
	} names[NAMES];
	int name_count;
	bool open; /* queries are no longer held */
} world = { .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER };

static struct weft__sys table;
static const struct weft__sys *before;
static weft__a64 warp_ns;

static int *
count_of(const char *name)
{
	int i = 0;

	while (i < world.name_count && strcmp(world.names[i].name, name) != 0)
		i++;
	if (i == world.name_count) {
		world.name_count++;
		world.names[i].count = 0;
		(void)snprintf(world.names[i].name, sizeof(world.names[i].name), "%s", name);
	}
	return &world.names[i].count;
}

int
world_count(const char *name)
{
	int count;

	pthread_mutex_lock(&world.lock);
	count = *count_of(name);
	pthread_mutex_unlock(&world.lock);
	return count;
}

/* Counts the query.  A query for held*.test waits for world_release(). */
static void
take_time(const char *name)
{
	pthread_mutex_lock(&world.lock);
	(*count_of(name))++;
	while (strncmp(name, "held", 4) == 0 && !world.open)
		pthread_cond_wait(&world.change, &world.lock);
	pthread_mutex_unlock(&world.lock);
}

static struct weft__host
v4(uint32_t ip)
{
	return (struct weft__host){ .family = AF_INET,
		                    .ip = { (uint8_t)(ip >> 24), (uint8_t)(ip >> 16),
		                            (uint8_t)(ip >> 8), (uint8_t)ip } };
}

static int
find_host(const char *name, struct weft__host *out, size_t max)
{
	const struct weft__host v6 = { .family = AF_INET6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } };
	int count = 0;

	CHECK(max >= 2);
	take_time(name);
	if (strcmp(name, "fail.test") == 0)
		return -EAGAIN;
	if (strstr(name, ".many.test"))
		out[count++] = v4(0x0a000000 + (uint32_t)strtoul(name, NULL, 10));
	if (strcmp(name, "v4.test") == 0 || strcmp(name, "both.test") == 0
	    || strncmp(name, "held", 4) == 0)
		out[count++] = v4(0xc0000201);
	if (strcmp(name, "v6.test") == 0 || strcmp(name, "both.test") == 0)
		out[count++] = v6;
	return count > 0 ? count : WEFT_ENONAME;
}

static int
name_host(const struct weft__host *host, char *out, size_t max)
{
	take_time("1.2.0.192.in-addr.arpa");
	if (host->family != AF_INET || host->ip[0] != 192)
		return WEFT_ENONAME;
	return snprintf(out, max, "v4.test");
}

static uint64_t
now(void)
{
	return before->now() + weft__load(&warp_ns, WEFT__RELAXED);
}

void
world_warp(uint64_t ns)
{
	(void)weft__add(&warp_ns, ns, WEFT__RELAXED);
}

void
world_begin(void)
{
	world.name_count = 0;
	world.open = false;
	weft__store(&warp_ns, 0, WEFT__RELAXED);
	before = weft__sys;
	table = *weft__sys;
	table.host_find = find_host;
	table.host_name = name_host;
	table.now = now;
	weft__sys = &table;
}

void
world_end(void)
{
	world_release();
	weft__sys = before;
}

weft_loop *
world_loop(struct weft__dns_setup *set)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK(loop != NULL);
	if (set)
		CHECK_EQ(weft__dns_set_up(loop, set), 0);
	return loop;
}

void
world_release(void)
{
	pthread_mutex_lock(&world.lock);
	world.open = true;
	pthread_cond_broadcast(&world.change);
	pthread_mutex_unlock(&world.lock);
}
