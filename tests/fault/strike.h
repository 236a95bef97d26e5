/* strike.h - between the files of the failing sys table: who is struck, and the rings.
 *
 * fault.c keeps the plan and the counts; uring.c wraps the calls of io_uring and knows
 * where the rings lie; request.c looks at what goes through them.
 */
#ifndef WEFT_FAULT_STRIKE_H
#define WEFT_FAULT_STRIKE_H

#include <linux/io_uring.h>
#include "base/sys.h"
#include "fault.h"

/* Count a call: which one of its member it is. */
uint64_t fault_count_one(int member);

/* Is the plan for the n-th of `member`?  Whoever carries it out says fault_hit(). */
bool fault_is_aimed(int member, enum fault_kind kind, uint64_t n);
void fault_hit(void);
int  fault_error(void); /* of the plan */

/* Count the call: 0, or the -errno that it is to give. */
int fault_strike(int member);

/* Something is held from now on (1), or is not any more (-1). */
void fault_hold(int by);

/* --- the rings ---------------------------------------------------------- */

#define FAULT_KNOWN 64u /* requests whose kind is known */

struct fault_ring {
	int                    fd; /* or -1 */
	struct io_uring_params params;
	char                  *mem;  /* the mapped rings */
	struct io_uring_sqe   *sqes;
	uint32_t sq_seen, cq_seen;   /* positions up to which all was counted */
	struct {
		uint64_t user_data;
		int      kind;       /* FAULT_sq_* */
	} known[FAULT_KNOWN];
	uint32_t known_count;
	uint64_t told_data;  /* the request that is not made, and how it ends; */
	int      told_error; /* 0: there is none */
	struct io_uring_buf_ring *buffers;
	uint32_t                  buffer_count;
};

void fault_wrap_uring(struct weft__sys *table);
void fault_wrap_processes(struct weft__sys *table);

/* Look at `submit` requests before they are taken, and at what completed since. */
void fault_look_at_requests(struct fault_ring *ring, uint32_t submit);
void fault_look_at_completions(struct fault_ring *ring);

#endif
