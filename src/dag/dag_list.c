/* dag_list.c - the templates of the process, and the measurements of their nodes.
 *
 *   1. A template is in the list from its check until it is freed, and is removed under the
 *      lock.  A caller that writes a template as text holds the lock meanwhile.  So listing
 *      delays the freeing of a template no longer than the writing takes.
 *   2. The list can be walked at any moment, also in a child that was forked while it changed:
 *      each change is one pointer.  The child resets the lock.
 *   3. Times of nodes are kept by runs that were made while observed.  For all others the cost
 *      is one relaxed load of a word that is 0.
 */
#include "dag/dag.h"

static struct {
	struct weft__lock lock;
	weft_dag *first;
	uint64_t last_id;
} dags;

static weft__a64 observed_ns; /* runs made before this are timed; 0: none */

/* --- the list ------------------------------------------------------------ */

static void
lock_dags(void)
{
	static weft__a32 registered;

	/* If this fails, only forked children are at risk, and the next call tries again. */
	(void)weft__fork_handler(&registered, weft__dags_forked);
	weft__lock_take(&dags.lock);
}

void
weft__dag_enlist(weft_dag *dag)
{
	lock_dags();
	dag->id = ++dags.last_id;
	dag->next_listed = dags.first;
	dags.first = dag;
	weft__lock_give(&dags.lock);
}

void
weft__dag_delist(weft_dag *dag)
{
	weft_dag **link = &dags.first;

	lock_dags();
	while (*link && *link != dag)
		link = &(*link)->next_listed;
	if (*link)
		*link = dag->next_listed;
	weft__lock_give(&dags.lock);
}

void
weft__dags_forked(void)
{
	dags.lock = (struct weft__lock){ 0 };
}

/* The caller has the lock. */
static const weft_dag *
find_after(uint64_t id)
{
	const weft_dag *next = NULL;

	for (const weft_dag *d = dags.first; d; d = d->next_listed)
		if (d->id > id && (!next || d->id < next->id))
			next = d;
	return next;
}

int
weft_dag_list(uint64_t *cursor, weft_value *out)
{
	const weft_dag *dag;
	int rc = 0;

	if (!cursor || !out)
		return weft__misuse(WEFT_EINVAL, "weft_dag_list: cursor or out is NULL");
	lock_dags();
	dag = find_after(*cursor);
	if (dag)
		rc = weft__dag_write_measured(dag, out);
	if (dag && rc == 0)
		*cursor = dag->id;
	weft__lock_give(&dags.lock);
	return rc < 0 ? rc : dag != NULL;
}

/* --- measurements -------------------------------------------------------- */

void
weft_dag_observe(uint64_t until_ns)
{
	uint64_t before_ns = weft__load(&observed_ns, WEFT__RELAXED);

	while (before_ns < until_ns
	       && !weft__cas(&observed_ns, &before_ns, until_ns, WEFT__RELAXED))
		;
}

bool
weft__dag_is_observed(void)
{
	uint64_t until_ns = weft__load(&observed_ns, WEFT__RELAXED);

	if (until_ns == 0)
		return false;
	if (weft__sys->now() < until_ns)
		return true;
	/* Later calls need not read the clock.  If the exchange fails, the time was extended. */
	return !weft__cas(&observed_ns, &until_ns, 0, WEFT__RELAXED);
}

void
weft__dag_measure(struct weft__dag_node *node, uint64_t took_ns, bool failed)
{
	struct weft__dag_measured *measured = &node->more->measured;
	uint64_t max_ns = weft__load(&measured->max_ns, WEFT__RELAXED);

	(void)weft__add(&measured->count, 1, WEFT__RELAXED);
	(void)weft__add(&measured->sum_ns, took_ns, WEFT__RELAXED);
	if (failed)
		(void)weft__add(&measured->failed, 1, WEFT__RELAXED);
	weft__store(&measured->last_ns, took_ns, WEFT__RELAXED);
	while (max_ns < took_ns && !weft__cas(&measured->max_ns, &max_ns, took_ns, WEFT__RELAXED))
		;
}
