/* weaken.c - is each order needed?  Make one at a time weaker, and see.
 *
 * A first run of each model lists every place of the source where an atomic
 * operation asks for more than relaxed.  Then, for each place and each order
 * one step weaker, with only that changed, the models that come there are
 * explored again, until one fails.  If one does, the mistake would be found.
 * If none does, either the order is stronger than needed or no model shows why
 * it is needed; both are worth knowing.
 *
 * A place is file, line, kind and order: two operations of one kind in one line
 * count as one.
 */
#include <stdio.h>
#include <string.h>
#include "internal.h"

enum { SITES_MAX = 256, WEAKER_MAX = 2 };

struct site {
	struct explore__place place;
	enum weft__atomic_kind kind;
	int order;
	uint64_t models; /* mask of those that come here */
};

static struct {
	struct site sites[SITES_MAX];
	int count;
	bool listing;
	uint64_t model; /* mask: the one that is listed */
	bool weak;      /* `target` is done with `order` instead */
	struct site target;
	int order;
} weaken;

static bool
site_is(const struct site *site, const struct weft__atomic_call *call)
{
	return site->place.line == call->line && site->kind == call->kind
	       && site->order == call->order
	       && (site->place.file == call->file
	           || strcmp(site->place.file, call->file) == 0);
}

static void
site_note(const struct weft__atomic_call *call)
{
	if (call->order == WEFT__RELAXED)
		return;
	for (int i = 0; i < weaken.count; i++)
		if (site_is(&weaken.sites[i], call)) {
			weaken.sites[i].models |= weaken.model;
			return;
		}
	if (weaken.count == SITES_MAX)
		explore_fail("the model has too many places to weaken");
	weaken.sites[weaken.count++] = (struct site){
		.place = { call->file, call->line },
		.kind = call->kind,
		.order = call->order,
		.models = weaken.model,
	};
}

int
explore__weaken_order(const struct weft__atomic_call *call)
{
	if (weaken.listing)
		site_note(call);
	if (weaken.weak && site_is(&weaken.target, call))
		return weaken.order;
	return call->order;
}

/* The orders one step weaker; returns how many. */
static int
weaker(const struct site *site, int out[WEAKER_MAX])
{
	switch (site->order) {
	case WEFT__SEQ_CST:
		out[0] = site->kind == WEFT__LOAD    ? WEFT__ACQUIRE
		         : site->kind == WEFT__STORE ? WEFT__RELEASE
		                                     : WEFT__ACQ_REL;
		return 1;
	case WEFT__ACQ_REL:
		out[0] = WEFT__ACQUIRE;
		out[1] = WEFT__RELEASE;
		return 2;
	default:
		out[0] = WEFT__RELAXED;
		return 1;
	}
}

static void
site_print(const struct site *site, int order)
{
	printf("  %s:%d  %s %s -> %s: ", explore__base_name(site->place.file),
	       site->place.line, explore__kind_name(site->kind),
	       explore__order_name(site->order), explore__order_name(order));
}

/* Try one with the models that come there; true if one of them finds it. */
static bool
site_try(const struct explore_model *models, const struct site *site, int order)
{
	struct explore_result result;
	uint64_t executions = 0;
	bool complete = true;

	weaken.target = *site;
	weaken.order = order;
	site_print(site, order);
	for (uint64_t left = site->models; left; left &= left - 1) {
		const struct explore_model *model =
			&models[__builtin_ctzll(left)];

		weaken.weak = true;
		(void)explore_run(model, &result);
		weaken.weak = false;
		executions += result.executions;
		complete &= result.complete;
		if (result.failure) {
			printf("found (%llu executions)\n      by %s: %s\n",
			       (unsigned long long)executions, model->name,
			       result.failure);
			return true;
		}
	}
	printf("NOT FOUND (%llu executions%s)\n",
	       (unsigned long long)executions,
	       complete ? "" : ", search incomplete");
	return false;
}

/* List the places of a model; false if it fails as it is. */
static bool
sites_list(const struct explore_model *model, int index)
{
	struct explore_result result;

	weaken.model = UINT64_C(1) << index;
	weaken.listing = true;
	(void)explore_run(model, &result);
	weaken.listing = false;
	if (result.failure)
		printf("  %s fails as it is: %s\n%s", model->name,
		       result.failure, result.schedule);
	return result.failure == NULL;
}

int
explore_weaken_all(const struct explore_model *models, int count)
{
	int orders[WEAKER_MAX], tried = 0, missed = 0;

	weaken.count = 0;
	for (int i = 0; i < count && i < EXPLORE_MODELS_MAX; i++)
		if (!sites_list(&models[i], i))
			return -1;
	printf("%s%s, weakened: %d places\n", models[0].name,
	       count > 1 ? " and others" : "", weaken.count);
	for (int i = 0; i < weaken.count; i++)
		for (int k = weaker(&weaken.sites[i], orders); k-- > 0;) {
			tried++;
			missed += !site_try(models, &weaken.sites[i],
			                    orders[k]);
		}
	printf("  %d of %d found\n", tried - missed, tried);
	return missed;
}

int
explore_weaken(const struct explore_model *model)
{
	return explore_weaken_all(model, 1);
}
