/* slow.c - the slowest request of the last ten seconds; one is kept for each second. */
#include <string.h>
#include "service.h"

void
slow_init(struct slow *slow)
{
	memset(slow, 0, sizeof(*slow));
	(void)pthread_mutex_init(&slow->lock, NULL);
}

void
slow_note(struct slow *slow, const struct request *request, uint64_t end_ns)
{
	uint64_t second = end_ns / WEFT_S, total_ns = end_ns - request->begin_ns;
	int at = (int)(second % SLOW_SECONDS);

	(void)pthread_mutex_lock(&slow->lock);
	slow->count++;
	if (slow->slots[at].second != second || slow->slots[at].total_ns < total_ns) {
		slow->slots[at].second = second;
		slow->slots[at].total_ns = total_ns;
		slow->slots[at].number = slow->count;
		slow->slots[at].request = *request;
	}
	(void)pthread_mutex_unlock(&slow->lock);
}

/* Returns the slot of the slowest request, or -1. */
static int
find_slowest(const struct slow *slow)
{
	uint64_t second = weft_now() / WEFT_S;
	int best = -1;

	for (int i = 0; i < SLOW_SECONDS; i++)
		if (slow->slots[i].number && slow->slots[i].second + SLOW_SECONDS > second
		    && (best < 0 || slow->slots[i].total_ns > slow->slots[best].total_ns))
			best = i;
	return best;
}

bool
slow_write(struct slow *slow, uint64_t *number, struct text *text)
{
	struct request request;
	uint64_t total_ns;
	int at;

	(void)pthread_mutex_lock(&slow->lock);
	at = find_slowest(slow);
	if (at < 0 || slow->slots[at].number == *number) {
		(void)pthread_mutex_unlock(&slow->lock);
		return false;
	}
	*number = slow->slots[at].number;
	request = slow->slots[at].request;
	total_ns = slow->slots[at].total_ns;
	(void)pthread_mutex_unlock(&slow->lock);
	text_add(text, "{\"viewer\":\"%u\",\"total_us\":%llu,", request.viewer,
	         (unsigned long long)(total_ns / WEFT_US));
	reply_write_nodes(text, &request);
	text_add(text, "}");
	return true;
}
