/* dns_query.h - resolve names in tests, and record the results. */
#ifndef WEFT_TESTS_DNS_QUERY_H
#define WEFT_TESTS_DNS_QUERY_H

#include <netinet/in.h>
#include "net/addr.h"
#include "test.h"
#include "dns_world.h"

#define OUT_MAX 300

struct query {
	weft_op   op;
	weft_addr out[OUT_MAX];
	int64_t   result;
	int       results;
	char      text[256];
};

static inline void
on_resolved(weft_op *op, int64_t result, void *arg)
{
	struct query *a = arg;

	(void)op;
	a->results++;
	a->result = result;
	(void)snprintf(a->text, sizeof(a->text), "%s", weft_detail());
}

static inline void
query_start_max(weft_loop *loop, struct query *a, const char *address, size_t max,
                uint64_t deadline_ns)
{
	memset(a, 0, sizeof(*a));
	CHECK_EQ(weft_op_init(&a->op, loop, on_resolved, a), 0);
	CHECK_EQ(weft__dns_resolve_op(address, a->out, max, &a->op, deadline_ns), 0);
}

static inline void
query_start(weft_loop *loop, struct query *a, const char *address)
{
	query_start_max(loop, a, address, OUT_MAX, WEFT_NEVER);
}

/* Resolves a name and waits.  Returns the number of addresses, or the error. */
static inline int64_t
find(weft_loop *loop, struct query *a, const char *address)
{
	query_start(loop, a, address);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(a->results, 1);
	return a->result;
}

/* Runs the loop until the name has been queried. */
static inline void
drive_to(weft_loop *loop, const char *name)
{
	while (world_count(name) == 0)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
}

static inline const char *
text_of(const weft_addr *addr)
{
	static char text[WEFT_ADDR_TEXT_MAX];

	CHECK(weft_addr_format(addr, text, sizeof(text)) > 0);
	return text;
}

#endif
