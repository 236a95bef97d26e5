/* strike.h - shared by the files of the failing sys table: fault decisions, and the rings.
 *
 * fault.c keeps the plan and the counts.  uring.c wraps the io_uring calls and knows where the
 * rings are mapped.  request.c inspects the requests and completions in them.
 */
#ifndef WEFT_FAULT_STRIKE_H
#define WEFT_FAULT_STRIKE_H

#include <linux/io_uring.h>
#include "base/sys.h"
#include "fault.h"

/* Count a call of `member`, and return its ordinal number. */
uint64_t fault_count_one(int member);

/* Whether the plan is for the n-th call of `member`.  The caller injects the fault and then
 * calls fault_hit(). */
bool fault_is_aimed(int member, enum fault_kind kind, uint64_t n);
void fault_hit(void);
int  fault_error(void); /* of the plan */

/* Count the call; returns 0, or the -errno with which the call must fail. */
int fault_strike(int member);

/* Count a resource that is acquired (1) or released (-1). */
void fault_hold(int by);

/* --- the rings ---------------------------------------------------------- */

#define FAULT_KNOWN 64u /* requests whose kind is known */

struct fault_ring {
	int                    fd; /* or -1 */
	struct io_uring_params params;
	char                  *mem;  /* the mapped rings */
	struct io_uring_sqe   *sqes;
	uint32_t sq_seen, cq_seen;   /* positions up to which entries were counted */
	struct {
		uint64_t user_data;
		int      kind;       /* FAULT_sq_* */
	} known[FAULT_KNOWN];
	uint32_t known_count;
	uint64_t failed_data; /* the request that is replaced by a no-op, and the */
	int      failed_error; /* error of its completion; 0: there is none */
	struct io_uring_buf_ring *buffers;
	uint32_t                  buffer_count;
};

void fault_wrap_uring(struct weft__sys *table);
void fault_wrap_processes(struct weft__sys *table);

/* Inspect `submit` requests before the kernel takes them, and the completions that arrived
 * since. */
void fault_inspect_requests(struct fault_ring *ring, uint32_t submit);
void fault_inspect_completions(struct fault_ring *ring);

#endif
