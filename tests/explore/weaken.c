/* weaken.c - is each memory order needed?  Weaken one at a time and run the models again.
 *
 * A first run of each model lists every place in the source where an atomic operation has a
 * stronger order than relaxed.  Then, for each place and each order one step weaker, with only
 * that changed, the models that reach the place are explored again until one fails.  If one
 * fails, the models would detect that mistake.  If none fails, either the order is stronger
 * than needed or no model shows why it is needed; both are worth knowing.
 *
 * A place is file, line, kind and order: two operations of one kind on one line count as one.
 * A compare-exchange is two places, one with its success order and one with its failure order.
 */
#include <stdio.h>
#include <string.h>
#include "internal.h"

enum { SITES_MAX = 256, WEAKER_MAX = 2 };

struct site {
	struct explore__place place;
	enum weft__atomic_kind kind;
	int order;
	bool failed;     /* `order` is the failure order of a compare-exchange */
	uint64_t models; /* mask of the models that reach it */
};

enum which { ALL_ORDERS, FAILED_ONLY };

static struct {
	struct site sites[SITES_MAX];
	int count;
	bool listing;
	uint64_t model; /* mask: the model being listed */
	bool weak;      /* use `order` for `target` */
	struct site target;
	int order;
} weaken;

static bool
site_equals(const struct site *a, const struct site *b)
{
	return a->place.line == b->place.line && a->kind == b->kind && a->order == b->order
	       && a->failed == b->failed
	       && (a->place.file == b->place.file || strcmp(a->place.file, b->place.file) == 0);
}

static void
site_note(const struct site *site)
{
	if (site->order == WEFT__RELAXED)
		return;
	for (int i = 0; i < weaken.count; i++)
		if (site_equals(&weaken.sites[i], site)) {
			weaken.sites[i].models |= weaken.model;
			return;
		}
	if (weaken.count == SITES_MAX)
		explore_fail("the model has too many places to weaken");
	weaken.sites[weaken.count] = *site;
	weaken.sites[weaken.count++].models = weaken.model;
}

/* Handle one of the orders of a call. */
static void
weaken_order(const struct weft__atomic_call *call, bool failed, int *order)
{
	struct site site = { .place = { call->file, call->line },
		             .kind = call->kind,
		             .order = *order,
		             .failed = failed };

	if (weaken.listing)
		site_note(&site);
	if (weaken.weak && site_equals(&weaken.target, &site))
		*order = weaken.order;
}

void
explore__weaken(struct weft__atomic_call *call)
{
	weaken_order(call, false, &call->order);
	if (call->kind == WEFT__CAS)
		weaken_order(call, true, &call->failed);
}

/* The orders one step weaker; returns how many. */
static int
weaker(const struct site *site, int out[WEAKER_MAX])
{
	switch (site->order) {
	case WEFT__SEQ_CST:
		out[0] = site->kind == WEFT__LOAD || site->failed ? WEFT__ACQUIRE
		         : site->kind == WEFT__STORE              ? WEFT__RELEASE
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
	printf("  %s:%d  %s%s %s -> %s: ", explore__base_name(site->place.file), site->place.line,
	       site->failed ? "failed " : "", explore__kind_name(site->kind),
	       explore__order_name(site->order), explore__order_name(order));
}

/* Try one weaker order with the models that reach the place; true if one of them fails. */
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
		const struct explore_model *model = &models[__builtin_ctzll(left)];

		weaken.weak = true;
		(void)explore_run(model, &result);
		weaken.weak = false;
		executions += result.executions;
		complete &= result.complete;
		if (result.failure) {
			printf("found (%llu executions)\n      by %s: %s\n",
			       (unsigned long long)executions, model->name, result.failure);
			return true;
		}
	}
	printf("NOT FOUND (%llu executions%s)\n", (unsigned long long)executions,
	       complete ? "" : ", search incomplete");
	return false;
}

/* List the places of a model; false if the model fails unchanged.  For FAILED_ONLY, the first
 * executions already reach every place: a compare-exchange lists its failure order even where
 * it succeeds. */
static bool
sites_list(const struct explore_model *of, int index, enum which which)
{
	struct explore_model model = *of;
	struct explore_result result;

	if (which == FAILED_ONLY)
		model.executions_max = 1000;
	weaken.model = UINT64_C(1) << index;
	weaken.listing = true;
	(void)explore_run(&model, &result);
	weaken.listing = false;
	if (result.failure)
		printf("  %s fails as it is: %s\n%s", model.name, result.failure, result.schedule);
	return result.failure == NULL;
}

static int
weaken_models(const struct explore_model *models, int count, enum which which)
{
	int orders[WEAKER_MAX], tried = 0, missed = 0;

	weaken.count = 0;
	for (int i = 0; i < count && i < EXPLORE_MODELS_MAX; i++)
		if (!sites_list(&models[i], i, which))
			return -1;
	printf("%s%s, weakened: %d places%s\n", models[0].name, count > 1 ? " and others" : "",
	       weaken.count, which == FAILED_ONLY ? ", but only where it fails" : "");
	for (int i = 0; i < weaken.count; i++) {
		const struct site *site = &weaken.sites[i];

		if (which == FAILED_ONLY && !site->failed)
			continue;
		for (int k = weaker(site, orders); k-- > 0;) {
			tried++;
			missed += !site_try(models, site, orders[k]);
		}
	}
	printf("  %d of %d found\n", tried - missed, tried);
	return missed;
}

int
explore_weaken_all(const struct explore_model *models, int count)
{
	return weaken_models(models, count, ALL_ORDERS);
}

int
explore_weaken_failed(const struct explore_model *models, int count)
{
	return weaken_models(models, count, FAILED_ONLY);
}

int
explore_weaken(const struct explore_model *model)
{
	return explore_weaken_all(model, 1);
}
