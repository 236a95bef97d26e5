/* sorted_range.h - ranges of sorted sets: by rank, by score, or by name. */
#ifndef STORE_SORTED_RANGE_H
#define STORE_SORTED_RANGE_H

#include "command.h"

enum range_by { BY_ANY, BY_RANK, BY_SCORE, BY_NAME };

struct score_limit {
	double score;
	bool   open; /* exclusive */
};

struct name_limit {
	struct word name;
	bool        open;
	char        end; /* '-' or '+': before or after everything; else 0 */
};

struct range {
	enum range_by      by;
	bool               reverse, scores, has_limit;
	int64_t            offset, limit; /* limit < 0: all */
	int64_t            first, last;   /* ranks, inclusive */
	struct score_limit low, high;
	struct name_limit  least, most;
};

/* Parse the two ends of a range; out->by selects their type.  Returns false after replying with
 * an error if they are not valid. */
bool range_ends(struct client *client, struct word low, struct word high, struct range *out);

/* Convert a range to ranks: from `begin` to `end`, exclusive.  With `reverse`, ranks count from
 * the end. */
void range_ranks(const struct sorted *sorted, const struct range *range, size_t *begin,
                 size_t *end);

#endif
