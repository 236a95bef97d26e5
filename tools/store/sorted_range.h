/* sorted_range.h - parts of sorted sets: by rank, by score, by the bytes of names. */
#ifndef STORE_SORTED_RANGE_H
#define STORE_SORTED_RANGE_H

#include "command.h"

enum range_by { BY_ANY, BY_RANK, BY_SCORE, BY_NAME };

struct score_limit {
	double score;
	bool   open; /* it is not included itself */
};

struct name_limit {
	struct word name;
	bool        open;
	char        end; /* '-' or '+': before all, behind all; 0 */
};

struct range {
	enum range_by      by;
	bool               reverse, scores, has_limit;
	int64_t            offset, limit; /* limit < 0: all */
	int64_t            first, last;   /* ranks, both included */
	struct score_limit low, high;
	struct name_limit  least, most;
};

/* Read the two ends of a range that is `by` something.  Whether they are good, else the client was
 * told. */
bool range_ends(struct client *client, struct word low, struct word high, struct range *out);

/* The ranks from the first of the range to before its end; of `reverse`, counted from behind. */
void range_ranks(const struct sorted *sorted, const struct range *range, size_t *begin,
                 size_t *end);

#endif
