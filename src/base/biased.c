/* biased.c - the paths of a biased lock that take the underlying lock. */
#include "base/biased.h"

#define OFTEN 256u /* a barrier by another thread costs about as much as this many locks */

/* Invariant 3. */
static void
count_own(struct weft__biased *biased)
{
	weft__assert(!weft__count_get(&biased->own)); /* invariant 1 */
	if (biased->never || ++biased->alone < OFTEN)
		return;
	biased->alone = 0;
	if (weft__sys->barrier() == 0)
		weft__store(&biased->own, 1, WEFT__RELAXED);
	else
		biased->never = true;
}

void
weft__biased_take_own(struct weft__biased *biased)
{
	weft__store(&biased->inside, 0, WEFT__RELEASE); /* O */
	weft__lock_take(&biased->lock);
	count_own(biased);
}

void
weft__biased_take_other(struct weft__biased *biased)
{
	weft__lock_take(&biased->lock);
	biased->alone = 0;
	if (!weft__load(&biased->own, WEFT__RELAXED))
		return;
	weft__store(&biased->own, 0, WEFT__RELAXED); /* B */
	if (!weft__barrier())
		biased->never = true;
	while (weft__load(&biased->inside, WEFT__ACQUIRE)) /* O */
		weft__sys->yield();
}
